package io.nrt4j.concurrent;

/**
 * A duty cycle without a thread. One thread at a time calls {@link #doWork()}: an {@link AgentThread}, or a test by hand.
 */
public interface Agent {
    /**
     * Called once by the agent's thread before the first duty cycle.
     */
    default void onStart() {
    }

    /**
     * Does what there is to do, without blocking.
     *
     * @return how much was done; 0 lets the thread idle.
     */
    int doWork();

    /**
     * Called once by the agent's thread after the last duty cycle, also when that one failed.
     */
    default void onClose() {
    }

    /**
     * Name of the agent, and of its thread.
     *
     * @return such as {@code nrt4j-sr-5}.
     */
    String roleName();
}
