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

# Whether the loader finds libfabric, or the file that the user named is there.
have_libfabric() {
    [ -n "${NRT4J_LIBFABRIC_PATH:-}" ] && [ -f "$NRT4J_LIBFABRIC_PATH" ] && return 0
    local loader
    for loader in ldconfig /sbin/ldconfig /usr/sbin/ldconfig; do
        if command -v "$loader" > /dev/null; then
            "$loader" -p 2> /dev/null | grep -q 'libfabric\.so\.1' && return 0
        fi
    done
    return 1
}

# Installs Debian packages where that is possible; says what it does and what it cannot do. Never fails.
#   $1 what is missing without them, the rest: the packages
install_packages() {
    local what="$1"
    shift
    if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
        printf 'SKIP: %s is not here, and only root with apt-get could install it: apt-get install -y %s\n' "$what" "$*"
        return 0
    fi
    printf 'Installing %s for %s\n' "$*" "$what"
    if ! { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" \
        || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }; } > /dev/null 2>&1; then
        printf 'SKIP: %s could not be installed; try: apt-get update && apt-get install -y %s\n' "$what" "$*"
    fi
}

# What the libfabric transport needs to run.
need_libfabric() {
    have_libfabric || install_packages libfabric libfabric1
}

# What its tests need besides: a C compiler with the headers, and network namespaces.
need_libfabric_tests() {
    need_libfabric
    command -v gcc > /dev/null && [ -f /usr/include/rdma/fabric.h ] || install_packages 'libfabric for C' gcc libc6-dev libfabric-dev
    command -v fi_info > /dev/null || install_packages fi_info libfabric-bin
    command -v ip > /dev/null || install_packages ip iproute2
}

# A TCP port below the ephemeral ones that nobody listens on; a rough guess where bash has no /dev/tcp.
free_port() {
    local port
    for _ in $(seq 100); do
        port=$((20000 + RANDOM % 10000))
        if ! (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    die 'found no free TCP port'
}
