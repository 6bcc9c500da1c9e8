package io.nrt4j.net.libfabric;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The shared memory of one endpoint of libfabric's shm provider ({@code struct smr_region}): a file in {@code /dev/shm}, named after
 * its owner.
 *
 * @param file where its memory has its name.
 * @param pid  the owner's process, as it sees itself.
 */
record ShmRegion(Path file, long pid) {
    /** Behind "fi_shm://": the process, and other numbers. */
    private static final Pattern NAME = Pattern.compile("(?:[a-z_]+://)?(([1-9][0-9]{0,8})(?:[:_][0-9]+)*)");
    /** {@code base_addr} is among the first fields, whatever the version. */
    private static final int HEADER_BYTES = 256;
    /** What a free {@code pthread_spinlock_t} contains, with glibc on x86-64; 0 or less is a held one. */
    private static final int FREE = 1;

    /** A file that a process has mapped. */
    private record Mapping(long start, long offset, long inode, String path) {
        /** Null for a line that is not about a file. */
        static Mapping of(final String line) {
            final String[] fields = line.split(" +", 6);
            final int dash = fields[0].indexOf('-');
            return fields.length < 6 || dash < 0 ? null : new Mapping(Long.parseUnsignedLong(fields[0].substring(0, dash), 16),
                Long.parseLong(fields[2], 16), Long.parseLong(fields[4]), fields[5]);
        }
    }

    /**
     * A name for an endpoint of this process that nobody else has. The provider's own are made of numbers that come again: where a
     * killed process left such a name, or a process in another PID namespace has it, the provider takes it away and fails.
     */
    static String freshName() {
        return "fi_shm://" + ProcessHandle.current().pid() + ":" + ThreadLocalRandom.current().nextLong(1L << 32, 1L << 53);
    }

    /**
     * The region of an endpoint.
     *
     * @param folder       {@code /dev/shm}.
     * @param endpointName from {@code fi_getname}.
     * @return null if that is no name of an endpoint of the shm provider.
     */
    static ShmRegion of(final Path folder, final byte[] endpointName) {
        int length = 0;
        while (length < endpointName.length && endpointName[length] != 0) {
            length++;
        }
        final Matcher matcher = NAME.matcher(new String(endpointName, 0, length, StandardCharsets.ISO_8859_1));
        return matcher.matches() ? new ShmRegion(folder.resolve(matcher.group(1)), Long.parseLong(matcher.group(2))) : null;
    }

    String name() {
        return file.getFileName().toString();
    }

    /** Whether the name still stands for a file with that number. */
    boolean named(final long inode) {
        try {
            return (Long) Files.getAttribute(file, "unix:ino") == inode;
        } catch (final IOException ex) {
            return false;
        }
    }

    /**
     * Where in the region its lock is: behind the field that says where the owner has it mapped. Its place differs between versions,
     * and newer ones may do without.
     *
     * @param proc the kernel's folder, {@code /proc}; the region must be this process's own, and nobody may be using it.
     * @return offset in bytes, or -1 if nothing there looks like it.
     * @throws IOException when the region or its mappings cannot be read.
     */
    int lockOffset(final Path proc) throws IOException {
        final Set<Long> addresses = new HashSet<>();
        for (final Mapping mapping : mappings(proc.resolve("self"))) {
            if (mapping.offset() == 0 && mapping.path().equals(file.toString())) {
                addresses.add(mapping.start());
            }
        }
        final ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.nativeOrder());
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            channel.read(header, 0);
        }
        return lockOffset(header.flip(), addresses);
    }

    private static int lockOffset(final ByteBuffer header, final Set<Long> addresses) {
        for (int at = 0; at + Long.BYTES + Integer.BYTES <= header.limit(); at += Long.BYTES) {
            if (addresses.contains(header.getLong(at)) && header.getInt(at + Long.BYTES) == FREE) {
                return at + Long.BYTES;
            }
        }
        return -1;
    }

    /**
     * The regions that a process has mapped and that are named after it.
     *
     * @param owner the process.
     * @return files in the folder of this region, with the number of the file that is mapped.
     * @throws IOException when its mappings cannot be read.
     */
    Map<ShmRegion, Long> allOf(final ProcessIdentity owner) throws IOException {
        final Map<ShmRegion, Long> regions = new HashMap<>();
        for (final Mapping mapping : mappings(owner.folder())) {
            final String name = mapping.path().substring(mapping.path().lastIndexOf('/') + 1);
            final ShmRegion region = of(file.getParent(), name.getBytes(StandardCharsets.ISO_8859_1));
            if (region != null && region.pid() == owner.pid() && mapping.path().equals(region.file().toString())) {
                regions.put(region, mapping.inode());
            }
        }
        return regions;
    }

    private static List<Mapping> mappings(final Path process) throws IOException {
        try (Stream<String> lines = Files.lines(process.resolve("maps"), StandardCharsets.ISO_8859_1)) {
            return lines.map(Mapping::of).filter(mapping -> mapping != null).toList();
        } catch (final java.io.UncheckedIOException ex) {
            throw ex.getCause();
        }
    }

    /**
     * Maps the lock.
     *
     * @param offset from {@link #lockOffset}.
     * @return lock that the caller closes.
     * @throws IOException when the region cannot be mapped.
     */
    Lock lock(final int offset) throws IOException {
        return new Lock(SharedMapping.map(file), offset);
    }

    /**
     * The lock of a region, in a mapping of our own, which stays when the provider's goes.
     *
     * <p>Threads: guarded by its owner; the lock itself by the processor: it is one aligned word.
     */
    static final class Lock implements AutoCloseable {
        private final int offset;
        private SharedMapping mapping;

        private Lock(final SharedMapping mapping, final int offset) {
            this.mapping = mapping;
            this.offset = offset;
        }

        boolean held() {
            return mapping.getInt(offset) != FREE;
        }

        /** Whoever holds it does so no longer: for the locks of the dead. */
        void free() {
            mapping.putInt(offset, FREE);
        }

        @Override
        public void close() {
            if (mapping != null) {
                mapping.close();
                mapping = null;
            }
        }
    }
}
