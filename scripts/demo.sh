#!/usr/bin/env bash
# Sends a file that every JDK has, over 100 MB, from one engine to another, and compares the SHA-256 of both ends.
#
#   scripts/demo.sh                                 the JDK's lib/modules
#   scripts/demo.sh --in-flight 32 --chunk 1M       options are those of 'nrt4j transfer'
#   scripts/demo.sh --rebuild                       builds even if the jar is newer than every source
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

rebuild=no
if [ "${1:-}" = "--rebuild" ]; then
    rebuild=yes
    shift
fi

JAVA_HOME="$(find_baseline_jdk)"
export JAVA_HOME
jar="$(tools_jar)"
if [ "$rebuild" = yes ] || [ -z "$jar" ] || [ -n "$(find "$ROOT/src/main" "$ROOT/src/build" "$ROOT/pom.xml" -newer "$jar" -print -quit)" ]; then
    need_maven
    printf 'Building with %s\n' "$JAVA_HOME"
    mvn -q -B -f "$ROOT/pom.xml" -DskipTests package
    jar="$(tools_jar)"
    [ -n "$jar" ] || die "the build made no nrt4j-*-tools.jar"
fi

file="$JAVA_HOME/lib/modules"
[ -f "$file" ] || die "$file is not there: this JDK is no modular one"
exec "$JAVA_HOME/bin/java" -jar "$jar" transfer "$@" "$file"
