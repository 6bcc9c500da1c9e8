#!/usr/bin/env bash
# Builds the stress tests of nrt4j's concurrency (jcstress/) and runs them. Prints the folder of the HTML report; ends with 0 if every
# outcome of every test was one that may be.
#
#   scripts/jcstress.sh                       the whole suite, each thread compiled in each way (about 40 minutes on 2 processors)
#   scripts/jcstress.sh --quick               a selection, for a build (about 3 minutes)
#   scripts/jcstress.sh -t 'GateStress.*'     tests by name (a regular expression)
#   scripts/jcstress.sh --mutants [NAME...]   puts faults in, one by one: each must be found (about 6 minutes)
#   scripts/jcstress.sh --list                names of the tests
#
#   -m, --mode MODE      jcstress preset: sanity, quick, default, tough, stress (default: default)
#   -b, --budget MIN     minutes to spend on sampling, about; builds and starts of JVMs come on top (default: what the mode says)
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

mode=default
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
fi
[ -f "$WORK/classpath.txt" ] || die "not built yet"
# This checkout's classes before the installed ones.
classpath="$WORK/classes:$ROOT/target/classes:$(cat "$WORK/classpath.txt")"
native=()
[ "$(jdk_version "$home")" -lt 24 ] || native=(--enable-native-access=ALL-UNNAMED)

# Runs jcstress in a folder.
#   $1 folder, $2 class path, $3 tests, the rest: more options
jcstress() {
    local folder="$1" path="$2" tests="$3"
    shift 3
    mkdir -p "$folder"
    (cd "$folder" && "$home/bin/java" "${native[@]}" -Djava.io.tmpdir="$folder" -cp "$path" org.openjdk.jcstress.Main \
        -r "$folder/" -t "$tests" "$@")
}
