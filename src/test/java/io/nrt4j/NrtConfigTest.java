package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each setting comes from code, property, environment or default, and what cannot be is refused with its name. */
class NrtConfigTest {
    /** A value of each setting that is not its default. */
    private static final Map<NrtSetting, String> OTHER = new EnumMap<>(Map.ofEntries(
        Map.entry(NrtSetting.ASYNC_SENDRECV_ENABLED, "1"), Map.entry(NrtSetting.BOOTSTRAP_PORT, "45645"),
        Map.entry(NrtSetting.ROOT_COMM_ID, "10.0.0.1:4000"), Map.entry(NrtSetting.RANKS_PER_NETWORK_PROXY, "2"),
        Map.entry(NrtSetting.ONE_THREAD_PER_CORE, "true"), Map.entry(NrtSetting.LOW_LATENCY_CPU_AFFINITY, "0,2-5"),
        Map.entry(NrtSetting.DBG_EARLY_COMPLETION, "0"), Map.entry(NrtSetting.DBG_EARLY_POSTING, "false"),
        Map.entry(NrtSetting.TRANSPORT, "libfabric"), Map.entry(NrtSetting.CONNECT_TIMEOUT_MS, "11"),
        Map.entry(NrtSetting.REQUEST_TIMEOUT_MS, "12"), Map.entry(NrtSetting.FLUSH_TIMEOUT_MS, "13"),
        Map.entry(NrtSetting.CLOSE_TIMEOUT_MS, "14"), Map.entry(NrtSetting.INIT_TIMEOUT_MS, "15"),
        Map.entry(NrtSetting.KV_BIND_ADDRESS, "127.0.0.1"), Map.entry(NrtSetting.KV_SECRET, "hush"),
        Map.entry(NrtSetting.KV_LOCK_DIRECTORY, "/var/lock"), Map.entry(NrtSetting.HOST_NAME, "node-7"),
        Map.entry(NrtSetting.VTPB_INDEX, "5=1,6=0"), Map.entry(NrtSetting.LIBFABRIC_PATH, "/opt/libfabric.so.1"),
        Map.entry(NrtSetting.LIBFABRIC_PROVIDER, "tcp;ofi_rxm"), Map.entry(NrtSetting.LIBFABRIC_ADDRESS, "eth0"),
        Map.entry(NrtSetting.LIBNCCOM_MEMORY_TYPE, "1")));

    private static NrtConfig.Builder builder() {
        return NrtConfig.builder(Map.of(), Map.of());
    }

    private static String other(final NrtSetting setting) {
        return OTHER.getOrDefault(setting, "other");
    }

    private static String line(final NrtConfig config, final NrtSetting setting) {
        final List<String> lines = config.describe().stream().filter(text -> text.startsWith(setting.variable() + "=")).toList();
        assertThat(lines).hasSize(1);
        return lines.get(0);
    }

    private static String shown(final NrtSetting setting) {
        return setting == NrtSetting.KV_SECRET ? "***" : other(setting);
    }

    @ParameterizedTest
    @EnumSource(NrtSetting.class)
    void everySettingComesFromCodeThenPropertyThenEnvironmentThenDefault(final NrtSetting setting) {
        final Map<String, String> property = Map.of(setting.property(), other(setting));
        final Map<String, String> environment = Map.of(setting.variable(), other(setting));
        final Map<String, String> badProperty = Map.of(setting.property(), "\u0000");
        final Map<String, String> badEnvironment = Map.of(setting.variable(), "\u0000");

        assertThat(line(NrtConfig.builder(badProperty, badEnvironment).set(setting, other(setting)).build(), setting))
            .isEqualTo(setting.variable() + "=" + shown(setting) + " (code)");
        assertThat(line(NrtConfig.builder(property, badEnvironment).build(), setting))
            .isEqualTo(setting.variable() + "=" + shown(setting) + " (system property " + setting.property() + ")");
        assertThat(line(NrtConfig.builder(Map.of(), environment).build(), setting))
            .isEqualTo(setting.variable() + "=" + shown(setting) + " (environment)");
        assertThat(line(builder().build(), setting)).endsWith(" (default)").doesNotContain("=" + shown(setting) + " ");
    }

