#!/usr/bin/env bash
# Builds and tests everything: the whole 'mvn verify' on the baseline JDK (17), then, where there is a JDK 25, the tests on it but
# for those that take long.
# Ends with the names of the tests that were skipped and Surefire's own summary lines, the baseline's last.
#
# The tests of the libfabric transport need libfabric1, gcc, libfabric-dev, libfabric-bin and iproute2 of Debian: what is missing
# is installed when this runs as root where there is apt-get, else those tests are skipped, visibly.
#
#   scripts/test.sh            everything
#   scripts/test.sh --all      the tests that take long on JDK 25, too
#   scripts/test.sh --quick    without the tests that take long and the stress tests, and on the baseline only
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lib.sh"

quick=no
newest_options=(-DexcludedGroups=slow)
for option in "$@"; do
    case "$option" in
        --quick) quick=yes ;;
        --all) newest_options=() ;;
        -h | --help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) die "unknown option '$option', see --help" 2 ;;
    esac
done

need_maven
need_libfabric_tests
if have_libfabric; then
    printf 'libfabric: its tests run for real%s\n' "$(fi_info --version 2> /dev/null | sed -n 's/^libfabric: \(.*\)/, on libfabric \1/p')"
else
    printf 'SKIP: the tests of the libfabric transport: there is no libfabric.so.1\n'
fi
baseline="$(find_baseline_jdk)"
newest="$(find_jdk 25 25)"
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
failed=no

# Runs Maven on a JDK and keeps its output; the build goes on to the next JDK when it fails.
#   $1 name of the log, $2 JDK home, the rest: Maven's arguments
run_maven() {
    local name="$1" home="$2"
    shift 2
    printf '\n== Java %s: %s\n' "$(jdk_version "$home")" "$home"
    if ! JAVA_HOME="$home" mvn -B -Dstyle.color=never -f "$ROOT/pom.xml" "$@" 2>&1 | tee "$logs/$name"; then
        failed=yes
    fi
}

# Surefire's last summary line, without Maven's prefix.
summary() {
    sed -n 's/^\[[A-Z]*\] \(Tests run: [0-9]*, Failures: [0-9]*, Errors: [0-9]*, Skipped: [0-9]*\)$/\1/p' "$logs/$1" | tail -n 1
}

# Names of the tests that Surefire skipped, from its XML reports in a build directory, so that no skip goes unseen.
skipped() {
    local reports=("$ROOT/$1"/surefire-reports/TEST-*.xml)
    [ -f "${reports[0]}" ] || return 0
    awk '
        /<testcase / {
            name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name)
            class = $0; sub(/.* classname="/, "", class); sub(/".*/, "", class)
        }
        /<skipped/ {
            why = ""
            if ($0 ~ /<skipped[^>]* message="/) {
                why = $0; sub(/.*<skipped[^>]* message="/, "", why); sub(/".*/, "", why); why = ": " why
            }
            print "SKIPPED: " class "." name why
        }' "${reports[@]}"
}

# How the tests of the libfabric transport went, by their reports. Where libfabric is, some must have run.
#   $1 build directory
fabric_summary() {
    local reports="$ROOT/$1/surefire-reports" counts run skipped
    [ -d "$reports" ] || return 0
    counts="$(find "$reports" -name '*.txt' \( -path '*Fabric*' -o -path '*libfabric*' -o -path '*TwoProcess*' -o -path '*TwoHosts*' \) \
        -exec sed -n 's/^Tests run: \([0-9]*\),.*Skipped: \([0-9]*\),.*/\1 \2/p' {} + \
        | awk '{run += $1 - $2; skipped += $2} END {print run + 0, skipped + 0}')"
    run="${counts% *}"
    skipped="${counts#* }"
    if ! have_libfabric; then
        printf 'SKIP: the tests of the libfabric transport: libfabric is not here, see above how to install it\n'
    elif [ "$run" = 0 ]; then
        printf 'FAILED: libfabric is here, yet none of its tests has run\n'
        failed=yes
    else
        printf 'libfabric: %s tests have run for real, %s skipped\n' "$run" "$skipped"
    fi
}

# The runnable jar must start, and say nothing on standard error.
try_jar() {
    local home="$1" jar noise
    jar="$(tools_jar)"
    if [ -z "$jar" ]; then
        printf 'FAILED: the build made no nrt4j-*-tools.jar\n'
        failed=yes
    elif ! noise="$("$home/bin/java" -jar "$jar" info 2>&1 > /dev/null)" || [ -n "$noise" ]; then
        printf 'FAILED: java -jar %s info on Java %s: %s\n' "$jar" "$(jdk_version "$home")" "$noise"
        failed=yes
    else
        printf 'java -jar %s info runs quietly on Java %s\n' "$(basename "$jar")" "$(jdk_version "$home")"
    fi
}

# One clean build: a class that is gone from the sources must not live on in the tests.
if [ "$quick" = yes ]; then
    run_maven baseline "$baseline" clean verify -DexcludedGroups=slow
else
    run_maven baseline "$baseline" clean verify
fi
try_jar "$baseline"

if [ "$quick" = yes ]; then
    printf '\nSKIP: Java 25 (--quick)\n'
elif [ -z "$newest" ]; then
    printf '\nSKIP: Java 25: there is no JDK 25 in JAVA25_HOME, under /usr/lib/jvm or on the path\n'
elif [ "$newest" = "$baseline" ]; then
    printf '\nSKIP: Java 25: it is the baseline here\n'
else
    run_maven newest "$newest" test -DbuildDirectory=target/java25 "${newest_options[@]}"
    try_jar "$newest"
fi

# The stress tests' selection, on the baseline.
if [ "$quick" = yes ]; then
    printf '\nSKIP: stress tests (--quick)\n'
else
    printf '\n== Stress tests\n'
    "$ROOT/scripts/jcstress.sh" --quick --jdk "$baseline" || failed=yes
fi

printf '\n'
skipped target
[ ! -f "$logs/newest" ] || skipped target/java25
fabric_summary target
[ ! -f "$logs/newest" ] || printf 'Java %s:\n%s\n' "$(jdk_version "$newest")" "$(summary newest)"
[ "$failed" = no ] || printf 'FAILED, see above\n'
printf 'Java %s:\n%s\n' "$(jdk_version "$baseline")" "$(summary baseline)"
[ "$failed" = no ]
