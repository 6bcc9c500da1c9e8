#!/usr/bin/env bash
# Builds and runs the benchmarks with the gc profiler, and prints each beside its control.
#
#   scripts/bench.sh                        all, 3 forks
#   scripts/bench.sh -f 1 HotPath           1 fork, benchmarks whose name matches a regular expression
#   scripts/bench.sh -- -wi 2 -i 3          everything after -- goes to JMH as it is
#   scripts/bench.sh --check                exit code 1 when the hot path exceeds its limits (8 B: 3 times the control, 1 MiB: 1.05
#                                           times, by the best iterations; less than a byte allocated); also with --footprint and
#                                           --fabric, each by its own limits
#   scripts/bench.sh --footprint            2,048 pairs in 512 MB of heap, and processor time while idle and while waiting
#   scripts/bench.sh --fabric               libfabric in two processes, 8 alternating rounds: raw C calls, nrt4j perf, jucx, sockets
#   scripts/bench.sh --fabric --rounds 12 --provider shm
#   scripts/bench.sh --fabric --jdk HOME    the same on another JDK; from 22 on the calls go through java.lang.foreign
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

forks=3
pattern='io\.nrt4j\.'
footprint=no
check=()
fabric=no
fabric_home=
rounds=8
providers=('tcp;ofi_rxm' shm)
jmh_options=()
while [ $# -gt 0 ]; do
    case "$1" in
        -f | --forks)
            [ $# -ge 2 ] || die "$1 needs a number" 2
            forks="$2"
            shift
            ;;
        --footprint) footprint=yes ;;
        --check) check=(--check) ;;
        --fabric) fabric=yes ;;
        --rounds)
            [ $# -ge 2 ] || die "$1 needs a number" 2
            rounds="$2"
            shift
            ;;
        --provider)
            [ $# -ge 2 ] || die "$1 needs a name" 2
            providers=("$2")
            shift
            ;;
        --jdk)
            [ $# -ge 2 ] && [ -x "$2/bin/java" ] || die "$1 needs the home of a JDK" 2
            fabric_home="$2"
            shift
            ;;
        -h | --help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        --)
            shift
            jmh_options=("$@")
            break
            ;;
        -*) die "unknown option '$1', see --help" 2 ;;
        *) pattern="$1" ;;
    esac
    shift
done

need_maven
JAVA_HOME="$(find_baseline_jdk)"
export JAVA_HOME
build=target/jmh
# The class path is written by the dependency plug-in, so that no path is known here.
mvn -q -B -f "$ROOT/pom.xml" -Pjmh "-DbuildDirectory=$build" test-compile \
    dependency:build-classpath -DincludeScope=test "-Dmdep.outputFile=$ROOT/$build/class.path"
classpath="$ROOT/$build/test-classes:$ROOT/$build/classes:$(cat "$ROOT/$build/class.path")"
quiet=(-Dorg.slf4j.simpleLogger.defaultLogLevel=warn)

if [ "$fabric" = yes ]; then
    need_libfabric_tests
    have_libfabric || die 'there is no libfabric to measure'
    yardstick="$ROOT/$build/fi_yardstick"
    gcc -O2 -o "$yardstick" "$ROOT/src/test/native/fi_yardstick.c" -lfabric
    ucx=false
    for library in /usr/lib/*/libucp.so.0; do
        [ -e "$library" ] || install_packages UCX libucx0
    done
    for library in /usr/lib/*/libucp.so.0; do
        [ ! -e "$library" ] || ucx=true
    done
    [ "$ucx" = true ] || printf 'SKIP: jucx: there is no libucp.so.0\n'
    printf '%s, %s processors, load %s\n' "$(uname -srm)" "$(nproc)" "$(cut -d ' ' -f 1-3 /proc/loadavg)"
    exec "${fabric_home:-$JAVA_HOME}/bin/java" "${quiet[@]}" -cp "$classpath" io.nrt4j.bench.FabricRounds "$rounds" "$yardstick" "$ucx" \
        "$([ ${#check[@]} -gt 0 ] && echo true || echo false)" "${providers[@]}"
fi
if [ "$footprint" = yes ]; then
    exec "$JAVA_HOME/bin/java" -Xmx512m "${quiet[@]}" -cp "$classpath" io.nrt4j.sendrecv.FootprintProbe "${check[@]}"
fi
exec "$JAVA_HOME/bin/java" "${quiet[@]}" -cp "$classpath" io.nrt4j.sendrecv.BenchmarkRunner "${check[@]}" \
    "$pattern" "$forks" "${jmh_options[@]}"
