package io.nrt4j;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/**
 * Immutable configuration of one runtime instance.
 *
 * <p>Each setting is taken, in this order, from code, from its system property, from its environment variable (the names of
 * the original where the original has one), or from its default; {@link #describe()} tells value and source of each. A value
 * that cannot be is refused when the configuration is built, with the setting's name, the value and what is allowed.
 */
public final class NrtConfig {
    /** Number of logical neuron cores of a process, hence one more than the largest LNC. */
    public static final int MAX_LNCS = 128;

    /** Value and source of a setting. */
    private record Value(String text, Object parsed, String source) {
    }

    private final Map<NrtSetting, Value> values;

    private NrtConfig(final Map<NrtSetting, Value> values) {
        this.values = values;
    }

    /**
     * A configuration from system properties, environment and defaults alone.
     *
     * @return the configuration.
     * @throws NrtException INVALID if a value cannot be.
     */
    public static NrtConfig fromEnvironment() {
        return builder().build();
    }

    /**
     * Starts a configuration over this process's system properties and environment.
     *
     * @return a builder.
     */
    public static Builder builder() {
        return new Builder(System::getProperty, System::getenv);
    }

    /**
     * Starts a configuration that looks at nothing but the given maps.
     *
     * @param properties  stands for the system properties.
     * @param environment stands for the environment.
     * @return a builder.
     */
    public static Builder builder(final Map<String, String> properties, final Map<String, String> environment) {
        final Map<String, String> propertyCopy = new HashMap<>(properties);
        final Map<String, String> environmentCopy = new HashMap<>(environment);
        return new Builder(propertyCopy::get, environmentCopy::get);
    }

    private boolean flag(final NrtSetting setting) {
        return (Boolean) values.get(setting).parsed();
    }

    private int number(final NrtSetting setting) {
        return ((Long) values.get(setting).parsed()).intValue();
    }

    private Duration duration(final NrtSetting setting) {
        return Duration.ofMillis((Long) values.get(setting).parsed());
    }

    private String text(final NrtSetting setting) {
        return values.get(setting).text();
    }

    /**
     * Gate 1 of init.
     *
     * @return true if asynchronous send and receive is enabled.
     */
    public boolean asyncSendRecvEnabled() {
        return flag(NrtSetting.ASYNC_SENDRECV_ENABLED);
    }

    /**
     * Gate 2 of init: TCP port of the key-value store.
     *
     * @return 1 to 65535, or 0 when it was not given.
     */
    public int bootstrapPort() {
        return number(NrtSetting.BOOTSTRAP_PORT);
    }

    /**
     * Root communicator id for the network plug-in.
     *
     * @return {@code ip:port}, or empty.
     */
    public String rootCommId() {
        return text(NrtSetting.ROOT_COMM_ID);
    }

    /**
     * Ranks that share one proxy queue.
     *
     * @return at least 1.
     */
    public int ranksPerNetworkProxy() {
        return number(NrtSetting.RANKS_PER_NETWORK_PROXY);
    }

    /**
     * Waiting policy of a proxy worker whose tasks are all idle.
     *
     * @return true to spin, false to yield.
     */
    public boolean oneThreadPerCore() {
        return flag(NrtSetting.ONE_THREAD_PER_CORE);
    }

    /**
     * Processors for the proxy workers.
     *
     * @return ascending processor numbers; empty when no affinity is asked for.
     */
    public List<Integer> lowLatencyCpus() {
        @SuppressWarnings("unchecked") // what OPTIONAL_CPUS parses to
        final List<Integer> cpus = (List<Integer>) values.get(NrtSetting.LOW_LATENCY_CPU_AFFINITY).parsed();
        return cpus;
    }

    /**
     * Early completion of the network phase.
     *
     * @return true by default.
     */
    public boolean earlyCompletion() {
        return flag(NrtSetting.DBG_EARLY_COMPLETION);
    }

    /**
     * Early posting of receives in the network phase.
     *
     * @return true by default.
     */
    public boolean earlyPosting() {
        return flag(NrtSetting.DBG_EARLY_POSTING);
    }

    /**
     * Name of the transport.
     *
     * @return such as {@code loopback}.
     */
    public String transport() {
        return text(NrtSetting.TRANSPORT);
    }

    /**
     * Time that a communicator has to connect.
     *
     * @return zero is without limit.
     */
    public Duration connectTimeout() {
        return duration(NrtSetting.CONNECT_TIMEOUT_MS);
    }