    @Test
    void namesAreUniqueAndThoseOfTheOriginal() {
        assertThat(NrtSetting.values()).extracting(NrtSetting::variable).doesNotHaveDuplicates().allMatch(
            name -> name.startsWith("NEURON_RT_") || name.startsWith("NRT4J_"));
        assertThat(NrtSetting.values()).extracting(NrtSetting::property).doesNotHaveDuplicates()
            .allMatch(name -> name.startsWith("nrt4j."));
        assertThat(NrtSetting.values()).extracting(NrtSetting::variable).contains(
            "NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED", "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT", "NEURON_RT_ROOT_COMM_ID",
            "NEURON_RT_RANKS_PER_NETWORK_PROXY", "NEURON_RT_ONE_THREAD_PER_CORE", "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY",
            "NEURON_RT_DBG_EARLY_COMPLETION", "NEURON_RT_DBG_EARLY_POSTING");
    }

    @Test
    void defaults() {
        final NrtConfig config = builder().build();
        assertThat(config.asyncSendRecvEnabled()).isFalse();
        assertThat(config.bootstrapPort()).isZero();
        assertThat(config.rootCommId()).isEmpty();
        assertThat(config.ranksPerNetworkProxy()).isEqualTo(1);
        assertThat(config.oneThreadPerCore()).isFalse();
        assertThat(config.lowLatencyCpus()).isEmpty();
        assertThat(config.earlyCompletion()).isTrue();
        assertThat(config.earlyPosting()).isTrue();
        assertThat(config.transport()).isEqualTo("loopback");
        assertThat(config.connectTimeout()).isEqualTo(Duration.ofSeconds(120));
        assertThat(config.requestTimeout()).isEqualTo(Duration.ZERO);
        assertThat(config.flushTimeout()).isEqualTo(Duration.ofSeconds(30));
        assertThat(config.closeTimeout()).isEqualTo(Duration.ofSeconds(5));
        assertThat(config.initTimeout()).isPositive();
        assertThat(config.kvBindAddress()).isEqualTo("::");
        assertThat(config.kvSecret()).isEmpty();
        assertThat(config.kvLockDirectory()).isEqualTo(Path.of(System.getProperty("java.io.tmpdir")));
        assertThat(config.hostName()).isNotBlank();
        assertThat(List.of(config.libfabricPath(), config.libfabricProvider(), config.libfabricAddress())).containsOnly("");
        assertThat(config.vtpbIndex(0)).isZero();
        assertThat(config.vtpbIndex(127)).isEqualTo(127);
    }

    @Test
    void values() {
        final NrtConfig.Builder builder = builder();
        OTHER.forEach(builder::set);
        final NrtConfig config = builder.build();
        assertThat(config.asyncSendRecvEnabled()).isTrue();
        assertThat(config.bootstrapPort()).isEqualTo(45645);
        assertThat(config.rootCommId()).isEqualTo("10.0.0.1:4000");
        assertThat(config.ranksPerNetworkProxy()).isEqualTo(2);
        assertThat(config.oneThreadPerCore()).isTrue();
        assertThat(config.lowLatencyCpus()).containsExactly(0, 2, 3, 4, 5);
        assertThat(config.earlyCompletion()).isFalse();
        assertThat(config.earlyPosting()).isFalse();
        assertThat(config.transport()).isEqualTo("libfabric");
        assertThat(config.connectTimeout()).isEqualTo(Duration.ofMillis(11));
        assertThat(config.requestTimeout()).isEqualTo(Duration.ofMillis(12));
        assertThat(config.flushTimeout()).isEqualTo(Duration.ofMillis(13));
        assertThat(config.closeTimeout()).isEqualTo(Duration.ofMillis(14));
        assertThat(config.initTimeout()).isEqualTo(Duration.ofMillis(15));
        assertThat(config.kvBindAddress()).isEqualTo("127.0.0.1");
        assertThat(config.kvSecret()).isEqualTo("hush");
        assertThat(config.kvLockDirectory()).isEqualTo(Path.of("/var/lock"));
        assertThat(config.hostName()).isEqualTo("node-7");
        assertThat(config.libfabricPath()).isEqualTo("/opt/libfabric.so.1");
        assertThat(config.libfabricProvider()).isEqualTo("tcp;ofi_rxm");
        assertThat(config.libfabricAddress()).isEqualTo("eth0");
        assertThat(List.of(config.vtpbIndex(4), config.vtpbIndex(5), config.vtpbIndex(6))).containsExactly(4, 1, 0);
    }

