#!/usr/bin/env bash
# Builds the stress tests of nrt4j's concurrency (jcstress/) and runs them. Prints the folder of the HTML report; ends with 0 if every
# outcome of every test was one that may be.
#
#   scripts/jcstress.sh                       the whole suite, each thread compiled in each way (estimate: 40 minutes on Java 17, 20 on Java 25, with 2 processors)
#   scripts/jcstress.sh --quick               a selection, for a build (about 3.5 minutes)
#   scripts/jcstress.sh -t 'GateStress.*'     tests by name (a regular expression)
#   scripts/jcstress.sh --mutants [NAME...]   puts faults in, one by one: each must be found (about 15 minutes)
#   scripts/jcstress.sh --list                names of the tests
#
#   -m, --mode MODE      jcstress preset: sanity, quick, default, tough, stress (default: one iteration of 300 ms in each way; the
#                        presets take hours)
#   -b, --budget MIN     minutes to spend on sampling, about; builds and starts of JVMs come on top
#   -j, --jdk HOME       JDK to run on (default: the baseline, Java 17 where there is one)
#   --split yes|no       compile each thread of a test in its own way: 9 combinations instead of 3 (default: yes, --quick: no)
#   --no-build           run what was built before
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

readonly WORK="$ROOT/jcstress/target"
# States of these are threads, sockets and folders: few at a time.
readonly HEAVY='io\.nrt4j\..*EngineStress\..*'
readonly LIGHT='io\.nrt4j\.(?!.*EngineStress\.).*'
# What the selection for a build leaves out is what another of its suite nearly says too.
readonly QUICK='io\.nrt4j\.(concurrent\.(SpscRingStress\.(Publish|Full|Empty|WrapAround)|LockedStackStress\.(PopPop|PopPush))|sendrecv\.(GateStress\.(HotBehindCold|TwoProducersStash)|HandOffStress\.(PostedShowsRequest|PolledWhileServicePosts)|CompletionStress\.(TwoPollers|StaleHandle)|TaskSignalStress\.(Post|Close|PostedToTransport)|MrCacheStress\.(RegisteredOnce|TensorClosedWhileRegistered)|CommStatusStress\.Connected|ClosingStress\.(ColdPost|Connect)|TensorStress\.(CloseAgainstLastUse|PostAgainstClose))|proxy\.(SharedProxyQueuesStress\.(AcquireAgainstLastRelease|DoubleRelease)|ProxyQueueStress\.(AppendAgainstSleep|StopAgainstSleep|AppendAgainstStop|DoneShowsStatus|TwoConsumers)|DeviceTriggerStress\.DataBehindTrigger)|net\.loopback\.LoopbackConnectStress\.AskAgainstAccept)$'
readonly QUICK_HEAVY='io\.nrt4j\.(sendrecv\.LifeCycleEngineStress\.InitAgainstClose|kv\.KvLeaderEngineStress\.TwoStarters|proxy\.ProxyEngineStress\.StopAgainstStep)$'

mode=
budget=
home=
split=
filter=
what=run
build=yes
names=()
while [ $# -gt 0 ]; do
    case "$1" in
        --quick) what=quick ;;
        --mutants) what=mutants ;;
        --list) what=list ;;
        --no-build) build=no ;;
        -t | --tests) filter="${2:?}"; shift ;;
        -m | --mode) mode="${2:?}"; shift ;;
        -b | --budget) budget="${2:?}"; shift ;;
        -j | --jdk) home="${2:?}"; shift ;;
        --split) split="${2:?}"; shift ;;
        -h | --help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        -*) die "unknown option '$1', see --help" 2 ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -eq 0 ] || [ "$what" = mutants ] || die "what is '${names[0]}'? see --help" 2
[ -n "$home" ] || home="$(find_baseline_jdk)"
[ -x "$home/bin/java" ] || die "no JDK at $home" 2

