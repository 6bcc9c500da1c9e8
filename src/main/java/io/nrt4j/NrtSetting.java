package io.nrt4j;

/** A setting: its names, its default, what it allows. */
public enum NrtSetting {
    /** Whether asynchronous send and receive may be initialised: gate 1 of init. */
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
    KV_BIND_ADDRESS("NRT4J_KV_BIND_ADDRESS", "nrt4j.kv.bindAddress", "::", SettingParser.IP_LITERAL),
    /** Shared secret of a job: frames without a right HMAC-SHA256 are refused. Empty is off. */
    KV_SECRET("NRT4J_KV_SECRET", "nrt4j.kv.secret", "", SettingParser.ANY),
    /** Folder of the lock file that elects the key-value server among the processes of a user. */
    KV_LOCK_DIRECTORY("NRT4J_KV_LOCK_DIRECTORY", "nrt4j.kv.lockDirectory", "", SettingParser.ANY),
    /** Name of this host as it appears in its identity; empty is the operating system's name. */
    HOST_NAME("NRT4J_HOST_NAME", "nrt4j.hostName", "", SettingParser.HOST_NAME),
    /** Device index of each LNC where it is not the LNC itself, as {@code lnc=index,lnc=index}. */
    VTPB_INDEX("NRT4J_VTPB_INDEX", "nrt4j.vtpbIndex", "", SettingParser.INT_MAP),
    /** File of the libfabric library; empty is {@code libfabric.so.1} as the system's loader finds it. */
    LIBFABRIC_PATH("NRT4J_LIBFABRIC_PATH", "nrt4j.libfabric.path", "", SettingParser.ANY),
    /** Name of the libfabric provider, such as {@code tcp;ofi_rxm}; empty is the best one that hosts can share. */
    LIBFABRIC_PROVIDER("NRT4J_LIBFABRIC_PROVIDER", "nrt4j.libfabric.provider", "", SettingParser.FABRIC_PROVIDER),
    /** Source address or network interface of the libfabric transport; empty is the provider's first choice. */
    LIBFABRIC_ADDRESS("NRT4J_LIBFABRIC_ADDRESS", "nrt4j.libfabric.address", "", SettingParser.IP_OR_INTERFACE),
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

    NrtSetting(final String variable, final String property, final String defaultText, final SettingParser parser) {
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

    String defaultText() {
        return defaultText;
    }

    SettingParser parser() {
        return parser;
    }
}