    /**
     * Time that a transfer has to complete.
     *
     * @return zero is without limit.
     */
    public Duration requestTimeout() {
        return duration(NrtSetting.REQUEST_TIMEOUT_MS);
    }

    /**
     * Time that a flush has.
     *
     * @return positive.
     */
    public Duration flushTimeout() {
        return duration(NrtSetting.FLUSH_TIMEOUT_MS);
    }

    /**
     * Bound of a close.
     *
     * @return positive.
     */
    public Duration closeTimeout() {
        return duration(NrtSetting.CLOSE_TIMEOUT_MS);
    }

    /**
     * Bound of an init.
     *
     * @return positive.
     */
    public Duration initTimeout() {
        return duration(NrtSetting.INIT_TIMEOUT_MS);
    }

    /**
     * Address that the key-value server listens on.
     *
     * @return an IPv4 or IPv6 literal; {@code ::} is every address of both kinds, {@code 0.0.0.0} every IPv4 address.
     */
    public String kvBindAddress() {
        return text(NrtSetting.KV_BIND_ADDRESS);
    }

    /**
     * Shared secret of the job.
     *
     * @return empty when frames carry no HMAC.
     */
    public String kvSecret() {
        return text(NrtSetting.KV_SECRET);
    }

    /**
     * Folder of the key-value server's lock file.
     *
     * @return the temporary directory unless configured.
     */
    public Path kvLockDirectory() {
        final String folder = text(NrtSetting.KV_LOCK_DIRECTORY);
        return Path.of(folder.isEmpty() ? System.getProperty("java.io.tmpdir") : folder);
    }

    /**
     * Name of this host, which need not be unique.
     *
     * @return configured name, or the operating system's.
     */
    public String hostName() {
        final String configured = text(NrtSetting.HOST_NAME);
        if (!configured.isEmpty()) {
            return configured;
        }
        try {
            final String name = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
            return name.isEmpty() ? "localhost" : name;
        } catch (final java.io.IOException ex) {
            final String variable = System.getenv("HOSTNAME");
            return variable == null || variable.isBlank() ? "localhost" : variable;
        }
    }

    /**
     * Device index of an LNC ({@code vtpb_idx}).
     *
     * @param lnc 0 to 127.
     * @return the LNC itself unless configured otherwise.
     */
    public int vtpbIndex(final int lnc) {
        @SuppressWarnings("unchecked") // what INT_MAP parses to
        final Map<Integer, Integer> map = (Map<Integer, Integer>) values.get(NrtSetting.VTPB_INDEX).parsed();
        return map.getOrDefault(lnc, lnc);
    }

    /**
     * File of the libfabric library.
     *
     * @return empty when the system's loader is to find {@code libfabric.so.1}.
     */
    public String libfabricPath() {
        return text(NrtSetting.LIBFABRIC_PATH);
    }

    /**
     * Name of the libfabric provider.
     *
     * @return such as {@code tcp;ofi_rxm}; empty when the transport chooses.
     */
    public String libfabricProvider() {
        return text(NrtSetting.LIBFABRIC_PROVIDER);
    }

    /**
     * Source of the libfabric transport.
     *
     * @return an IPv4 or IPv6 literal, the name of a network interface, or empty when the provider chooses.
     */
    public String libfabricAddress() {
        return text(NrtSetting.LIBFABRIC_ADDRESS);
    }

    /**
     * File of the collective library.
     *
     * @return empty when the system's loader is to find {@code libnccom.so}.
     */
    public String libnccomPath() {
        return text(NrtSetting.LIBNCCOM_PATH);
    }

    /**
     * File of the collective library's net plug-in.
     *
     * @return empty when the system's loader is to find {@code libnccom-net.so}.
     */
    public String libnccomNetPath() {
        return text(NrtSetting.LIBNCCOM_NET_PATH);
    }

    /**
     * Memory type that libnccom registers memory with.
     *
     * @return 4 for Neuron device memory, 1 for host memory.
     */
    public int libnccomMemoryType() {
        return number(NrtSetting.LIBNCCOM_MEMORY_TYPE);
    }

    /**
     * Each setting with its value and source. Secrets are not shown.
     *
     * @return one line a setting, in declaration order.
     */
    public List<String> describe() {
        final List<String> lines = new ArrayList<>();
        values.forEach((setting, value) -> lines.add(setting.variable() + "=" + shown(setting, value.text())
            + " (" + value.source() + ")"));
        return lines;
    }

    private static String shown(final NrtSetting setting, final String text) {
        return setting == NrtSetting.KV_SECRET && !text.isEmpty() ? "***" : text;
    }

