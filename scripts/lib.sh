# Sourced by the scripts beside it: where things are. Not to be run.

# shellcheck shell=bash
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly ROOT

die() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    exit "${2:-1}"
}

# Feature version of the JDK at a home, such as 17; empty if there is none.
jdk_version() {
    [ -x "$1/bin/javac" ] || return 0
    "$1/bin/javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p'
}

# Every JDK home worth looking at, the ones the user named first.
jdk_homes() {
    local home
    for home in "${JAVA_HOME:-}" "${JAVA25_HOME:-}" /usr/lib/jvm/*; do
        if [ -n "$home" ] && [ -d "$home" ] && [ -x "$home/bin/javac" ]; then
            printf '%s\n' "$home"
        fi
    done
    if command -v javac > /dev/null; then
        dirname "$(dirname "$(readlink -f "$(command -v javac)")")"
    fi
}

# The first JDK with a feature version from $1 to $2; empty if there is none.
find_jdk() {
    local home version
    while read -r home; do
        version="$(jdk_version "$home")"
        if [ -n "$version" ] && [ "$version" -ge "$1" ] && [ "$version" -le "$2" ]; then
            printf '%s\n' "$home"
            return 0
        fi
    done < <(jdk_homes)
}

# The baseline is Java 17; a later one will do where there is none.
find_baseline_jdk() {
    local home
    home="$(find_jdk 17 17)"
    [ -n "$home" ] || home="$(find_jdk 18 99)"
    [ -n "$home" ] || die "no JDK 17 or later in JAVA_HOME, under /usr/lib/jvm or on the path"
    printf '%s\n' "$home"
}

need_maven() {
    command -v mvn > /dev/null || die "Maven (mvn) is not on the path"
}

# The runnable jar in a build directory; empty if it was not built.
tools_jar() {
    local jar
    for jar in "$ROOT/${1:-target}"/nrt4j-*-tools.jar; do
        if [ -f "$jar" ]; then
            printf '%s\n' "$jar"
            return 0
        fi
    done
}
