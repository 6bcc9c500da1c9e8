package io.nrt4j.concurrent;

/** What an agent's thread does between duty cycles. */
public interface IdleStrategy {
    /**
     * Called after each duty cycle. May block, but must return soon after the thread is interrupted or the agent is woken.
     *
     * @param workCount what the duty cycle returned.
     */
    void idle(int workCount);

    /**
     * Makes a present or the next {@link #idle(int)} return without waiting any longer. Any thread. It is kept until an idle
     * has seen it: nothing that a duty cycle does in between may lose it.
     */
    void wakeUp();
}
