package io.nrt4j.net.libfabric;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.util.Arrays;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Calls to native functions by address through {@code java.lang.foreign}, which Java has from 22 on: about a tenth of what a call
 * through libffi costs. Every argument and the result is a C {@code long} or as wide as one.
 *
 * <p>This code is compiled for Java 17, so the handles are made by reflection, once; a call names none of the newer types.
 * The handles are constants, without which the JIT compiler would not see through them.
 */
final class ForeignCalls {
    /** JVM property: {@code false} has the data path go through libffi on every Java. */
    static final String PROPERTY = "nrt4j.libfabric.foreign";

    /** Of the types (function, arguments) to result, all {@code long}; null where there is no {@code java.lang.foreign}. */
    static final MethodHandle CALL_2;
    static final MethodHandle CALL_3;
    static final MethodHandle CALL_5;
    static final MethodHandle CALL_7;
    static final MethodHandle CALL_8;

    private static final int FIRST_RELEASE = 22;
    private static final Logger LOG = LoggerFactory.getLogger(ForeignCalls.class);

    static {
        final MethodHandle[] calls = make(2, 3, 5, 7, 8);
        CALL_2 = calls[0];
        CALL_3 = calls[1];
        CALL_5 = calls[2];
        CALL_7 = calls[3];
        CALL_8 = calls[4];
    }

    private ForeignCalls() {
    }

    /** Whether this JVM has them, and is to use them. */
    static boolean available() {
        return CALL_8 != null && Boolean.parseBoolean(System.getProperty(PROPERTY, "true"));
    }

    private static MethodHandle[] make(final int... argumentCounts) {
        final MethodHandle[] calls = new MethodHandle[argumentCounts.length];
        if (Runtime.version().feature() >= FIRST_RELEASE) {
            try {
                for (int i = 0; i < calls.length; i++) {
                    calls[i] = call(argumentCounts[i]);
                }
            } catch (final ReflectiveOperationException | RuntimeException ex) {
                // As where native access is denied to this module; libffi does the same, slower.
                LOG.info("no calls through java.lang.foreign: {}", String.valueOf(ex.getCause() == null ? ex : ex.getCause()));
                Arrays.fill(calls, null);
            }
        }
        return calls;
    }

    private static MethodHandle call(final int argumentCount) throws ReflectiveOperationException {
        final Class<?> linker = foreign("Linker");
        final Class<?> option = foreign("Linker$Option");
        final Class<?> layout = foreign("MemoryLayout");
        final Class<?> descriptor = foreign("FunctionDescriptor");
        final Class<?> segment = foreign("MemorySegment");
        final Object cLong = foreign("ValueLayout").getField("JAVA_LONG").get(null);
        final Object arguments = Array.newInstance(layout, argumentCount);
        for (int i = 0; i < argumentCount; i++) {
            Array.set(arguments, i, cLong);
        }
        final Object type = descriptor.getMethod("of", layout, arguments.getClass()).invoke(null, cLong, arguments);
        final Object options = Array.newInstance(option, 0);
        final MethodHandle call = (MethodHandle) linker.getMethod("downcallHandle", descriptor, options.getClass())
            .invoke(linker.getMethod("nativeLinker").invoke(null), type, options);
        final MethodHandle ofAddress = MethodHandles.publicLookup()
            .findStatic(segment, "ofAddress", MethodType.methodType(segment, long.class));
        return MethodHandles.filterArguments(call, 0, ofAddress);
    }

    private static Class<?> foreign(final String name) throws ClassNotFoundException {
        return Class.forName("java.lang.foreign." + name);
    }
}
