package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetworkProxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * What one collective operation of one rank hands to the driver: its descriptor lists by stream and block, its trigger words, the
 * semaphores of its barrier. Immutable but for {@code networkOwner}; it may be executed any number of times, one after another.
 *
 * <p>Threads: any; {@code networkOwner} is the worker's: the network task that is using the context's blocks.
 *
 * <p>Ports the parts of {@code enc_context} and {@code encd_context} that the driver reads (glb_comm +0x670d30; the policy fields
 * +0x108, +0x10c and +0x380).
 */
public final class EncContext {
    private final GlobalComm comm;
    private final int[][] blockIds;
    private final FifoSet[][] fifoSets;
    private final DeviceTrigger trigger;
    private final NativeWord[] barrierDoneSemaphores;
    private final boolean skipsNetwork;
    private final boolean waitsForDevice;
    private ProxyTask networkOwner;

    private EncContext(final Builder builder) {
        comm = builder.comm;
        blockIds = new int[builder.streams.size()][];
        fifoSets = new FifoSet[blockIds.length][];
        for (int stream = 0; stream < blockIds.length; stream++) {
            final List<Block> blocks = builder.streams.get(stream);
            blockIds[stream] = blocks.stream().mapToInt(Block::id).toArray();
            fifoSets[stream] = blocks.stream().map(Block::set).toArray(FifoSet[]::new);
        }
        trigger = new DeviceTrigger(builder.triggerAddresses, builder.streamsN);
        barrierDoneSemaphores = builder.barrierDoneSemaphores.stream().map(NativeWord::at).toArray(NativeWord[]::new);
        skipsNetwork = builder.skipsNetwork;
        waitsForDevice = builder.streamsN > 0;
    }

    private record Block(int id, FifoSet set) {
    }

    /**
     * Starts a context that has no blocks, waits for no device and stores no semaphore.
     *
     * @param comm communicator that its tasks run on.
     * @return a builder.
     */
    public static Builder builder(final GlobalComm comm) {
        return new Builder(comm);
    }

    /**
     * Communicator that the context's tasks run on.
     *
     * @return never null.
     */
    public GlobalComm comm() {
        return comm;
    }

    /** Streams that have blocks or are left out before one that has. */
    int streams() {
        return blockIds.length;
    }

    int blocks(final int stream) {
        return blockIds[stream].length;
    }

    int blockId(final int stream, final int at) {
        return blockIds[stream][at];
    }

    FifoSet fifoSet(final int stream, final int at) {
        return fifoSets[stream][at];
    }

    DeviceTrigger trigger() {
        return trigger;
    }

    NativeWord[] barrierDoneSemaphores() {
        return barrierDoneSemaphores;
    }

    boolean skipsNetwork() {
        return skipsNetwork;
    }

    boolean waitsForDevice() {
        return waitsForDevice;
    }

    /** Takes the context's blocks for a network task; false while an earlier execution uses them. Worker only. */
    boolean acquireNetwork(final ProxyTask task) {
        if (networkOwner == null) {
            networkOwner = task;
        }
        return networkOwner == task;
    }

    /** Gives the blocks back, if the task has them. Worker only. */
    void releaseNetwork(final ProxyTask task) {
        if (networkOwner == task) {
            networkOwner = null;
        }
    }

    @Override
    public String toString() {
        return "context " + Integer.toHexString(System.identityHashCode(this)) + " of " + comm;
    }

    /** Collects a context's parts. Not safe for use by several threads. */
    public static final class Builder {
        private final GlobalComm comm;
        private final List<List<Block>> streams = new ArrayList<>();
        private long[] triggerAddresses = new long[0];
        private int streamsN;
        private final List<Long> barrierDoneSemaphores = new ArrayList<>();
        private boolean skipsNetwork;

        private Builder(final GlobalComm comm) {
            this.comm = Objects.requireNonNull(comm);
        }

        /**
         * Adds the next block of a stream. The blocks of a stream run in the order in which they are added.
         *
         * @param stream     0 to 3.
         * @param basicBlock number of the block, at least 0; no other context of the communicator may use it on this stream at the
         *                   same time.
         * @param set        its descriptors.
         * @return this.
         */
        public Builder block(final int stream, final int basicBlock, final FifoSet set) {
            if (stream < 0 || stream >= NetworkProxy.MAX_STREAMS || basicBlock < 0) {
                throw new NrtException(NrtStatus.INVALID, "no block " + basicBlock + " on stream " + stream);
            }
            while (streams.size() <= stream) {
                streams.add(new ArrayList<>());
            }
            streams.get(stream).add(new Block(basicBlock, Objects.requireNonNull(set)));
            return this;
        }

        /**
         * Lets the tasks wait until the device has written every word. Both tasks of an execution look at the words and consume them;
         * so they may be closed again only when both tasks are past their triggers, at the latest when both are done.
         *
         * @param addresses addresses of the words; those from {@code count} on are never read.
         * @param count     0 to 4; 0 is not to wait.
         * @return this.
         */
        public Builder trigger(final long[] addresses, final int count) {
            triggerAddresses = addresses.clone();
            streamsN = count;
            return this;
        }

        /**
         * Adds a word that the barrier's leader stores 1 into when all ranks have arrived.
         *
         * @param address of a 32-bit word; at most four of them.
         * @return this.
         */
        public Builder barrierDoneSemaphore(final long address) {
            if (barrierDoneSemaphores.size() == DeviceTrigger.MAX_WORDS) {
                throw new NrtException(NrtStatus.INVALID, "a barrier has at most " + DeviceTrigger.MAX_WORDS + " semaphores");
            }
            barrierDoneSemaphores.add(address);
            return this;
        }

        /**
         * Skips the network stage altogether. No setting reaches this: {@code NEURON_RT_DBG_EARLY_COMPLETION} lets an op-FIFO honour
         * its operations' early send completion, which is another thing.
         *
         * @param skip true ends the network task in its first step.
         * @return this.
         */
        public Builder skipNetwork(final boolean skip) {
            skipsNetwork = skip;
            return this;
        }

        /**
         * Makes the context.
         *
         * @return an immutable context.
         * @throws NrtException INVALID when a word's address cannot be.
         */
        public EncContext build() {
            return new EncContext(this);
        }
    }
}
