/** The libfabric transport beside what it is measured by: {@code scripts/bench.sh --fabric}. */
package io.nrt4j.bench;
