package io.nrt4j.net.libfabric;

/** The data path through {@code java.lang.foreign}: see {@link ForeignCalls}. It has no state, and allocates nothing. */
final class ForeignDataPath implements DataPath {
    private final FabricCalls calls;

    ForeignDataPath(final FabricCalls calls) {
        this.calls = calls;
    }

    private static AssertionError impossible(final Throwable thrown) {
        // A native function throws nothing, and the handles' types are those of the calls.
        return new AssertionError("a native call threw", thrown);
    }

    @Override
    public long recv(
        final long buffer, final long length, final long descriptor, final long tag, final long ignore, final long context) {
        try {
            return (long) ForeignCalls.CALL_8.invokeExact(
                calls.recv(), calls.endpoint(), buffer, length, descriptor, FiLayout.ADDR_UNSPEC, tag, ignore, context);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public long send(final long buffer, final long length, final long descriptor, final long destination, final long tag,
        final long context) {
        try {
            return (long) ForeignCalls.CALL_7.invokeExact(
                calls.send(), calls.endpoint(), buffer, length, descriptor, destination, tag, context);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public long inject(final long buffer, final long length, final long destination, final long tag) {
        try {
            return (long) ForeignCalls.CALL_5.invokeExact(calls.inject(), calls.endpoint(), buffer, length, destination, tag);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public long cqRead(final long entries, final long count) {
        try {
            return (long) ForeignCalls.CALL_3.invokeExact(calls.read(), calls.queue(), entries, count);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public long cqReadError(final long entry) {
        try {
            return (long) ForeignCalls.CALL_3.invokeExact(calls.readError(), calls.queue(), entry, 0L);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public long cancel(final long context) {
        try {
            return (long) ForeignCalls.CALL_2.invokeExact(calls.cancel(), calls.endpoint(), context);
        } catch (final Throwable ex) {
            throw impossible(ex);
        }
    }

    @Override
    public void free() {
        // There is nothing to free.
    }
}
