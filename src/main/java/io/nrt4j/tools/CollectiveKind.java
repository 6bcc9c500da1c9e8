package io.nrt4j.tools;

/**
 * A collective operation over a ring, as steps: what a rank sends and receives in each, and whether it adds what it received.
 *
 * <p>The data is cut into as many chunks as there are ranks. In step s of the gathering, rank r passes on the chunk that it received
 * in the step before; in the reducing, it adds the received chunk to its own before it passes the sum on.
 */
enum CollectiveKind {
    /** Every rank begins with its own chunk and ends with all of them. */
    ALL_GATHER("all-gather") {
        @Override
        int steps(final int ranks) {
            return ranks - 1;
        }

        @Override
        boolean reduces(final int step, final int ranks) {
            return false;
        }

        @Override
        int sent(final int step, final int rank, final int ranks) {
            return Math.floorMod(rank - step, ranks);
        }
    },
    /** Every rank begins with data of its own and ends with the sum of all. */
    ALL_REDUCE("all-reduce") {
        @Override
        int steps(final int ranks) {
            return 2 * (ranks - 1);
        }

        @Override
        boolean reduces(final int step, final int ranks) {
            return step < ranks - 1;
        }

        @Override
        int sent(final int step, final int rank, final int ranks) {
            // The reducing leaves rank r with the sum of chunk r + 1, which the gathering begins with.
            return Math.floorMod(reduces(step, ranks) ? rank - step : rank + 1 - (step - (ranks - 1)), ranks);
        }
    };

    private final String text;

    CollectiveKind(final String text) {
        this.text = text;
    }

    abstract int steps(int ranks);

    abstract boolean reduces(int step, int ranks);

    /** Chunk that a rank sends in a step. */
    abstract int sent(int step, int rank, int ranks);

    /** Chunk that a rank receives in a step: what its predecessor sends. */
    final int received(final int step, final int rank, final int ranks) {
        return sent(step, Math.floorMod(rank - 1, ranks), ranks);
    }

    /** Byte that a rank contributes to a reduction, so that each rank's differs. */
    static byte contribution(final byte fileByte, final int rank) {
        return (byte) (fileByte * (2 * rank + 1) + rank);
    }

    /** First byte of a chunk. */
    static long chunkStart(final int chunk, final int ranks, final long size) {
        return size * chunk / ranks;
    }

    /** Length of a chunk, in bytes. */
    static long chunkLength(final int chunk, final int ranks, final long size) {
        return chunkStart(chunk + 1, ranks, size) - chunkStart(chunk, ranks, size);
    }

    @Override
    public String toString() {
        return text;
    }
}
