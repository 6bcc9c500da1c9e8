package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;

/**
 * Faults for tests: what a {@link LoopbackTransport} does instead of working, per kind of call.
 *
 * <p>Rules are added at any time and apply to calls from then on. Of several rules for one call, a failure goes first, then
 * "not yet". A call that fails or answers "not yet" has done nothing else.
 *
 * <p>Threads: any; everything is guarded by the plan's monitor. One plan may serve several transports, which it then counts
 * together. The observer is called under the communicator's lock and must not call a transport.
 */
public final class FaultPlan {
    /** A kind of call. */
    public enum Operation {
        /** {@code listen}. */
        LISTEN("listen"),
        /** {@code connect}. */
        CONNECT("connect"),
        /** {@code accept}. */
        ACCEPT("accept"),
        /** {@code regMr}. */
        REG_MR("regMr"),
        /** {@code deregMr}. */
        DEREG_MR("deregMr"),
        /** {@code isend}. */
        ISEND("isend"),
        /** {@code irecv}. */
        IRECV("irecv"),
        /** {@code iflush}. */
        IFLUSH("iflush"),
        /** {@code test}; "not yet" means pending, and a failure gives the request up. */
        TEST("test");

        private final String call;

        Operation(final String call) {
            this.call = call;
        }

        String call() {
            return call;
        }
    }

    /** Sees the posts that a transport took, in its order for each communicator. */
    @FunctionalInterface
    public interface PostObserver {
        /**
         * A post was taken.
         *
         * @param operation   ISEND, IRECV or IFLUSH.
         * @param comm        communicator.
         * @param address     first byte.
         * @param lengthBytes length.
         */
        void onPost(Operation operation, long comm, long address, long lengthBytes);
    }

    private static final int UNTIL_RELEASED = Integer.MAX_VALUE;

    /** What is planned for one kind of call, and how often it was called. */
    private static final class Rules {
        private long calls;
        private final Map<Long, NrtException> failures = new HashMap<>();
        private NrtException everyFailure;
        private int notYetLeft;
        private int holdsLeft;
        private long holdEpoch = 1;
        private int testsToWait;
    }

    private final Map<Operation, Rules> rules = new EnumMap<>(Operation.class);
    private PostObserver observer;

    /** Makes a plan without faults. */
    public FaultPlan() {
        for (final Operation operation : Operation.values()) {
            rules.put(operation, new Rules());
        }
    }

    /**
     * Lets one call fail with {@link NrtStatus#FAILURE}.
     *
     * @param operation kind of call.
     * @param nth       which call from now on, 1 is the next.
     * @param text      what the failure says.
     * @return this.
     */
    public FaultPlan fail(final Operation operation, final int nth, final String text) {
        return fail(operation, nth, NrtStatus.FAILURE, text);
    }

    /**
     * Lets one call fail.
     *
     * @param operation kind of call.
     * @param nth       which call from now on, 1 is the next.
     * @param status    status of the failure.
     * @param text      what the failure says.
     * @return this.
     */
    public synchronized FaultPlan fail(final Operation operation, final int nth, final NrtStatus status, final String text) {
        if (nth < 1) {
            throw new IllegalArgumentException("nth counts from 1: " + nth);
        }
        final Rules of = rules.get(operation);
        of.failures.put(of.calls + nth, new NrtException(status, text));
        return this;
    }

    /**
     * Lets every call fail, until {@link #release}.
     *
     * @param operation kind of call.
     * @param text      what the failures say.
     * @return this.
     */
    public synchronized FaultPlan failEvery(final Operation operation, final String text) {
        rules.get(operation).everyFailure = new NrtException(NrtStatus.FAILURE, text);
        return this;
    }

    /**
     * Lets the next calls answer "not yet", "no room" or "pending".
     *
     * @param operation one that can: CONNECT, ACCEPT, ISEND, IRECV, IFLUSH or TEST.
     * @param calls     how many.
     * @return this.
     */
    public synchronized FaultPlan notYet(final Operation operation, final int calls) {
        switch (operation) {
            case CONNECT, ACCEPT, ISEND, IRECV, IFLUSH, TEST -> rules.get(operation).notYetLeft = calls;
            default -> throw new IllegalArgumentException(operation + " cannot answer 'not yet'");
        }
        return this;
    }

