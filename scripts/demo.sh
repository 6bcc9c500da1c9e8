#!/usr/bin/env bash
# Sends a file that every JDK has, over 100 MB, from one engine to another, and compares the SHA-256 of both ends.
#
#   scripts/demo.sh                                 the JDK's lib/modules, between two engines of one JVM
#   scripts/demo.sh --transport libfabric           the same between two JVMs of this machine, over libfabric
#   scripts/demo.sh --in-flight 32 --chunk 1M       options are those of 'nrt4j transfer'
#   scripts/demo.sh --rebuild                       builds even if the jar is newer than every source
#
# Over libfabric the provider may be named: NRT4J_LIBFABRIC_PROVIDER=shm scripts/demo.sh --transport libfabric
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

rebuild=no
two_processes=no
options=()
while [ $# -gt 0 ]; do
    case "$1" in
        --rebuild) rebuild=yes ;;
        --transport=libfabric) two_processes=yes ;;
        --transport)
            [ $# -ge 2 ] || die '--transport needs a name' 2
            if [ "$2" = libfabric ]; then
                two_processes=yes
            else
                options+=(--transport "$2")
            fi
            shift
            ;;
        -h | --help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) options+=("$1") ;;
    esac
    shift
done

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
if [ "$two_processes" = no ]; then
    exec "$JAVA_HOME/bin/java" -jar "$jar" transfer ${options[@]+"${options[@]}"} "$file"
fi

need_libfabric
have_libfabric || die 'without libfabric there is nothing to show'
work="$(mktemp -d)"
receiver=
# The receiver ends with its sender, or with this script.
clean_up() {
    [ -z "$receiver" ] || kill "$receiver" 2> /dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
port="$(free_port)"
export NRT4J_KV_LOCK_DIRECTORY="$work"
# One machine: two processes of one user share its key-value server, and the first of its addresses will do for both.
[ -n "${NRT4J_LIBFABRIC_ADDRESS+set}" ] || [ "${NRT4J_LIBFABRIC_PROVIDER:-}" = shm ] || export NRT4J_LIBFABRIC_ADDRESS=127.0.0.1
common=(--transport libfabric --port "$port" --peer 127.0.0.1)

printf 'Receiver: LNC 1 in a JVM of its own\n'
"$JAVA_HOME/bin/java" -jar "$jar" transfer --listen --lnc 1 --peer-lnc 0 "${common[@]}" --out "$work/out" > "$work/receiver.log" 2>&1 &
receiver=$!
printf 'Sender: LNC 0 in another\n\n'
failed=no
"$JAVA_HOME/bin/java" -jar "$jar" transfer --lnc 0 --peer-lnc 1 "${common[@]}" ${options[@]+"${options[@]}"} "$file" || failed=yes
if [ "$failed" = yes ]; then
    # It was told, or notices; it does not wait for the connection of a sender that never came.
    for _ in $(seq 50); do
        kill -0 "$receiver" 2> /dev/null || break
        sleep 0.1
    done
    kill "$receiver" 2> /dev/null || true
fi
wait "$receiver" || failed=yes
receiver=
printf '\nThe receiver says:\n'
cat "$work/receiver.log"
[ "$failed" = no ] || die 'the transfer failed'
sent="$(sha256sum < "$file")"
kept="$(sha256sum < "$work/out/modules")"
printf '\nsha256sum of the file sent      %s\nsha256sum of the file received  %s\n' "${sent%% *}" "${kept%% *}"
[ "$sent" = "$kept" ] || die 'the two files differ'
