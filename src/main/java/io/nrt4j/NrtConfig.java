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

    /** A setting: its names, its default, what it allows. */
    public enum Setting {
        /** Gate 1 of init. */
        ASYNC_SENDRECV_ENABLED("NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED", "nrt4j.asyncSendRecv.enabled",
            "false", SettingParser.BOOLEAN),
        /** Gate 2 of init: the TCP port of the key-value store, the same on every host of the job. */
        BOOTSTRAP_PORT("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT", "nrt4j.asyncSendRecv.bootstrapPort",
            "", SettingParser.OPTIONAL_PORT),
        /** Handed to the network plug-in's initialisation. */
        ROOT_COMM_ID("NEURON_RT_ROOT_COMM_ID", "nrt4j.rootCommId", "", SettingParser.OPTIONAL_ENDPOINT),
        /** Ranks that share one proxy queue. */
        RANKS_PER_NETWORK_PROXY("NEURON_RT_RANKS_PER_NETWORK_PROXY", "nrt4j.proxy.ranksPerNetworkProxy",
            "1", SettingParser.intRange(1, 1024)),
        /** Spin instead of yield when every task of a proxy worker is idle. */
        ONE_THREAD_PER_CORE("NEURON_RT_ONE_THREAD_PER_CORE", "nrt4j.proxy.oneThreadPerCore",
            "false", SettingParser.BOOLEAN),
        /** Processors that the proxy workers may run on, as a list such as {@code 0,2-5} or a mask such as {@code 0x3c}. */
        LOW_LATENCY_CPU_AFFINITY("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "nrt4j.proxy.cpuAffinity",
            "", SettingParser.OPTIONAL_CPUS),
        /** Early completion of the network phase. */
        DBG_EARLY_COMPLETION("NEURON_RT_DBG_EARLY_COMPLETION", "nrt4j.proxy.earlyCompletion",
            "true", SettingParser.BOOLEAN),
        /** Early posting of receives in the network phase. */
        DBG_EARLY_POSTING("NEURON_RT_DBG_EARLY_POSTING", "nrt4j.proxy.earlyPosting", "true", SettingParser.BOOLEAN),
        /** Name of the transport. */
        TRANSPORT("NRT4J_TRANSPORT", "nrt4j.transport", "loopback", SettingParser.NAME),
        /** Time that a communicator has to connect; 0 is without limit. */
        CONNECT_TIMEOUT_MS("NRT4J_CONNECT_TIMEOUT_MS", "nrt4j.connectTimeoutMs", "120000", SettingParser.MILLIS),
        /** Time that a transfer has to complete; 0 is without limit. */
        REQUEST_TIMEOUT_MS("NRT4J_REQUEST_TIMEOUT_MS", "nrt4j.requestTimeoutMs", "0", SettingParser.MILLIS),
        /** Time that a flush has; 0 is not allowed, since a flush blocks. */
        FLUSH_TIMEOUT_MS("NRT4J_FLUSH_TIMEOUT_MS", "nrt4j.flushTimeoutMs", "30000", SettingParser.POSITIVE_MILLIS),
        /** Bound of a close. */
        CLOSE_TIMEOUT_MS("NRT4J_CLOSE_TIMEOUT_MS", "nrt4j.closeTimeoutMs", "5000", SettingParser.POSITIVE_MILLIS),
        /** Time that init has to find or start this host's key-value server and to set up the flush buffer. */
        INIT_TIMEOUT_MS("NRT4J_INIT_TIMEOUT_MS", "nrt4j.initTimeoutMs", "10000", SettingParser.POSITIVE_MILLIS),
        /** Address that the key-value server listens on; it must be reachable for peers. */
        KV_BIND_ADDRESS("NRT4J_KV_BIND_ADDRESS", "nrt4j.kv.bindAddress", "0.0.0.0", SettingParser.IP_LITERAL),
        /** Shared secret of a job: frames without a right HMAC-SHA256 are refused. Empty is off. */
        KV_SECRET("NRT4J_KV_SECRET", "nrt4j.kv.secret", "", SettingParser.ANY),
        /** Folder of the lock file that elects the key-value server among the processes of a user. */
        KV_LOCK_DIRECTORY("NRT4J_KV_LOCK_DIRECTORY", "nrt4j.kv.lockDirectory", "", SettingParser.ANY),
        /** Name of this host as it appears in its identity; empty is the operating system's name. */
        HOST_NAME("NRT4J_HOST_NAME", "nrt4j.hostName", "", SettingParser.HOST_NAME),
        /** Device index of each LNC where it is not the LNC itself, as {@code lnc=index,lnc=index}. */
        VTPB_INDEX("NRT4J_VTPB_INDEX", "nrt4j.vtpbIndex", "", SettingParser.INT_MAP),
        /** File of the collective library; empty is {@code libnccom.so} as the system's loader finds it. */
        LIBNCCOM_PATH("NRT4J_LIBNCCOM_PATH", "nrt4j.libnccom.path", "", SettingParser.ANY),
        /** File of the collective library's net plug-in; empty is {@code libnccom-net.so} as the system's loader finds it. */
        LIBNCCOM_NET_PATH("NRT4J_LIBNCCOM_NET_PATH", "nrt4j.libnccom.netPath", "", SettingParser.ANY),
        /** Memory type that libnccom registers memory with: 4 is Neuron device memory, 1 is host memory. */
        LIBNCCOM_MEMORY_TYPE("NRT4J_LIBNCCOM_MEMORY_TYPE", "nrt4j.libnccom.memoryType", "4", SettingParser.NCCOM_MEMORY_TYPE);

        private final String variable;
        private final String property;
        private final String defaultText;
        private final SettingParser parser;

        Setting(final String variable, final String property, final String defaultText, final SettingParser parser) {
            this.variable = variable;
            this.property = property;
            this.defaultText = defaultText;
            this.parser = parser;
        }

        /**
         * Name of the environment variable.
         *
         * @return as the original calls it where the original has one.
         */
        public String variable() {
            return variable;
        }

        /**
         * Name of the system property.
         *
         * @return beginning with {@code nrt4j.}
         */
        public String property() {
            return property;
        }
    }

    /** Value and source of a setting. */
    private record Value(String text, Object parsed, String source) {
    }

    private final Map<Setting, Value> values;

    private NrtConfig(final Map<Setting, Value> values) {
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

    private boolean flag(final Setting setting) {
        return (Boolean) values.get(setting).parsed();
    }

    private int number(final Setting setting) {
        return ((Long) values.get(setting).parsed()).intValue();
    }

    private Duration duration(final Setting setting) {
        return Duration.ofMillis((Long) values.get(setting).parsed());
    }

    private String text(final Setting setting) {
        return values.get(setting).text();
    }

    /**
     * Gate 1 of init.
     *
     * @return true if asynchronous send and receive is enabled.
     */
    public boolean asyncSendRecvEnabled() {
        return flag(Setting.ASYNC_SENDRECV_ENABLED);
    }

    /**
     * Gate 2 of init: TCP port of the key-value store.
     *
     * @return 1 to 65535, or 0 when it was not given.
     */
    public int bootstrapPort() {
        return number(Setting.BOOTSTRAP_PORT);
    }

    /**
     * Root communicator id for the network plug-in.
     *
     * @return {@code ip:port}, or empty.
     */
    public String rootCommId() {
        return text(Setting.ROOT_COMM_ID);
    }

    /**
     * Ranks that share one proxy queue.
     *
     * @return at least 1.
     */
    public int ranksPerNetworkProxy() {
        return number(Setting.RANKS_PER_NETWORK_PROXY);
    }

    /**
     * Waiting policy of a proxy worker whose tasks are all idle.
     *
     * @return true to spin, false to yield.
     */
    public boolean oneThreadPerCore() {
        return flag(Setting.ONE_THREAD_PER_CORE);
    }

    /**
     * Processors for the proxy workers.
     *
     * @return ascending processor numbers; empty when no affinity is asked for.
     */
    public List<Integer> lowLatencyCpus() {
        @SuppressWarnings("unchecked") // what OPTIONAL_CPUS parses to
        final List<Integer> cpus = (List<Integer>) values.get(Setting.LOW_LATENCY_CPU_AFFINITY).parsed();
        return cpus;
    }

    /**
     * Early completion of the network phase.
     *
     * @return true by default.
     */
    public boolean earlyCompletion() {
        return flag(Setting.DBG_EARLY_COMPLETION);
    }

    /**
     * Early posting of receives in the network phase.
     *
     * @return true by default.
     */
    public boolean earlyPosting() {
        return flag(Setting.DBG_EARLY_POSTING);
    }

    /**
     * Name of the transport.
     *
     * @return such as {@code loopback}.
     */
    public String transport() {
        return text(Setting.TRANSPORT);
    }

    /**
     * Time that a communicator has to connect.
     *
     * @return zero is without limit.
     */
    public Duration connectTimeout() {
        return duration(Setting.CONNECT_TIMEOUT_MS);
    }

    /**
     * Time that a transfer has to complete.
     *
     * @return zero is without limit.
     */
    public Duration requestTimeout() {
        return duration(Setting.REQUEST_TIMEOUT_MS);
    }

    /**
     * Time that a flush has.
     *
     * @return positive.
     */
    public Duration flushTimeout() {
        return duration(Setting.FLUSH_TIMEOUT_MS);
    }

    /**
     * Bound of a close.
     *
     * @return positive.
     */
    public Duration closeTimeout() {
        return duration(Setting.CLOSE_TIMEOUT_MS);
    }

    /**
     * Bound of an init.
     *
     * @return positive.
     */
    public Duration initTimeout() {
        return duration(Setting.INIT_TIMEOUT_MS);
    }

    /**
     * Address that the key-value server listens on.
     *
     * @return an IPv4 or IPv6 literal.
     */
    public String kvBindAddress() {
        return text(Setting.KV_BIND_ADDRESS);
    }

    /**
     * Shared secret of the job.
     *
     * @return empty when frames carry no HMAC.
     */
    public String kvSecret() {
        return text(Setting.KV_SECRET);
    }

    /**
     * Folder of the key-value server's lock file.
     *
     * @return the temporary directory unless configured.
     */
    public Path kvLockDirectory() {
        final String folder = text(Setting.KV_LOCK_DIRECTORY);
        return Path.of(folder.isEmpty() ? System.getProperty("java.io.tmpdir") : folder);
    }

    /**
     * Name of this host, which need not be unique.
     *
     * @return configured name, or the operating system's.
     */
    public String hostName() {
        final String configured = text(Setting.HOST_NAME);
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
        final Map<Integer, Integer> map = (Map<Integer, Integer>) values.get(Setting.VTPB_INDEX).parsed();
        return map.getOrDefault(lnc, lnc);
    }

    /**
     * File of the collective library.
     *
     * @return empty when the system's loader is to find {@code libnccom.so}.
     */
    public String libnccomPath() {
        return text(Setting.LIBNCCOM_PATH);
    }

    /**
     * File of the collective library's net plug-in.
     *
     * @return empty when the system's loader is to find {@code libnccom-net.so}.
     */
    public String libnccomNetPath() {
        return text(Setting.LIBNCCOM_NET_PATH);
    }

    /**
     * Memory type that libnccom registers memory with.
     *
     * @return 4 for Neuron device memory, 1 for host memory.
     */
    public int libnccomMemoryType() {
        return number(Setting.LIBNCCOM_MEMORY_TYPE);
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

    private static String shown(final Setting setting, final String text) {
        return setting == Setting.KV_SECRET && !text.isEmpty() ? "***" : text;
    }

    @Override
    public String toString() {
        return String.join(", ", describe());
    }

    /** Collects settings; {@link #build()} checks them. Not safe for use by several threads. */
    public static final class Builder {
        private final Function<String, String> properties;
        private final Function<String, String> environment;
        private final Map<Setting, String> fromCode = new EnumMap<>(Setting.class);

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
        public Builder set(final Setting setting, final String text) {
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
            return set(Setting.ASYNC_SENDRECV_ENABLED, Boolean.toString(enabled));
        }

        /**
         * Gate 2 of init.
         *
         * @param port TCP port of the key-value store, 1 to 65535.
         * @return this.
         */
        public Builder bootstrapPort(final int port) {
            return set(Setting.BOOTSTRAP_PORT, Integer.toString(port));
        }

        /**
         * Name of the transport.
         *
         * @param name such as {@code loopback}.
         * @return this.
         */
        public Builder transport(final String name) {
            return set(Setting.TRANSPORT, name);
        }

        /**
         * Time that a communicator has to connect.
         *
         * @param timeout zero is without limit.
         * @return this.
         */
        public Builder connectTimeout(final Duration timeout) {
            return set(Setting.CONNECT_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Time that a transfer has to complete.
         *
         * @param timeout zero is without limit.
         * @return this.
         */
        public Builder requestTimeout(final Duration timeout) {
            return set(Setting.REQUEST_TIMEOUT_MS, Long.toString(timeout.toMillis()));
        }

        /**
         * Address that the key-value server listens on.
         *
         * @param literal IPv4 or IPv6.
         * @return this.
         */
        public Builder kvBindAddress(final String literal) {
            return set(Setting.KV_BIND_ADDRESS, literal);
        }

        /**
         * Folder of the key-value server's lock file.
         *
         * @param folder an existing folder.
         * @return this.
         */
        public Builder kvLockDirectory(final Path folder) {
            return set(Setting.KV_LOCK_DIRECTORY, folder.toString());
        }

        /**
         * Shared secret of the job.
         *
         * @param secret empty is off.
         * @return this.
         */
        public Builder kvSecret(final String secret) {
            return set(Setting.KV_SECRET, secret);
        }

        /**
         * Checks every setting and makes the configuration.
         *
         * @return an immutable configuration.
         * @throws NrtException INVALID with the setting's name, its value and what is allowed.
         */
        public NrtConfig build() {
            final Map<Setting, Value> values = new EnumMap<>(Setting.class);
            for (final Setting setting : Setting.values()) {
                values.put(setting, resolve(setting));
            }
            return new NrtConfig(Collections.unmodifiableMap(values));
        }

        private Value resolve(final Setting setting) {
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
                text = setting.defaultText;
            }
            try {
                return new Value(text, setting.parser.parse(text), source);
            } catch (final IllegalArgumentException ex) {
                throw new NrtException(NrtStatus.INVALID, setting.variable() + "='" + shown(setting, text) + "' (" + source
                    + ") is not allowed: " + setting.parser.allowed(), ex);
            }
        }
    }
}
