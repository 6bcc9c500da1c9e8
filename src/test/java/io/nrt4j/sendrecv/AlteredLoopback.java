package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.loopback.LoopbackTransport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * Makes loopback transports of which a test alters a call or two: for what a fault plan cannot do.
 *
 * @param alteration asked at every call.
 */
record AlteredLoopback(Alteration alteration) implements NetTransportProvider {
    /** What becomes of a call. */
    @FunctionalInterface
    interface Alteration {
        /** Told before each call; what it answers, unless null, is the call's answer, and what it throws is thrown by the call. */
        Object before(String call) throws Exception;
    }

    @Override
    public String name() {
        return "altered";
    }

    @Override
    public String unavailabilityCause(final NrtConfig config) {
        return null;
    }

    @Override
    public String describe(final NrtConfig config) {
        return "loopback that a test has altered";
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        final LoopbackTransport real = new LoopbackTransport();
        return (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {NetTransport.class},
            (proxy, method, arguments) -> {
                final Object altered = alteration.before(method.getName());
                return altered == null ? forward(real, method, arguments) : altered;
            });
    }

    private static Object forward(final LoopbackTransport real, final Method method, final Object[] arguments) throws Throwable {
        try {
            return method.invoke(real, arguments);
        } catch (final InvocationTargetException ex) {
            throw ex.getCause();
        }
    }
}