# Builds with the baseline, whatever runs it.
if [ "$build" = yes ]; then
    need_maven
    baseline="$(find_baseline_jdk)"
    skip=(-DskipTests -Dmaven.test.skip=true -Dcheckstyle.skip -Dmaven.javadoc.skip -Dmaven.source.skip -Dassembly.skipAssembly)
    JAVA_HOME="$baseline" mvn -B -q -f "$ROOT/pom.xml" install "${skip[@]}"
    JAVA_HOME="$baseline" mvn -B -q -f "$ROOT/jcstress/pom.xml" compile \
        dependency:build-classpath -DincludeScope=runtime -Dmdep.outputFile="$WORK/classpath.txt"
    "$baseline/bin/jar" --create --file "$WORK/stress.jar" -C "$WORK/classes" .
    "$baseline/bin/jar" --create --file "$WORK/nrt4j.jar" -C "$ROOT/target/classes" .
fi
[ -f "$WORK/classpath.txt" ] || die "not built yet"
# This checkout's classes before the installed ones. In jars, since jcstress loses its way in folders, and with it the padding of its results.
classpath="$WORK/stress.jar:$WORK/nrt4j.jar:$(cat "$WORK/classpath.txt")"
native=()
[ "$(jdk_version "$home")" -lt 24 ] || native=(--enable-native-access=ALL-UNNAMED)

# A test that hangs is a test that failed.
limit=3h

# Runs jcstress in a folder.
#   $1 folder, $2 class path, $3 tests, the rest: more options
jcstress() {
    local folder="$1" path="$2" tests="$3"
    shift 3
    mkdir -p "$folder"
    (cd "$folder" && timeout "$limit" "$home/bin/java" "${native[@]}" -Djava.io.tmpdir="$folder" -cp "$path" org.openjdk.jcstress.Main \
        -r "$folder/" -t "$tests" "$@")
}

# Sampling, one argument a line: what the preset says, or what a budget in minutes comes to for each way of each test, or the default.
#   $1 tests, $2 kind: light or heavy
sampling() {
    if [ -z "$mode" ]; then
        printf '%s\n' -m quick -f 1 -fsm 1 -pth false
    else
        printf '%s\n' -m "$mode"
    fi
    if [ -n "$budget" ]; then
        printf '%s\n' -iters 1 -time "$((budget * 60000 / ($(list "$1" | wc -l) * $(ways) + 1) + 1))"
    elif [ -z "$mode" ]; then
        printf '%s\n' -iters 1 -time 300
    fi
    if [ "$2" = heavy ]; then
        printf '%s\n' -strideSize 4 -strideCount 2
    elif [ -z "$mode" ]; then
        printf '%s\n' -strideSize 64 -strideCount 8
    fi
}

# Names of the tests that match.
list() {
    (cd "$WORK" && "$home/bin/java" -Djava.io.tmpdir="$WORK" -cp "$classpath" org.openjdk.jcstress.Main -l -t "$1" | grep '^io\.nrt4j\.' || true)
}

# How many JVMs run a test with two threads: each way once, those of the random C2 as often as the preset multiplies them, and all of it as
# often as the preset forks. Java 17 has biased locking, and does everything with it and without.
ways() {
    local plain=9 random=5
    [ "$split" = yes ] || { plain=3 random=1; }
    case "$mode" in
        default) random=$((5 * random)) ;;
        tough) plain=$((10 * plain)) random=$((50 * random)) ;;
        stress) plain=$((10 * plain)) random=$((100 * random)) ;;
    esac
    if [ "$(jdk_version "$home")" -ge 18 ]; then
        printf '%s\n' "$((plain + random))"
    else
        printf '%s\n' "$((2 * (plain + random)))"
    fi
}

report() {
    printf 'HTML report: %s/index.html\n' "$1"
}

# The light tests, then the heavy ones. A filter picks among both.
run_suite() {
    local failed=no tests folder kind sample count=0 log passed
    [ -n "$split" ] || split=yes
    for kind in light heavy; do
        tests="$LIGHT"
        [ "$kind" = light ] || tests="$HEAVY"
        [ -z "$filter" ] || tests="(?=.*(?:$filter))$tests"
        if [ -z "$(list "$tests")" ]; then
            continue
        fi
        folder="$WORK/report-java$(jdk_version "$home")-$kind"
        log="$folder.log"
        mapfile -t sample < <(sampling "$tests" "$kind")
        jcstress "$folder" "$classpath" "$tests" -sc "$([ "$split" = yes ] && echo true || echo false)" "${sample[@]}" | tee "$log" || failed=yes
        passed="$(passed "$log")"
        count=$((count + ${passed:-0}))
        report "$folder"
    done
    [ -n "${folder:-}" ] || die "no test matches '$filter'" 2
    conclude "$count" "$failed"
}