    /**
     * Lets all calls answer "not yet", "no room" or "pending", until {@link #release}.
     *
     * @param operation one that can.
     * @return this.
     */
    public FaultPlan notYetUntilReleased(final Operation operation) {
        return notYet(operation, UNTIL_RELEASED);
    }

    /**
     * Hides the completion of the next posted requests until {@link #release}: they test pending, though the peer's request may
     * complete.
     *
     * @param operation ISEND, IRECV or IFLUSH.
     * @param requests  how many.
     * @return this.
     */
    public synchronized FaultPlan neverComplete(final Operation operation, final int requests) {
        rules.get(posting(operation)).holdsLeft = requests;
        return this;
    }

    /**
     * Lets requests that are posted from now on test pending a number of times before they may complete.
     *
     * @param operation ISEND, IRECV or IFLUSH.
     * @param tests     how many times; 0 ends the rule.
     * @return this.
     */
    public synchronized FaultPlan completeAfterTests(final Operation operation, final int tests) {
        rules.get(posting(operation)).testsToWait = tests;
        return this;
    }

    /**
     * Ends all rules for a kind of call, and lets its held requests complete.
     *
     * @param operation kind of call.
     * @return this.
     */
    public synchronized FaultPlan release(final Operation operation) {
        final Rules of = rules.get(operation);
        of.failures.clear();
        of.everyFailure = null;
        of.notYetLeft = 0;
        of.holdsLeft = 0;
        of.holdEpoch++;
        of.testsToWait = 0;
        return this;
    }

    /**
     * Ends all rules.
     *
     * @return this.
     */
    public FaultPlan releaseAll() {
        for (final Operation operation : Operation.values()) {
            release(operation);
        }
        return this;
    }

    /**
     * Watches the posts.
     *
     * @param newObserver told of each post that was taken; null ends it.
     * @return this.
     */
    public synchronized FaultPlan onPost(final PostObserver newObserver) {
        observer = newObserver;
        return this;
    }

    /**
     * How often a kind of call was made, whatever became of it.
     *
     * @param operation kind of call.
     * @return number of calls since the plan was made.
     */
    public synchronized long calls(final Operation operation) {
        return rules.get(operation).calls;
    }

    private static Operation posting(final Operation operation) {
        return switch (operation) {
            case ISEND, IRECV, IFLUSH -> operation;
            default -> throw new IllegalArgumentException(operation + " posts no request");
        };
    }

    /**
     * Counts a call and decides about it.
     *
     * @return true if it shall answer "not yet".
     * @throws NrtException if it shall fail.
     */
    synchronized boolean notYet(final Operation operation) {
        final Rules of = rules.get(operation);
        of.calls++;
        final NrtException planned = of.failures.remove(of.calls);
        final NrtException failure = planned == null ? of.everyFailure : planned;
        if (failure != null) {
            throw new NrtException(failure.status(), "loopback " + operation.call() + " (planned fault): " + failure.getMessage());
        }
        if (of.notYetLeft == 0) {
            return false;
        }
        if (of.notYetLeft != UNTIL_RELEASED) {
            of.notYetLeft--;
        }
        return true;
    }

    /** A request was taken; sets what it has to wait for. */
    void posted(final Operation operation, final long comm, final long address, final LoopbackRequest request) {
        final PostObserver told;
        synchronized (this) {
            final Rules of = rules.get(operation);
            request.operation = operation;
            request.testsToWait = of.testsToWait;
            if (of.holdsLeft > 0) {
                of.holdsLeft--;
                request.hold = of.holdEpoch;
            }
            told = observer;
        }
        if (told != null) {
            told.onPost(operation, comm, address, request.lengthBytes);
        }
    }

    /** Whether a request that is tested now has to stay pending. */
    synchronized boolean isHeld(final LoopbackRequest request) {
        if (request.hold != 0 && request.hold == rules.get(request.operation).holdEpoch) {
            return true;
        }
        if (request.testsToWait > 0) {
            request.testsToWait--;
            return true;
        }
        return false;
    }
}
