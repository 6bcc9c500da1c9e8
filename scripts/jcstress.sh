#!/usr/bin/env bash
# Builds the stress tests of nrt4j's concurrency (jcstress/) and runs them. Prints the folder of the HTML report; ends with 0 if every
# outcome of every test was one that may be.
#
#   scripts/jcstress.sh                       the whole suite
#   scripts/jcstress.sh --quick               a selection, for a build
#   scripts/jcstress.sh -t 'GateStress.*'     tests by name (a regular expression)
#   scripts/jcstress.sh --mutants [NAME...]   puts faults in, one by one: each must be found by every test that it names
#   scripts/jcstress.sh --list                names of the tests
#
#   -m, --mode MODE      jcstress preset: sanity, quick, default, tough, stress (default: the settings below; the presets from 'default'
#                        on take hours)
#   -b, --budget MIN     minutes to spend on sampling, about; builds and starts of JVMs come on top
#   -j, --jdk HOME       JDK to run on (default: the baseline, Java 17 where there is one)
#   --split yes|no       compile each thread of a test in its own way: all tests, or none (default: those without locks)
#   --no-build           run what was built before
#
# The settings, and why (options of jcstress; README.md says how long it takes):
#   -sc false            Each test is run in JVMs that only interpret, that have only C1, and only C2, the last also with its random order
#                        of things: library and test alike. Java 17 does it all with biased locking, too, as jcstress sees to.
#   -sc true             jcstress can also compile each thread's loop in its own way, in all 9 combinations; what a loop calls and does not
#                        inline is then compiled as it comes. That finds what needs an interpreted thread beside a compiled one, and is
#                        for the tests of what does without locks: under a lock, compilers have nothing to reorder.
#   -f 1 -fsm 1          One JVM for each way, one seed for the random C2 (none with -sc true, -fsm 0): ways find more than repetitions of
#                        one way.
#   -iters 1 -time 300   One iteration of 300 ms: to start a JVM and to warm it up takes longer than that already, and the outcomes of these
#                        tests come up within some thousands of samples. --budget, or --mode, for more.
#   -strideSize 64 -strideCount 8
#                        Few states at a time, since most have an engine's context in them, and an interpreter has to make a whole set. And
#                        two threads meet for sure only where a stride begins: strides four times as long gave ten times the samples, but
#                        a tenth of those in which the one came in between what the other does.
#                        Tests with threads, sockets and folders (EngineStress) get 4 and 2.
#   -pth false           The heap is not touched beforehand: that is for measurements, and takes a tenth of a second for each JVM.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

readonly WORK="$ROOT/jcstress/target"
# States of these are threads, sockets and folders: few at a time.
readonly HEAVY='io\.nrt4j\..*EngineStress\..*'
readonly LIGHT='io\.nrt4j\.(?!.*EngineStress\.).*'
# Ordered by volatile, acquiring and releasing accesses alone, in the library or in what the test looks at.
readonly BARE='io\.nrt4j\.(concurrent\.SpscRingStress\.(Publish|Full|Empty|WrapAround)|sendrecv\.(HandOffStress\.(PostedShowsRequest|StashedShowsRange|ErrorShowsCause)|CommStatusStress\..*|CompletionStress\.StaleHandle|TaskSignalStress\.PostedToTransport|TensorStress\.(CloseAgainstLastUse|UseAgainstClose))|proxy\.(ProxyQueueStress\.(DoneShowsStatus|FreeAgainstPass)|DeviceTriggerStress\..*)|net\.loopback\.LoopbackDataStress\.(DoneShowsSize|HandleAgainstReuse))$'
# The selection for a build: from each suite what another of its tests does not nearly say too.
readonly QUICK='io\.nrt4j\.(concurrent\.(SpscRingStress\.WrapAround|LockedStackStress\.PopPop)|sendrecv\.(GateStress\.HotBehindCold|HandOffStress\.(PostedShowsRequest|PolledWhileServicePosts)|CompletionStress\.(TwoPollers|StaleHandle)|TaskSignalStress\.(Post|Close)|MrCacheStress\.RegisteredOnce|CommStatusStress\.Connected|ClosingStress\.(ColdPost|Connect)|TensorStress\.PostAgainstClose)|proxy\.(SharedProxyQueuesStress\.AcquireAgainstLastRelease|ProxyQueueStress\.(AppendAgainstSleep|DoneShowsStatus|TwoConsumers)|DeviceTriggerStress\.DataBehindTrigger)|net\.libfabric\.NeighboursStress\.ReachAgainstEnd)$'
readonly QUICK_HEAVY='io\.nrt4j\.(sendrecv\.LifeCycleEngineStress\.InitAgainstClose|kv\.KvLeaderEngineStress\.TwoStarters|net\.libfabric\.ShmRescueEngineStress\.LookAgainstForget|proxy\.ProxyEngineStress\.StopAgainstStep)$'

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
case "$what" in
    quick | mutants) [ -z "$mode$budget$split$filter" ] || die "--$what is as it is: no mode, budget, split or filter" 2 ;;
