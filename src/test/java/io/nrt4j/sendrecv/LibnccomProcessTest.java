package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Native;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.libnccom.NccomStandIn;
import io.nrt4j.testing.ChildJvm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The engine over libnccom, played by the stand-in, in two processes; and what loading does to a JVM. */
@Tag("slow")
class LibnccomProcessTest {
    private static final Duration LIMIT = Duration.ofSeconds(40);
    private static final int MESSAGES = 500;
    private static final int MAX_BYTES = 1 << 20;

    private final EngineRig rig = new EngineRig();
    private final List<ChildJvm> children = new ArrayList<>();

    @BeforeAll
    static void compilerIsThere() {
        NccomStandIn.assumeGcc();
    }

    @AfterEach
    void closeAll() {
        children.forEach(ChildJvm::close);
        rig.close();
    }

    private ChildJvm child(final List<String> options, final String... more) {
        final String[] arguments = Stream.concat(
            Stream.of(NccomStandIn.library().toString(), Integer.toString(rig.port()), rig.lockFolder().toString()),
            Stream.of(more)).toArray(String[]::new);
        final ChildJvm child = ChildJvm.start(options, Child.class, arguments);
        children.add(child);
        return child;
    }

    /** One engine in a process of its own: LNC 0 sends to LNC 1, 500 messages, a flush, and an orderly close. */
    public static final class Child {
        private Child() {
        }

        /**
         * Runs the child.
         *
         * @param args library, port, lock folder, role (send, recv, both, signals), and names of the stand-in's settings to set to 1.
         */
        public static void main(final String[] args) {
            Native.free(Native.malloc(1)); // JNA's own start, which is not free of warnings under -Xcheck:jni
            System.out.println("ready");
            for (int i = 4; i < args.length; i++) {
                NccomStandIn.set(args[i], 1);
            }
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true)
                .bootstrapPort(Integer.parseInt(args[1])).kvLockDirectory(Path.of(args[2])).kvBindAddress("127.0.0.1")
                .transport("libnccom").set(NrtSetting.LIBNCCOM_PATH, args[0]).build();
            switch (args[3]) {
                case "send" -> send(config);
                case "recv" -> receive(config);
                case "both" -> both(config);
                default -> signals(config);
            }
            System.out.println("finished");
        }

