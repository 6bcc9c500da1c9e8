package io.nrt4j.net.libfabric;

import com.sun.jna.Native;
import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.ChildJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;

/**
 * The other process of the two-process tests: obeys commands on standard input, answers on standard output, and drives its
 * transport all the time. Commands: {@code listen}, {@code connect <handle>}, {@code recv <count> <length>},
 * {@code send <count> <length>}, {@code sum}, {@code exit}, {@code return}; {@code spare} puts the communicator aside, so that another
 * one can be made, and {@code close} closes it; {@code refill} uses the memory for something else, and {@code changed} tells whether it
 * was left alone since; {@code flood} sends more on the control connections than a process that is stopped can take.
 */
final class FabricChild {
    private static final long MIN_BYTES = 1 << 20;
    private static final byte REFILL = 0x55;
    /** Of the first message of a sender that fills its memory with {@link #fill}: not 0. */
    private static final int PART = (1 << 20) + 7;
    private static final int FLOOD_FRAMES = 20_000;

    private final LibfabricTransport transport;
    private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
    private final List<Long> pending = new ArrayList<>();
    private long listen;
    private boolean connecting;
    private long comm;
    private long spare;
    private boolean watching;
    private boolean sender;
    private NrtTensor memory;
    private long registration;
    private int done;
    private int failed;
    private int total;

    private FabricChild(final String provider) {
        transport = new LibfabricTransport(FabricPair.config(provider));
    }

    /** Starts one and waits until it is ready. */
    static ChildJvm start(final List<String> jvmOptions, final String provider) {
        final ChildJvm child = ChildJvm.start(jvmOptions, FabricChild.class, provider);
        child.awaitLine("ready", Duration.ofSeconds(30));
        return child;
    }

    /**
     * Runs until told to end.
     *
     * @param args provider, and {@code survive} to provoke signals only.
     * @throws Exception when something is wrong.
     */
    public static void main(final String[] args) throws Exception {
        if (args.length > 1 && "survive".equals(args[1])) {
            survive(args[0]);
            return;
        }
        System.out.println("JNA is there, for pointers of " + Native.POINTER_SIZE + " bytes");
        final FabricChild child = new FabricChild(args[0]);
        final Thread reader = new Thread(child::readCommands, "commands");
        reader.setDaemon(true);
        reader.start();
        System.out.println("ready");
        while (child.step()) {
            Thread.onSpinWait();
        }
    }

    /** Implicit null checks and safepoint polls, which need the JVM's own SIGSEGV handler. */
    private static void survive(final String provider) {
        Libfabric.load(System.getProperty("nrt4j.libfabric.path", ""));
        System.out.println("loaded: " + provoke());
        try (NetTransport open = new LibfabricTransport(FabricPair.config(provider))) {
            System.out.println("opened " + open.name() + ": " + provoke());
        }
        System.out.println("closed: " + provoke());
    }

    private static int provoke() {
        final int[][] arrays = new int[1024][];
        int caught = 0;
        for (int round = 0; round < 200; round++) {
            for (int i = 0; i < arrays.length; i++) {
                arrays[i] = i % 100 == 99 ? null : new int[] {i};
            }
            for (final int[] array : arrays) {
                try {
                    caught += lengthOf(array) == 1 ? 0 : 1;
                } catch (final NullPointerException ex) {
                    caught++;
                }
            }
            if (round % 10 == 0) {
                System.gc();
            }
        }
        return caught;
    }

    private static int lengthOf(final int[] array) {
        return array.length;
    }

