package io.nrt4j.tools;

import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.Uninterrupted;
import io.nrt4j.net.NativeWord;
import io.nrt4j.proxy.DeviceTrigger;
import java.nio.ByteBuffer;
import java.util.concurrent.locks.LockSupport;

/**
 * Plays the accelerator core's part for tests and for the demonstration: owns trigger words and semaphore words, opens triggers, waits
 * on semaphores, combines data.
 *
 * <p>Threads: one thread runs the core's program, started and ended by the core's owner; {@link #halt()} by any. The words are shared
 * with the proxy's worker, which consumes triggers and stores semaphores. {@code program} is the owner's.
 */
final class SoftwareCore implements AutoCloseable {
    private static final int RELEASED = 1;
    private static final int YIELDS = 500;
    private static final long PAUSE_NS = 20_000;

    private final NrtTensor memory;
    private final NativeWord[] triggers;
    private final NativeWord[] semaphores;
    private volatile boolean halted;
    private Thread program;

    /**
     * Makes a core whose triggers are closed and whose semaphores are 0.
     *
     * @param triggerCount   trigger words.
     * @param semaphoreCount semaphore words.
     */
    SoftwareCore(final int triggerCount, final int semaphoreCount) {
        memory = NrtTensor.allocate((long) Integer.BYTES * Math.max(1, triggerCount + semaphoreCount));
        triggers = new NativeWord[triggerCount];
        semaphores = new NativeWord[semaphoreCount];
        for (int i = 0; i < triggerCount; i++) {
            triggers[i] = NativeWord.at(memory.address() + (long) i * Integer.BYTES);
        }
        for (int i = 0; i < semaphoreCount; i++) {
            semaphores[i] = NativeWord.at(memory.address() + (long) (triggerCount + i) * Integer.BYTES);
        }
        reset();
    }

    /** Closes all triggers and clears all semaphores. While no task uses them. */
    void reset() {
        for (final NativeWord trigger : triggers) {
            trigger.store(DeviceTrigger.BLOCKED);
        }
        for (final NativeWord semaphore : semaphores) {
            semaphore.store(0);
        }
    }

    /**
     * Address of a trigger word.
     *
     * @param index from 0.
     * @return native address.
     */
    long triggerAddress(final int index) {
        return triggers[index].address();
    }

    /**
     * Address of a semaphore word.
     *
     * @param index from 0.
     * @return native address.
     */
    long semaphoreAddress(final int index) {
        return semaphores[index].address();
    }

    /**
     * Reads a trigger word.
     *
     * @param index from 0.
     * @return {@link DeviceTrigger#BLOCKED}, what {@link #release} wrote, or 0 once it is consumed.
     */
    int trigger(final int index) {
        return triggers[index].load();
    }

    /**
     * Reads a semaphore word.
     *
     * @param index from 0.
     * @return its present count.
     */
    int semaphore(final int index) {
        return semaphores[index].load();
    }

    /**
     * Opens a trigger: the program has reached the network stage.
     *
     * @param index from 0.
     */
    void release(final int index) {
        triggers[index].store(RELEASED);
    }

    /**
     * Waits until a semaphore has counted far enough.
     *
     * @param index   from 0.
     * @param atLeast count to wait for.
     * @param limitNs longest wait.
     * @return false when the core was halted or the time is over.
     */
    boolean await(final int index, final int atLeast, final long limitNs) {
        final long startNs = System.nanoTime();
        for (int looks = 0; semaphores[index].load() - atLeast < 0; looks++) {
            if (halted || System.nanoTime() - startNs > limitNs) {
                return false;
            }
            if (looks < YIELDS) {
                Thread.yield();
            } else {
                LockSupport.parkNanos(PAUSE_NS);
            }
        }
        return true;
    }

    /** Ends the present and every later wait. */
    void halt() {
        halted = true;
    }

    /**
     * Runs a program on a thread of its own.
     *
     * @param name of the thread.
     * @param code to be ended with {@link #endProgram} before the next one.
     */
    void startProgram(final String name, final Runnable code) {
        program = new Thread(code, name);
        program.setDaemon(true);
        program.start();
    }

    /**
     * Waits for the program's end; one that takes too long is halted and waited for once more.
     *
     * @param limitNs bound of each of the two waits.
     * @return false if it still runs, and uses memory that must not be freed.
     */
    boolean endProgram(final long limitNs) {
        if (program == null || Uninterrupted.join(program, limitNs)) {
            return true;
        }
        halt();
        return Uninterrupted.join(program, limitNs);
    }

    /**
     * Adds bytes to bytes, each modulo 256.
     *
     * @param target       where the sums go.
     * @param targetOffset its first byte.
     * @param source       what is added.
     * @param sourceOffset its first byte.
     * @param lengthBytes  how many.
     */
    static void add(
        final NrtTensor target, final long targetOffset, final NrtTensor source, final long sourceOffset, final int lengthBytes) {
        final ByteBuffer sums = target.view(targetOffset, lengthBytes);
        final ByteBuffer addends = source.view(sourceOffset, lengthBytes);
        for (int i = 0; i < lengthBytes; i++) {
            sums.put(i, (byte) (sums.get(i) + addends.get(i)));
        }
    }

    /** The words stay where they are under a program that could not be ended. */
    @Override
    public void close() {
        halt();
        if (program == null || !program.isAlive()) {
            memory.close();
        } else {
            memory.storage().retain();
        }
    }
}
