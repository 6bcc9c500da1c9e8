package io.nrt4j.net.loopback;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import com.sun.jna.Pointer;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import java.nio.ByteBuffer;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Beside suite 4: how the two ends of a loopback connection share its requests, and how handles are looked up without a lock. */
public final class LoopbackDataStress {
    /** Bytes of memory for all states of a JVM; they are never freed. */
    private static final int PLACES = 1 << 16;
    private static final NrtTensor MEMORY = NrtTensor.allocate(2L * PLACES);
    private static int next;

    private LoopbackDataStress() {
    }

    private static synchronized long place() {
        next = (next + 1) % PLACES;
        return MEMORY.address() + 2L * next;
    }

    /** Two ends that are connected, each with a byte of memory. */
    abstract static class Connected {
        final long address = place();
        final ByteBuffer bytes = new Pointer(address).getByteBuffer(0, 2);
        final LoopbackTransport transport = new LoopbackTransport();
        final long sender;
        final long receiver;
        final long sendMemory;
        final long recvMemory;

        Connected() {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(0, handle);
            transport.connect(0, handle);
            receiver = transport.accept(listener);
            sender = transport.connect(0, handle);
            sendMemory = transport.regMr(sender, address, 1, Placement.HOST);
            recvMemory = transport.regMr(receiver, address + 1, 1, Placement.HOST);
            bytes.put(0, (byte) 0).put(1, (byte) 0);
        }

        final long send() {
            bytes.put(0, (byte) 42);
            return transport.isend(sender, address, 1, sendMemory);
        }

        final long receive() {
            return transport.irecv(receiver, address + 1, 1, recvMemory);
        }

        final String received(final long request) {
            final long size = transport.test(request);
            return size == NetTransport.PENDING ? "pending" : size + " " + bytes.get(1);
        }
    }

    /** Who sees a receive done without taking the lock sees its size and its bytes. */
    @JCStressTest
    @Outcome(id = "pending", expect = ACCEPTABLE, desc = "Not sent yet.")
    @Outcome(id = "1 42", expect = ACCEPTABLE, desc = "Done, and all of it is there.")
    @Outcome(expect = FORBIDDEN, desc = "Done, but size or bytes are not there.")
    @State
    public static class DoneShowsSize extends Connected {
        private final long request = receive();

        @Actor
        public void sender() {
            send();
        }

        @Actor
        public void receiver(final L_Result result) {
            result.r1 = received(request);
        }

        @Arbiter
        public void end() {
            transport.close();
        }
    }

    /** Both ends post at once: whoever comes second carries the match out. */
    @JCStressTest
    @Outcome(id = "1, 1 42", expect = ACCEPTABLE, desc = "Matched once, and done at both ends.")
    @Outcome(expect = FORBIDDEN, desc = "Each took itself for the first, or the match was carried out twice.")
    @State
    public static class PostPost extends Connected {
        private long sent;
        private long received;

        @Actor
        public void sender() {
            sent = send();
        }

        @Actor
        public void receiver() {
            received = receive();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r1 = transport.test(sent);
            result.r2 = received(received);
            transport.close();
        }
    }

    /** A handle is looked up while its object goes and another one takes its place. */
    @JCStressTest
    @Outcome(id = "(first|none), (first|second|none)", expect = ACCEPTABLE, desc = "What was at the place at some time, as it was put in.")
    @Outcome(expect = FORBIDDEN, desc = "A handle that found its successor, or an object without its handle.")
    @State
    public static class HandleAgainstReuse {
        private final HandleTable<Named> table = new HandleTable<>(64);
        private final Named first = new Named("first");
        private final long handle = table.add(first);

        /** An object that knows its name. */
        static final class Named extends HandleTable.Entry {
            private final String name;

            Named(final String name) {
                this.name = name;
            }

            String known() {
                return handle() == 0 ? "without a handle" : name;
            }
        }

        @Actor
        public void closer() {
            table.remove(first);
            table.add(new Named("second"));
        }

        @Actor
        public void caller(final LL_Result result) {
            final Named byHandle = table.get(handle);
            final Named byPlace = table.at(0);
            result.r1 = byHandle == null ? "none" : byHandle.known();
            result.r2 = byPlace == null ? "none" : byPlace.known();
        }
    }
}
