package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.loopback.LoopbackTransport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A loopback transport that does something of a test's before a call goes through: wait, throw, or look. */
final class HookedTransport implements NetTransportProvider {
    private final LoopbackTransport real = new LoopbackTransport();
    private final Map<String, Hook> hooks = new ConcurrentHashMap<>();

    /** What is done before a call; what it throws is what the call throws, and the call is not made then. */
    @FunctionalInterface
    interface Hook {
        void run() throws Exception;
    }

    /** Sets what is done before the calls of a method from now on. */
    HookedTransport before(final String method, final Hook hook) {
        hooks.put(method, hook);
        return this;
    }

    /** Lets calls of all methods through. */
    void unhook() {
        hooks.clear();
    }

    LoopbackTransport real() {
        return real;
    }

    @Override
    public String name() {
        return "hooked";
    }

    @Override
    public String unavailabilityCause(final NrtConfig config) {
        return null;
    }

    @Override
    public String describe(final NrtConfig config) {
        return "loopback with hooks";
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        return (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {NetTransport.class},
            (proxy, method, arguments) -> {
                final Hook hook = hooks.get(method.getName());
                if (hook != null) {
                    hook.run();
                }
                try {
                    return method.invoke(real, arguments);
                } catch (final InvocationTargetException ex) {
                    throw ex.getCause();
                }
            });
    }
}
