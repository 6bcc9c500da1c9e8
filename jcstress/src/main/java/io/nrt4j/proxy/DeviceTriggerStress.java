package io.nrt4j.proxy;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import com.sun.jna.Pointer;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NativeWord;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Mode;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.Signal;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** Suite 14: the device's trigger words, in native memory. */
public final class DeviceTriggerStress {
    /** Words of memory for all states of a JVM; they are never freed. */
    private static final int PLACES = 1 << 17;
    private static final int PLACE_BYTES = 16;
    private static final NrtTensor MEMORY = NrtTensor.allocate((long) PLACES * PLACE_BYTES);
    private static int next;

    private DeviceTriggerStress() {
    }

    private static synchronized long place() {
        next = (next + 1) % PLACES;
        return MEMORY.address() + (long) next * PLACE_BYTES;
    }

    /** What the device wrote before the word is seen after it. */
    @JCStressTest
    @Outcome(id = "-1", expect = ACCEPTABLE, desc = "Not triggered yet.")
    @Outcome(id = "42", expect = ACCEPTABLE, desc = "Triggered, and the data is there.")
    @Outcome(expect = FORBIDDEN, desc = "Triggered, but the data is not there.")
    @State
    public static class DataBehindTrigger {
        private final long address = place();
        private final ByteBuffer data = new Pointer(address + 8).getByteBuffer(0, 4).order(ByteOrder.nativeOrder());
        private final NativeWord word = NativeWord.at(address);
        private final DeviceTrigger trigger = new DeviceTrigger(new long[] {address}, 1);

        public DataBehindTrigger() {
            data.putInt(0, 0);
            word.store(DeviceTrigger.BLOCKED);
        }

        @Actor
        public void device() {
            data.putInt(0, 42);
            word.store(1);
        }

        @Actor
        public void worker(final I_Result result) {
            result.r1 = trigger.canStart() ? data.getInt(0) : -1;
        }
    }

    /** Two words: the gate opens with the last one. */
    @JCStressTest
    @Outcome(id = "-1", expect = ACCEPTABLE, desc = "Not all are written yet.")
    @Outcome(id = "42", expect = ACCEPTABLE, desc = "All are written, and the data is there.")
    @Outcome(expect = FORBIDDEN, desc = "Open before the last word.")
    @State
    public static class TwoWords {
        private final long address = place();
        private final ByteBuffer data = new Pointer(address + 8).getByteBuffer(0, 4).order(ByteOrder.nativeOrder());
        private final NativeWord first = NativeWord.at(address);
        private final NativeWord second = NativeWord.at(address + 4);
        private final DeviceTrigger trigger = new DeviceTrigger(new long[] {address, address + 4}, 2);

        public TwoWords() {
            data.putInt(0, 0);
            first.store(DeviceTrigger.BLOCKED);
            second.store(DeviceTrigger.BLOCKED);
        }

        @Actor
        public void device() {
            first.store(0);
            data.putInt(0, 42);
            second.store(7);
        }

        @Actor
        public void worker(final I_Result result) {
            result.r1 = trigger.canStart() ? data.getInt(0) : -1;
        }
    }

    /** A worker that does nothing but look sees the word in the end: each look goes to memory. */
    @JCStressTest(Mode.Termination)
    @Outcome(id = "TERMINATED", expect = ACCEPTABLE, desc = "Seen.")
    @Outcome(id = "STALE", expect = FORBIDDEN, desc = "Never seen: the load was moved out of the loop.")
    @State
    public static class SeenInTheEnd {
        private final long address = place();
        private final NativeWord word = NativeWord.at(address);
        private final DeviceTrigger trigger = new DeviceTrigger(new long[] {address}, 1);

        public SeenInTheEnd() {
            word.store(DeviceTrigger.BLOCKED);
        }

        @Actor
        public void worker() {
            while (!trigger.canStart()) {
                // Looks again.
            }
        }

        @Signal
        public void device() {
            word.store(1);
        }
    }
}