        private static void send(final NrtConfig config) {
            try (NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config); NrtTensor tensor = NrtTensor.allocate(MAX_BYTES)) {
                EngineRig.init(engine, 0);
                final SendRecvComm comm = new SendRecvComm();
                check(engine, engine.connect("127.0.0.1", 1, 0, comm));
                EngineRig.awaitConnected(engine, comm);
                final Random random = new Random(5);
                for (int i = 0; i < MESSAGES; i++) {
                    final byte[] bytes = message(random, i);
                    tensor.write(0, bytes);
                    final SendRecvRequest request = new SendRecvRequest();
                    check(engine, engine.sendTensor(tensor, 0, bytes.length, comm, request));
                    EngineRig.awaitDone(engine, request);
                }
                check(engine, engine.close(0));
            }
        }

        private static void receive(final NrtConfig config) {
            try (NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config); NrtTensor tensor = NrtTensor.allocate(MAX_BYTES)) {
                EngineRig.init(engine, 1);
                final SendRecvComm comm = new SendRecvComm();
                check(engine, engine.accept("127.0.0.1", 0, 1, comm));
                EngineRig.awaitConnected(engine, comm);
                final Random random = new Random(5);
                for (int i = 0; i < MESSAGES; i++) {
                    final byte[] bytes = message(random, i);
                    final SendRecvRequest request = new SendRecvRequest();
                    check(engine, engine.recvTensor(tensor, 0, MAX_BYTES, comm, request));
                    final long size = EngineRig.awaitDone(engine, request);
                    check(engine, engine.flush(1));
                    if (size != bytes.length || !java.util.Arrays.equals(bytes, tensor.read(0, bytes.length))) {
                        throw new AssertionError("message " + i + " of " + bytes.length + " bytes came as " + size);
                    }
                }
                check(engine, engine.close(1));
            }
        }

        private static byte[] message(final Random random, final int index) {
            final byte[] bytes = new byte[index % 100 == 0 ? MAX_BYTES : random.nextInt(3000)];
            random.nextBytes(bytes);
            return bytes;
        }

        private static void both(final NrtConfig config) {
            final Thread receiver = new Thread(() -> receive(config));
            receiver.start();
            send(config);
            try {
                receiver.join();
            } catch (final InterruptedException ex) {
                throw new AssertionError(ex);
            }
        }

        /** Implicit null checks and safepoints, which the JVM takes as signals. */
        private static void signals(final NrtConfig config) {
            try (NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config)) {
                EngineRig.init(engine, 0);
                Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("the hook runs")));
                int caught = 0;
                for (int i = 0; i < 200_000; i++) {
                    try {
                        caught += length(i % 10 == 0 ? null : new int[1]);
                    } catch (final NullPointerException ex) {
                        caught += 2;
                    }
                    if (i % 20_000 == 0) {
                        System.gc();
                    }
                }
                System.out.println("survived " + caught);
                Thread.currentThread().join();
            } catch (final InterruptedException ex) {
                throw new AssertionError(ex);
            }
        }

        private static int length(final int[] array) {
            return array.length;
        }

        private static void check(final NrtAsyncSendRecv engine, final NrtStatus status) {
            if (status != NrtStatus.SUCCESS) {
                throw new AssertionError(status + ": " + engine.lastError());
            }
        }
    }

    private static void assertFinished(final ChildJvm child) {
        child.awaitLine("finished", LIMIT);
        assertThat(child.exitCode(LIMIT)).isZero();
        assertThat(child.lines()).noneMatch(line -> line.contains("VIOLATION"));
    }

    @Test
    void twoProcesses() {
        final ChildJvm receiver = child(List.of(), "recv");
        final ChildJvm sender = child(List.of(), "send", "CONNECT_WAITS");
        assertFinished(sender);
        assertFinished(receiver);
    }

    @Test
    void aReceiverThatDiesFailsTheSender() {
        final ChildJvm receiver = child(List.of(), "recv", "SLOW_TEST");
        final NrtAsyncSendRecv engine = rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder.transport("libnccom")
            .set(NrtSetting.LIBNCCOM_PATH, NccomStandIn.library().toString()))));
        EngineRig.init(engine, 0);
        final SendRecvComm comm = new SendRecvComm();
        assertThat(engine.connect("127.0.0.1", 1, 0, comm)).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitConnected(engine, comm);
        receiver.kill();
        receiver.exitCode(LIMIT);
        try (NrtTensor tensor = NrtTensor.allocate(8 << 20)) {
            final SendRecvRequest request = new SendRecvRequest();
            if (engine.sendTensor(tensor, 0, 8 << 20, comm, request) == NrtStatus.SUCCESS) {
                assertThat(EngineRig.awaitFailure(engine, request)).isEqualTo(NrtStatus.FAILURE);
            }
            assertThat(engine.lastError()).contains("neuronNet");
        }
    }

    @Test
    void checkedJniFindsNothing() {
        final ChildJvm child = child(List.of("-Xcheck:jni"), "both", "SOCKETS");
        assertFinished(child);
        final List<String> ours = child.lines().subList(child.lines().indexOf("ready"), child.lines().size());
        assertThat(ours).noneMatch(line -> line.contains("WARNING") || line.contains("FATAL"));
    }

    @Test
    void aLibraryThatTakesTheSignalsDoesNotEndTheJvm() {
        final ChildJvm child = child(List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:-OmitStackTraceInFastThrow"), "signals",
            "STEAL_SIGNALS");
        assertThat(child.awaitLine("survived ", LIMIT)).isEqualTo("survived " + (20_000 * 2 + 180_000));
        ProcessHandle.of(child.pid()).orElseThrow().destroy(); // which leaves the child's output open
        assertThat(child.exitCode(LIMIT)).isEqualTo(143);
        assertThat(child.lines()).contains("the hook runs").noneMatch(line -> line.contains("its own signal handler"));
    }
}