    private void readCommands() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(line);
            }
        } catch (final IOException ex) {
            System.out.println("no more commands: " + ex);
        }
        commands.add("exit");
    }

    private boolean step() {
        final String command = commands.poll();
        if (command != null && !obey(command.split(" "))) {
            return false;
        }
        if (listen != 0 && comm == 0) {
            comm = transport.accept(listen);
            if (comm != 0) {
                System.out.println("accepted");
            }
        }
        if (connecting && comm == 0) {
            comm = transport.connect(0, handle);
            if (comm != 0) {
                System.out.println("connected");
            }
        }
        transport.progress();
        testPending();
        if (pending.isEmpty()) {
            LockSupport.parkNanos(50_000);
        }
        return true;
    }

    private boolean obey(final String[] words) {
        switch (words[0]) {
            case "listen" -> {
                listen = transport.listen(0, handle);
                System.out.println("handle " + HexFormat.of().formatHex(handle));
            }
            case "connect" -> {
                System.arraycopy(HexFormat.of().parseHex(words[1]), 0, handle, 0, handle.length);
                sender = true;
                connecting = true;
            }
            case "spare" -> {
                spare = comm;
                comm = 0;
                listen = 0;
                connecting = false;
                System.out.println("set aside");
            }
            case "close" -> {
                if (sender) {
                    transport.closeSend(spare);
                } else {
                    transport.closeRecv(spare);
                }
                System.out.println("closed");
            }
            case "refill" -> {
                memory.write(0, refilled());
                System.out.println("refilled");
            }
            case "changed" -> System.out.println("changed " + (Arrays.mismatch(memory.read(0, (int) memory.sizeBytes()), refilled()) >= 0));
            case "flood" -> flood();
            case "recv", "send" -> post(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "sum" -> System.out.println("sum " + Arrays.hashCode(memory.read(0, (int) memory.sizeBytes())));
            case "return" -> {
                return false; // without closing: the shutdown hook must do it
            }
            case "exit" -> {
                transport.close();
                return false;
            }
            default -> System.out.println("what is " + words[0] + "?");
        }
        return true;
    }

    private byte[] refilled() {
        final byte[] bytes = new byte[(int) memory.sizeBytes()];
        Arrays.fill(bytes, REFILL);
        return bytes;
    }

    private void flood() {
        final MessageEngine engine = transport.engine();
        engine.lock.lock();
        try {
            for (final ControlConnection connection : engine.control().connections()) {
                for (int i = 0; i < FLOOD_FRAMES; i++) {
                    engine.control().send(connection, ControlFrame.of(ControlFrame.COMM_ABANDONED, 0, 0, ""));
                }
            }
        } finally {
            engine.lock.unlock();
        }
        System.out.println("flooded");
    }

    private void post(final int count, final int length) {
        if (memory == null) {
            memory = NrtTensor.allocate(Math.max(MIN_BYTES, (long) count * length));
            if (sender) {
                final byte[] bytes = new byte[(int) memory.sizeBytes()];
                fill(bytes);
                memory.write(0, bytes);
            }
            registration = FabricPair.register(transport, comm, memory);
        }
        for (int i = 0; i < count; i++) {
            final long address = memory.address() + (long) i * length;
            final long request = sender ? transport.isend(comm, address, length, registration)
                : transport.irecv(comm, address, length, registration);
            pending.add(request);
        }
        watching = !sender && memory.sizeBytes() > PART;
        total = count;
        done = 0;
        failed = 0;
        System.out.println("posted " + count);
    }

    /** What a sending child sends. */
    static void fill(final byte[] bytes) {
        final ByteBuffer buffer = ByteBuffer.wrap(bytes);
        for (int i = 0; i + 4 <= bytes.length; i += 4) {
            buffer.putInt(i, i * 31);
        }
    }

    private void testPending() {
        if (watching && memory.read(PART, 1)[0] != 0) {
            watching = false;
            System.out.println("part arrived");
        }
        for (int i = pending.size() - 1; i >= 0; i--) {
            try {
                if (transport.test(pending.get(i)) == NetTransport.PENDING) {
                    continue;
                }
                done++;
            } catch (final NrtException ex) {
                if (failed++ == 0) {
                    System.out.println("first failure: " + ex.getMessage());
                }
            }
            pending.remove(i);
        }
        if (total > 0 && pending.isEmpty()) {
            System.out.println("done " + done + " failed " + failed);
            total = 0;
        }
    }
}