esac
case "$split" in
    '' | yes | no) ;;
    *) die "--split is yes or no, not '$split'" 2 ;;
esac
[ -z "$budget" ] || [[ "$budget" =~ ^[1-9][0-9]*$ ]] || die "a budget is a number of minutes, not '$budget'" 2
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

# Runs jcstress in a folder. What tests that hang or are killed leave of theirs goes with its temporary folder.
#   $1 folder, $2 class path, $3 tests, the rest: more options
jcstress() {
    local folder="$1" path="$2" tests="$3" code=0
    shift 3
    mkdir -p "$folder/tmp"
    (cd "$folder" && timeout "$limit" "$home/bin/java" "${native[@]}" -Djava.io.tmpdir="$folder/tmp" -cp "$path" org.openjdk.jcstress.Main \
        -r "$folder/" -t "$tests" "$@") || code=$?
    rm -rf "$folder/tmp"
    return "$code"
}

# Sampling, one argument a line: what the preset says, or what a budget in minutes comes to for each JVM, or the default.
#   $1 budget or nothing, $2 JVMs, $3 tests: light, bare or heavy
sampling() {
    if [ -z "$mode" ]; then
        printf '%s\n' -m quick -f 1 -fsm "$([ "$3" = bare ] && echo 0 || echo 1)" -pth false
    else
        printf '%s\n' -m "$mode"
    fi
    if [ -n "$1" ]; then
        printf '%s\n' -iters 1 -time "$(($1 * 60000 / ($2 + 1) + 1))"
    elif [ -z "$mode" ]; then
        printf '%s\n' -iters 1 -time 300
    fi
    if [ "$3" = heavy ]; then
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
# often as the preset forks.
#   $1 tests: light, bare or heavy, $2 true: split compilation
ways() {
    local plain=3 random=1
    [ "$2" = false ] || { plain=9 random=5; }
    case "$mode" in
        '') [ "$1" != bare ] || random=0 ;;
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

# The light tests, those without locks once more with split compilation, and the heavy ones. A filter picks among all.
run_suite() {
    local failed=no kind folder log count=0 jvms=0 kinds=() sample
    local -A selection=([light]="$LIGHT" [bare]="$BARE" [heavy]="$HEAVY")
    local -A compile=([light]=false [bare]=true [heavy]=false)
    [ -z "$split" ] || selection[bare]='^$'
    [ "$split" != yes ] || compile=([light]=true [heavy]=true)
    for kind in light bare heavy; do
        [ -z "$filter" ] || selection[$kind]="(?=.*(?:$filter))${selection[$kind]}"
        count="$(list "${selection[$kind]}" | wc -l)"
        [ "$count" -gt 0 ] || continue
        kinds+=("$kind")
        jvms=$((jvms + count * $(ways "$kind" "${compile[$kind]}")))
    done
    [ ${#kinds[@]} -gt 0 ] || die "no test matches '$filter'" 2
    count=0
    for kind in "${kinds[@]}"; do
        folder="$WORK/report-java$(jdk_version "$home")-$kind"
        log="$folder.log"
        mapfile -t sample < <(sampling "$budget" "$jvms" "$kind")
        jcstress "$folder" "$classpath" "${selection[$kind]}" -sc "${compile[$kind]}" "${sample[@]}" | tee "$log" || failed=yes
        count=$((count + $(passed "$log")))
        report "$folder"
    done
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
    # All threads of a test compiled in the same way, no random C2, one short iteration.
    local sample=(-m quick -sc false -f 1 -fsm 0 -iters 1 -time 100 -pth false)
    jcstress "$folder" "$classpath" "$QUICK" "${sample[@]}" -strideSize 64 -strideCount 2 > "$WORK/quick.log" 2>&1 || failed=yes
    jcstress "$folder-heavy" "$classpath" "$QUICK_HEAVY" "${sample[@]}" -strideSize 4 -strideCount 2 > "$WORK/quick-heavy.log" 2>&1 || failed=yes
    if [ "$failed" = yes ]; then
        cat "$WORK/quick.log" "$WORK/quick-heavy.log"
    fi
    report "$folder"
    report "$folder-heavy"
    conclude "$(($(passed "$WORK/quick.log") + $(passed "$WORK/quick-heavy.log")))" "$failed"
}

# How many results a log counts as passed.
#   $1 log
passed() {
    local count
    count="$(sed -n 's/^(Results: [0-9]* planned; \([0-9]*\) passed.*/\1/p' "$1" | tail -n 1)"
    printf '%s\n' "${count:-0}"
}

# Each mutant's class before the real one: every test that it names must see an outcome that is forbidden.
run_mutants() {
    local name tests all pairs=0 missed=0 count=0
    limit=3m
    rm -rf "$WORK/mutants"
    "$home/bin/java" -cp "$classpath" io.nrt4j.stress.Mutants "$ROOT/jcstress/mutants" "$ROOT" "$WORK/mutants" "${names[@]}" \
        > "$WORK/mutants.txt" || die "the mutants could not be made"
    all="$(list 'io\.nrt4j\..*')"
    while IFS=$'\t' read -r name tests <&3; do
        count=$((count + 1))
        grep -q -E "$tests" <<< "$all" || die "no test matches that of mutant $name"
        find_mutant "$name" light "$(grep -E "$tests" <<< "$all" | grep -v EngineStress)"
        find_mutant "$name" heavy "$(grep -E "$tests" <<< "$all" | grep EngineStress)"
    done 3< "$WORK/mutants.txt"
    printf '%s mutants: %s of %s tests failed as they must\n' "$count" "$((pairs - missed))" "$pairs"
    [ "$missed" = 0 ]
}

# Runs the tests of a mutant until each has failed: three tries, each with more samples. Counts in 'pairs' and 'missed'.
#   $1 mutant, $2 tests: light or heavy, $3 their names, one a line, or nothing
find_mutant() {
    local name="$1" kind="$2" left="$3" folder="$WORK/mutants/$1-report-$2" try test seen still options
    for try in 1 2 3; do
        [ -n "$left" ] || return 0
        options=(-sc false -f 1 -fsm 0 -iters 1 -time "$((300 * try * try))"
            -jvmArgs "-XX:-TieredCompilation -Djava.io.tmpdir=$folder/tmp${native[*]:+ ${native[*]}}")
        # Small strides at first: with a wake-up lost, each state costs time.
        if [ "$kind" = heavy ]; then
            options+=(-strideSize 4 -strideCount 2)
        else
            options+=(-strideSize "$((64 * try))" -strideCount "$((4 * try * try))")
        fi
        jcstress "$folder" "$WORK/mutants/$name:$classpath" "^($(sed 's/\./\\./g' <<< "$left" | paste -s -d '|'))\$" "${options[@]}" \
            > "$folder-$try.log" 2>&1 || true
        still=
        while read -r test; do
            seen="$(sed -n "s/^${test//./\\.} .*Observed forbidden state: \(.*\)/\1/p" "$folder-$try.log" | head -n 1)"
            if [ -n "$seen" ]; then
                pairs=$((pairs + 1))
                printf 'found   %-40s %s: %s\n' "$name" "$test" "$seen"
            else
                still+="${still:+$'\n'}$test"
            fi
        done <<< "$left"
        left="$still"
    done
    while [ -n "$left" ] && read -r test; do
        pairs=$((pairs + 1))
        missed=$((missed + 1))
        printf 'MISSED  %-40s %s; see %s-*.log\n' "$name" "$test" "$folder"
    done <<< "$left"
}

case "$what" in
    list) list "${filter:-io\.nrt4j\..*}" ;;
    quick) run_quick ;;
    mutants) run_mutants ;;
    *) run_suite ;;
esac
