package io.nrt4j.kv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.FileLockInterruptionException;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;

/**
 * The file whose exclusive lock makes a process the leader of its user and port.
 *
 * <p>The kernel's record locks belong to the process, and closing <em>any</em> descriptor of the file drops them. Therefore a fair
 * semaphore per file, for the whole JVM, is taken before the file is ever opened: at most one descriptor of it exists in this process,
 * and several engine instances of one JVM elect a leader like processes do.
 *
 * <p>Threads: one at a time. The semaphores are shared by all instances; a holder is an instance, not a thread.
 */
final class KvLockFile {
    private static final Map<Path, Semaphore> TURNS = new ConcurrentHashMap<>();
    private static final Set<PosixFilePermission> OWNER_ONLY = PosixFilePermissions.fromString("rw-------");
    private static final long POLL_MS = 20;

    private final Path path;
    private final long uid;
    private final Semaphore turn;
    private boolean turnHeld;
    private FileChannel channel;
    private Object fileKey;
    private FileLock lock;

    private KvLockFile(final Path path, final long uid) {
        this.path = path;
        this.uid = uid;
        turn = TURNS.computeIfAbsent(path, any -> new Semaphore(1, true));
    }

    /**
     * The lock file of this user and a port, looked at but not opened.
     *
     * @param folder where lock files are.
     * @param port   of the server that it elects.
     * @return not held.
     * @throws NrtException FAILURE with the path and the reason if it cannot be used.
     */
    static KvLockFile of(final Path folder, final int port) {
        final long uid = KvUser.id();
        final String name = "nrt_kv_store_server_lock_uid_" + Long.toUnsignedString(uid) + "_port_" + port;
        final Path realFolder;
        try {
            realFolder = folder.toRealPath();
        } catch (final NoSuchFileException ex) {
            throw unusable(folder.resolve(name), "its folder does not exist", ex);
        } catch (final IOException ex) {
            throw unusable(folder.resolve(name), ex.getMessage(), ex);
        }
        final KvLockFile file = new KvLockFile(realFolder.resolve(name), uid);
        file.check();
        return file;
    }

    private void check() {
        final Path folder = path.getParent();
        if (!Files.isDirectory(folder)) {
            throw unusable(path, "its folder is not a folder", null);
        }
        final BasicFileAttributes attributes;
        try {
            attributes = Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        } catch (final NoSuchFileException ex) {
            if (!Files.isWritable(folder) || !Files.isExecutable(folder)) {
                throw unusable(path, "no permission to create it", ex);
            }
            return;
        } catch (final IOException ex) {
            throw unusable(path, String.valueOf(ex.getMessage()), ex);
        }
        if (attributes.isSymbolicLink()) {
            throw unusable(path, "it is a symbolic link", null);
        }
        if (!attributes.isRegularFile()) {
            throw unusable(path, attributes.isDirectory() ? "it is a folder" : "it is not a regular file", null);
        }
        final long owner = KvUser.owner(path, uid);
        if (owner != uid) {
            throw unusable(path, "it belongs to user " + owner, null);
        }
        if (!Files.isReadable(path) || !Files.isWritable(path)) {
            throw unusable(path, "no permission to read and write it", null);
        }
    }

    private static NrtException unusable(final Path path, final String reason, final Throwable cause) {
        return new NrtException(NrtStatus.FAILURE, "KV lock file " + path + " is unusable: " + reason, cause);
    }

    Path path() {
        return path;
    }

    /** The locked channel; the only way to read and write the file. */
    FileChannel channel() {
        return channel;
    }

    /**
     * Takes the lock if nobody has it.
     *
     * @return false if another instance or another process has it; {@link #acquire()} then waits for it.
     * @throws NrtException FAILURE with the path and the reason if the file cannot be used.
     */
    boolean tryAcquire() {
        if (!turnHeld && !turn.tryAcquire()) {
            return false;
        }
        turnHeld = true;
        try {
            while (true) {
                open();
                lock = channel.tryLock();
                if (lock == null) {
                    return false;
                }
                if (isStillTheFile()) {
                    return true;
                }
            }
        } catch (final OverlappingFileLockException ex) {
            return false;
        } catch (final IOException ex) {
            throw unusable(path, KvAddress.reason(ex), ex);
        }
    }

    /**
     * Waits for the lock.
     *
     * @throws InterruptedException if the thread is interrupted; what is held then is given back by {@link #release()}.
     * @throws NrtException         FAILURE with the path and the reason if the file cannot be used.
     */
    void acquire() throws InterruptedException {
        if (!turnHeld) {
            turn.acquire();
            turnHeld = true;
        }
        try {
            do {
                open();
                await();
            } while (!isStillTheFile());
        } catch (final IOException ex) {
            if (Thread.currentThread().isInterrupted()) {
                final InterruptedException interrupted = new InterruptedException("while waiting for " + path);
                interrupted.initCause(ex);
                throw interrupted;
            }
            throw unusable(path, KvAddress.reason(ex), ex);
        }
    }

    private void await() throws IOException, InterruptedException {
        try {
            lock = channel.lock();
        } catch (final FileLockInterruptionException ex) {
            throw ex;
        } catch (final OverlappingFileLockException ex) {
            poll();
        } catch (final IOException ex) {
            // EDEADLK: the kernel takes two processes that each lead one port and wait for the other's to be deadlocked.
            if (Thread.currentThread().isInterrupted() || !channel.isOpen()) {
                throw ex;
            }
            poll();
        }
    }

    private void poll() throws IOException, InterruptedException {
        while (true) {
            try {
                lock = channel.tryLock();
                if (lock != null) {
                    return;
                }
            } catch (final OverlappingFileLockException ex) {
                // Another copy of this class, of another class loader, has it.
                lock = null;
            }
            Thread.sleep(POLL_MS);
        }
    }

    private void open() throws IOException {
        if (channel != null) {
            return;
        }
        check();
        channel = FileChannel.open(path,
            Set.of(StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS),
            PosixFilePermissions.asFileAttribute(OWNER_ONLY));
        if (!Files.getPosixFilePermissions(path, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY)) {
            Files.setPosixFilePermissions(path, OWNER_ONLY);
        }
        fileKey = fileKey();
    }

    /** Whether the path still leads to what was locked; a file that was deleted meanwhile elects nobody. */
    private boolean isStillTheFile() throws IOException {
        if (fileKey != null && fileKey.equals(fileKey())) {
            return true;
        }
        closeChannel();
        return false;
    }

    private Object fileKey() throws IOException {
        try {
            return Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).fileKey();
        } catch (final NoSuchFileException ex) {
            return null;
        }
    }

    private void closeChannel() throws IOException {
        final FileChannel old = channel;
        channel = null;
        lock = null;
        if (old != null) {
            old.close();
        }
    }

    /** Whether the lock is held. */
    boolean isHeld() {
        return lock != null && lock.isValid();
    }

    /** Whether the lock is held and its path still leads to it: those who come later would elect another over a new file. */
    boolean isCurrent() {
        try {
            return isHeld() && fileKey.equals(fileKey());
        } catch (final IOException ex) {
            return true; // not to be told now; it is asked again
        }
    }

    /** Gives back what is held, lock or only turn. The file stays: it holds the identity. Idempotent. */
    void release() {
        try {
            closeChannel();
        } catch (final IOException ex) {
            throw unusable(path, "closing it failed: " + KvAddress.reason(ex), ex);
        } finally {
            if (turnHeld) {
                turnHeld = false;
                turn.release();
            }
        }
    }
}