# The last line, and the exit code.
#   $1 results that passed, $2 whether something failed: yes or no
conclude() {
    printf 'jcstress, Java %s, %s s: %s results, %s\n' "$(jdk_version "$home")" "$SECONDS" "$1" \
        "$([ "$2" = no ] && echo 'all as they may be' || echo 'FAILED')"
    [ "$2" = no ]
}

run_quick() {
    local failed=no folder="$WORK/report-quick-java$(jdk_version "$home")"
    # All threads of a test compiled in the same way, no random C2, one short iteration: three ways instead of fourteen.
    local sample=(-m quick -sc false -f 1 -fsm 0 -iters 1 -time 100 -pth false)
    jcstress "$folder" "$classpath" "$QUICK" "${sample[@]}" -strideSize 64 -strideCount 4 > "$WORK/quick.log" 2>&1 || failed=yes
    jcstress "$folder-heavy" "$classpath" "$QUICK_HEAVY" "${sample[@]}" -strideSize 4 -strideCount 2 > "$WORK/quick-heavy.log" 2>&1 || failed=yes
    if [ "$failed" = yes ]; then
        cat "$WORK/quick.log" "$WORK/quick-heavy.log"
    fi
    report "$folder"
    report "$folder-heavy"
    printf 'jcstress, Java %s: %s and %s results, %s\n' "$(jdk_version "$home")" "$(passed "$WORK/quick.log")" \
        "$(passed "$WORK/quick-heavy.log")" "$([ "$failed" = no ] && echo 'all as they may be' || echo 'FAILED')"
    [ "$failed" = no ]
}

# How many results a log counts as passed.
passed() {
    sed -n 's/^(Results: [0-9]* planned; \([0-9]*\) passed.*/\1/p' "$1" | tail -n 1
}

# Each mutant's class before the real one: its test must see an outcome that is forbidden. Three tries, each with more samples.
run_mutants() {
    local name tests folder count=0 missed=0 options found try
    limit=3m
    rm -rf "$WORK/mutants"
    "$home/bin/java" -cp "$classpath" io.nrt4j.stress.Mutants "$ROOT/jcstress/mutants" "$ROOT" "$WORK/mutants" "${names[@]}" \
        > "$WORK/mutants.txt" || die "the mutants could not be made"
    while IFS=$'\t' read -r name tests <&3; do
        count=$((count + 1))
        folder="$WORK/mutants/$name-report"
        found=no
        for try in 1 2 3; do
            options=(-sc false -f 1 -fsm 0 -iters 1 -time "$((300 * try * try))" -jvmArgs "-XX:-TieredCompilation")
            # Small strides at first: with a wake-up lost, each state costs time.
            case "$tests" in
                *EngineStress*) options+=(-strideSize 4 -strideCount 2) ;;
                *) options+=(-strideSize "$((64 * try))" -strideCount "$((4 * try * try))") ;;
            esac
            if ! jcstress "$folder" "$WORK/mutants/$name:$classpath" "${tests//./\\.}" "${options[@]}" > "$folder.log" 2>&1 \
                && grep -q 'Observed forbidden state' "$folder.log"; then
                found=yes
                break
            fi
        done
        if [ "$found" = yes ]; then
            printf 'found   %-40s %s\n' "$name" "$(sed -n 's/^\(io\.nrt4j\.[A-Za-z.]*\) .*Observed forbidden state: \(.*\)/\1: \2/p' "$folder.log" | head -n 1)"
        else
            missed=$((missed + 1))
            printf 'MISSED  %-40s %s; see %s.log\n' "$name" "$tests" "$folder"
        fi
    done 3< "$WORK/mutants.txt"
    printf '%s mutants, %s of them found\n' "$count" "$((count - missed))"
    [ "$missed" = 0 ]
}

case "$what" in
    list) list "${filter:-io\.nrt4j\..*}" ;;
    quick) run_quick ;;
    mutants) run_mutants ;;
    *) run_suite ;;
esac
