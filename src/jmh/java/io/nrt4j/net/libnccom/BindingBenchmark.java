package io.nrt4j.net.libnccom;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What one post and its test cost: the transport, its bare calls, and the same calls by JNA's direct mapping. A caller in C of the
 * same library (src/test/native/nccom/nccom_caller.c) runs before each trial and prints its own figure.
 *
 * <p>An invocation is irecv, isend, test, test of 8 bytes: two posts with their tests.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@OperationsPerInvocation(2)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@State(Scope.Thread)
public class BindingBenchmark {
    private static final int LENGTH = 8;
    private static final String CALLER_ROUNDS = "1000000";

    private final NrtTensor tensor = NrtTensor.allocate(64);
    private final Memory out = new Memory(64);
    private NetTransport transport;
    private long send;
    private long recv;
    private long sendRegistration;
    private long recvRegistration;
    private Nccom nccom;
    private long listener;
    private NativeCall call;
    private final long[] pointers = new long[4];

    /** Direct mapping: one class for one library, by name. */
    static final class Direct {
        private Direct() {
        }

        static native int neuronNetIsend(long comm, long data, int size, long mhandle, long request);

        static native int neuronNetIrecv(long comm, long data, int size, long mhandle, long request);

        static native int neuronNetTest(long request, long done, long size);
    }

    @Setup
    public void connect() {
        final String library = NccomStandIn.library().toString();
        System.out.println("caller in C: " + NccomStandIn.run(List.of(
            NccomStandIn.program("nccom_caller.c").toString(), library, CALLER_ROUNDS)));
        transport = new LibnccomProvider().create(NccomStandIn.config().build());
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listening = transport.listen(0, handle);
        send = transport.connect(0, handle);
        recv = transport.accept(listening);
        sendRegistration = transport.regMr(send, tensor.address(), 64, Placement.HOST);
        recvRegistration = transport.regMr(recv, tensor.address(), 64, Placement.HOST);
        connectBare(library);
        Native.register(Direct.class, NativeLibrary.getInstance(library));
    }

    private void connectBare(final String library) {
        nccom = NccomLoader.load(library, "");
        call = new NativeCall();
        final long at = Pointer.nativeValue(out);
        int status = nccom.neuronNetListen(call, 0, call.handleAddress(), at);
        status |= nccom.neuronNetConnect(call, 0, call.handleAddress(), at + 8);
        status |= nccom.neuronNetAccept(call, out.getLong(0), at + 16);
        listener = out.getLong(0);
        pointers[0] = out.getLong(8);
        pointers[1] = out.getLong(16);
        status |= nccom.neuronNetRegMrOG(call, pointers[0], tensor.address(), 64, 4, at + 24);
        status |= nccom.neuronNetRegMrOG(call, pointers[1], tensor.address(), 64, 4, at + 32);
        pointers[2] = out.getLong(24);
        pointers[3] = out.getLong(32);
        if (status != 0) {
            throw new IllegalStateException("the stand-in does not connect");
        }
    }

    @TearDown
    public void close() {
        nccom.neuronNetDeregMrOG(call, pointers[0], pointers[2]);
        nccom.neuronNetDeregMrOG(call, pointers[1], pointers[3]);
        nccom.neuronNetCloseSend(call, pointers[0]);
        nccom.neuronNetCloseRecv(call, pointers[1]);
        nccom.neuronNetCloseListen(call, listener);
        transport.close();
        tensor.close();
        call.close();
    }

    @Benchmark
    public long transport() {
        final long received = transport.irecv(recv, tensor.address(), LENGTH, recvRegistration);
        final long sent = transport.isend(send, tensor.address() + 32, LENGTH, sendRegistration);
        return transport.test(received) + transport.test(sent);
    }

    @Benchmark
    public long bareCalls() {
        int status = nccom.neuronNetIrecv(call, pointers[1], tensor.address(), LENGTH, pointers[3], call.outAddress(0));
        final long received = call.out(0);
        status |= nccom.neuronNetIsend(call, pointers[0], tensor.address() + 32, LENGTH, pointers[2], call.outAddress(0));
        final long sent = call.out(0);
        status |= nccom.neuronNetTest(call, received, call.outAddress(0), call.outAddress(1));
        status |= nccom.neuronNetTest(call, sent, call.outAddress(0), call.outAddress(1));
        return status;
    }

    @Benchmark
    public long directMapping() {
        int status = Direct.neuronNetIrecv(pointers[1], tensor.address(), LENGTH, pointers[3], call.outAddress(0));
        final long received = call.out(0);
        status |= Direct.neuronNetIsend(pointers[0], tensor.address() + 32, LENGTH, pointers[2], call.outAddress(0));
        final long sent = call.out(0);
        status |= Direct.neuronNetTest(received, call.outAddress(0), call.outAddress(1));
        status |= Direct.neuronNetTest(sent, call.outAddress(0), call.outAddress(1));
        return status;
    }
}