    @Test
    void namedMethodsOfTheBuilderSetTheirSettings() {
        final NrtConfig config = builder().asyncSendRecvEnabled(true).bootstrapPort(65535).transport("shm-2")
            .connectTimeout(Duration.ofSeconds(3)).requestTimeout(Duration.ofSeconds(4)).kvBindAddress("::1")
            .kvLockDirectory(Path.of("/locks")).kvSecret("s").build();
        assertThat(config.asyncSendRecvEnabled()).isTrue();
        assertThat(config.bootstrapPort()).isEqualTo(65535);
        assertThat(config.transport()).isEqualTo("shm-2");
        assertThat(config.connectTimeout()).isEqualTo(Duration.ofSeconds(3));
        assertThat(config.requestTimeout()).isEqualTo(Duration.ofSeconds(4));
        assertThat(config.kvBindAddress()).isEqualTo("::1");
        assertThat(config.kvLockDirectory()).isEqualTo(Path.of("/locks"));
        assertThat(config.kvSecret()).isEqualTo("s");
    }

    @ParameterizedTest
    @ValueSource(strings = {"abc", "0", "-1", "65536", " 45645 ", "123456", "045645", "+45645", "45645.0", "0x10", "4 5",
        "99999999999999999999"})
    void aPortThatCannotBeIsRefused(final String port) {
        assertThatThrownBy(() -> NrtConfig.builder(Map.of(), Map.of(NrtSetting.BOOTSTRAP_PORT.variable(), port)).build())
            .isInstanceOf(NrtException.class)
            .hasMessageContaining("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT='" + port + "'")
            .hasMessageContaining("environment").hasMessageContaining("a TCP port from 1 to 65535")
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(NrtStatus.INVALID);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', ignoreLeadingAndTrailingWhitespace = false, quoteCharacter = '`', value = {
        "ASYNC_SENDRECV_ENABLED|yes", "ASYNC_SENDRECV_ENABLED|``", "ASYNC_SENDRECV_ENABLED|TRUE", "ASYNC_SENDRECV_ENABLED|2",
        "ROOT_COMM_ID|10.0.0.1", "ROOT_COMM_ID|host:80", "ROOT_COMM_ID|10.0.0.1:0", "ROOT_COMM_ID|::1:80", "ROOT_COMM_ID|[::1]",
        "ROOT_COMM_ID|[10.0.0.1]:80", "ROOT_COMM_ID|[]:80", "ROOT_COMM_ID|:80", "ROOT_COMM_ID|10.0.0.1:65536",
        "RANKS_PER_NETWORK_PROXY|0", "RANKS_PER_NETWORK_PROXY|1025", "RANKS_PER_NETWORK_PROXY|x",
        "LOW_LATENCY_CPU_AFFINITY|0x0", "LOW_LATENCY_CPU_AFFINITY|0x", "LOW_LATENCY_CPU_AFFINITY|0xfg", "LOW_LATENCY_CPU_AFFINITY|5-2",
        "LOW_LATENCY_CPU_AFFINITY|1,,2", "LOW_LATENCY_CPU_AFFINITY|1-2-3", "LOW_LATENCY_CPU_AFFINITY|1024", "LOW_LATENCY_CPU_AFFINITY|-1",
        "TRANSPORT|``", "TRANSPORT|Loopback", "TRANSPORT|../x", "CONNECT_TIMEOUT_MS|-1", "CONNECT_TIMEOUT_MS|86400001",
        "CONNECT_TIMEOUT_MS|1s", "CONNECT_TIMEOUT_MS|``", "FLUSH_TIMEOUT_MS|0", "CLOSE_TIMEOUT_MS|0", "INIT_TIMEOUT_MS|0",
        "KV_BIND_ADDRESS|localhost", "KV_BIND_ADDRESS|``", "KV_BIND_ADDRESS|256.0.0.1", "HOST_NAME|a b",
        "VTPB_INDEX|1", "VTPB_INDEX|1=", "VTPB_INDEX|=1", "VTPB_INDEX|128=0", "VTPB_INDEX|0=128", "VTPB_INDEX|1=2=3", "VTPB_INDEX|1=2,",
        "VTPB_INDEX|1=2,1=3", "LIBFABRIC_PROVIDER|tcp,shm", "LIBFABRIC_PROVIDER|tcp ofi_rxm", "LIBFABRIC_PROVIDER|../tcp",
        "LIBFABRIC_PROVIDER|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "LIBFABRIC_ADDRESS|10.0.0.1/24",
        "LIBFABRIC_ADDRESS|eth 0", "LIBFABRIC_ADDRESS|10.0.0.1,10.0.0.2", "LIBFABRIC_ADDRESS|[::1]"})
    void whatCannotBeIsRefusedWithNameValueAndWhatIsAllowed(final NrtSetting setting, final String text) {
        assertThatThrownBy(() -> builder().set(setting, text).build()).isInstanceOf(NrtException.class)
            .hasMessageContaining(setting.variable() + "='" + text + "' (code)").hasMessageContaining("is not allowed: allowed is ")
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(NrtStatus.INVALID);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', value = {"ROOT_COMM_ID|[::1]:80", "ROOT_COMM_ID|10.0.0.1:65535",
        "LOW_LATENCY_CPU_AFFINITY|1023", "LOW_LATENCY_CPU_AFFINITY|0x3C", "CONNECT_TIMEOUT_MS|0", "CONNECT_TIMEOUT_MS|86400000",
        "FLUSH_TIMEOUT_MS|1", "KV_BIND_ADDRESS|::", "HOST_NAME|``", "VTPB_INDEX|0=127,127=0",
        "LIBFABRIC_PROVIDER|tcp;ofi_rxm", "LIBFABRIC_PROVIDER|^sockets", "LIBFABRIC_PROVIDER|``", "LIBFABRIC_ADDRESS|eth0.100",
        "LIBFABRIC_ADDRESS|fe80::1%eth0", "LIBFABRIC_ADDRESS|``", "LIBFABRIC_PATH|/opt/amazon/efa/lib64/libfabric.so.1"})
    void whatIsJustAllowedIsTaken(final NrtSetting setting, final String text) {
        assertThat(line(builder().set(setting, text).build(), setting)).contains("=" + text + " ");
    }

    @Test
    void aMaskNamesTheSameProcessorsAsAList() {
        assertThat(builder().set(NrtSetting.LOW_LATENCY_CPU_AFFINITY, "0x3d").build().lowLatencyCpus()).containsExactly(0, 2, 3, 4, 5);
        assertThat(builder().set(NrtSetting.LOW_LATENCY_CPU_AFFINITY, "5,4,0,2-4,4").build().lowLatencyCpus())
            .containsExactly(0, 2, 3, 4, 5);
    }

    @Test
    void secretsAreNeverShown() {
        final NrtConfig config = builder().kvSecret("topsecret").build();
        assertThat(config.describe()).noneMatch(text -> text.contains("topsecret")).anyMatch(text -> text.contains("KV_SECRET=***"));
        assertThat(config.toString()).doesNotContain("topsecret");
    }

    @Test
    void laterChangesOfTheSourcesDoNotShow() {
        final Map<String, String> environment = new HashMap<>(Map.of(NrtSetting.BOOTSTRAP_PORT.variable(), "1000"));
        final NrtConfig.Builder builder = NrtConfig.builder(Map.of(), environment);
        environment.put(NrtSetting.BOOTSTRAP_PORT.variable(), "2000");
        final NrtConfig config = builder.build();
        builder.bootstrapPort(3000);
        assertThat(config.bootstrapPort()).isEqualTo(1000);
    }

    @Test
    void theRealSystemPropertiesAreRead() {
        System.setProperty(NrtSetting.BOOTSTRAP_PORT.property(), "4567");
        try {
            assertThat(NrtConfig.fromEnvironment().bootstrapPort()).isEqualTo(4567);
        } finally {
            System.clearProperty(NrtSetting.BOOTSTRAP_PORT.property());
        }
    }

    @Test
    void nullIsRefusedWhereItIsGiven() {
        assertThatThrownBy(() -> builder().set(NrtSetting.TRANSPORT, null)).isInstanceOf(NullPointerException.class)
            .hasMessageContaining("NRT4J_TRANSPORT");
    }
}