    @Override
    public String toString() {
        return String.join(", ", describe());
    }

    /** Collects settings; {@link #build()} checks them. Not safe for use by several threads. */
    public static final class Builder {
        private final Function<String, String> properties;
        private final Function<String, String> environment;
        private final Map<NrtSetting, String> fromCode = new EnumMap<>(NrtSetting.class);

        Builder(final Function<String, String> properties, final Function<String, String> environment) {
            this.properties = properties;
            this.environment = environment;
        }

        /**
         * Sets any setting by its text, as the environment variable would.
         *
         * @param setting which.
         * @param text    its value.
         * @return this.
         */
        public Builder set(final NrtSetting setting, final String text) {
            fromCode.put(setting, Objects.requireNonNull(text, setting.variable()));
            return this;
        }

        /**
         * Gate 1 of init.
         *
         * @param enabled whether asynchronous send and receive may be initialised.
         * @return this.
         */
        public Builder asyncSendRecvEnabled(final boolean enabled) {
            return set(NrtSetting.ASYNC_SENDRECV_ENABLED, Boolean.toString(enabled));
        }

        /**
         * Gate 2 of init.
         *
         * @param port TCP port of the key-value store, 1 to 65535.
         * @return this.
         */
        public Builder bootstrapPort(final int port) {
            return set(NrtSetting.BOOTSTRAP_PORT, Integer.toString(port));
        }

        /**
         * Name of the transport.
         *
         * @param name such as {@code loopback}.
         * @return this.
         */
        public Builder transport(final String name) {
            return set(NrtSetting.TRANSPORT, name);
        }

        /**
         * Time that a communicator has to connect.
         *
         * @param timeout zero is without limit.
         * @return this.
         */
        public Builder connectTimeout(final Duration timeout) {
            return set(NrtSetting.CONNECT_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Time that a transfer has to complete.
         *
         * @param timeout zero is without limit.
         * @return this.
         */
        public Builder requestTimeout(final Duration timeout) {
            return set(NrtSetting.REQUEST_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Time that a flush has.
         *
         * @param timeout positive.
         * @return this.
         */
        public Builder flushTimeout(final Duration timeout) {
            return set(NrtSetting.FLUSH_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Bound of a close.
         *
         * @param timeout positive.
         * @return this.
         */
        public Builder closeTimeout(final Duration timeout) {
            return set(NrtSetting.CLOSE_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Bound of an init.
         *
         * @param timeout positive.
         * @return this.
         */
        public Builder initTimeout(final Duration timeout) {
            return set(NrtSetting.INIT_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Address that the key-value server listens on.
         *
         * @param literal IPv4 or IPv6.
         * @return this.
         */
        public Builder kvBindAddress(final String literal) {
            return set(NrtSetting.KV_BIND_ADDRESS, literal);
        }

        /**
         * Folder of the key-value server's lock file.
         *
         * @param folder an existing folder.
         * @return this.
         */
        public Builder kvLockDirectory(final Path folder) {
            return set(NrtSetting.KV_LOCK_DIRECTORY, folder.toString());
        }

        /**
         * Shared secret of the job.
         *
         * @param secret empty is off.
         * @return this.
         */
        public Builder kvSecret(final String secret) {
            return set(NrtSetting.KV_SECRET, secret);
        }

        /**
         * Checks every setting and makes the configuration.
         *
         * @return an immutable configuration.
         * @throws NrtException INVALID with the setting's name, its value and what is allowed.
         */
        public NrtConfig build() {
            final Map<NrtSetting, Value> values = new EnumMap<>(NrtSetting.class);
            for (final NrtSetting setting : NrtSetting.values()) {
                values.put(setting, resolve(setting));
            }
            return new NrtConfig(Collections.unmodifiableMap(values));
        }

        private Value resolve(final NrtSetting setting) {
            final String code = fromCode.get(setting);
            final String property = properties.apply(setting.property());
            final String variable = environment.apply(setting.variable());
            final String source;
            final String text;
            if (code != null) {
                source = "code";
                text = code;
            } else if (property != null) {
                source = "system property " + setting.property();
                text = property;
            } else if (variable != null) {
                source = "environment";
                text = variable;
            } else {
                source = "default";
                text = setting.defaultText();
            }
            try {
                return new Value(text, setting.parser().parse(text), source);
            } catch (final IllegalArgumentException ex) {
                throw new NrtException(NrtStatus.INVALID, setting.variable() + "='" + shown(setting, text) + "' (" + source
                    + ") is not allowed: " + setting.parser().allowed(), ex);
            }
        }
    }
}
