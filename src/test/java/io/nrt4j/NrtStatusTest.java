package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** The values of the C enumeration. */
class NrtStatusTest {
    private static final String C_VALUES = """
        SUCCESS 0, FAILURE 1, INVALID 2, INVALID_HANDLE 3, RESOURCE 4, TIMEOUT 5, HW_ERROR 6, QUEUE_FULL 7,
        LOAD_NOT_ENOUGH_NC 9, UNSUPPORTED_NEFF_VERSION 10, FAIL_HOST_MEM_ALLOC 11, UNINITIALIZED 13, CLOSED 14, QUEUE_EMPTY 15,
        EXEC_UNIT_UNRECOVERABLE 101, EXEC_BAD_INPUT 1002, EXEC_COMPLETED_WITH_NUM_ERR 1003, EXEC_COMPLETED_WITH_ERR 1004,
        EXEC_NC_BUSY 1005, EXEC_OOB 1006, COLL_PENDING 1100, EXEC_HW_ERR_COLLECTIVES 1200, EXEC_HW_ERR_HBM_UE 1201,
        EXEC_HW_ERR_NC_UE 1202, EXEC_HW_ERR_DMA_ABORT 1203, EXEC_SW_NQ_OVERFLOW 1204, EXEC_HW_ERR_REPAIRABLE_HBM_UE 1205,
        NETWORK_PROXY_FAILURE 1206""";

    @Test
    void everyStatusHasItsCValueAndNoOther() {
        final Map<String, Integer> expected = new TreeMap<>();
        for (final String pair : C_VALUES.split(",\\s+")) {
            expected.put(pair.split(" ")[0], Integer.valueOf(pair.split(" ")[1]));
        }
        final Map<String, Integer> actual = new TreeMap<>();
        for (final NrtStatus status : NrtStatus.values()) {
            actual.put(status.name(), status.code());
        }
        assertThat(actual).isEqualTo(expected);
    }

    @Test
    void isFoundByCodeAndByName() {
        for (final NrtStatus status : NrtStatus.values()) {
            assertThat(NrtStatus.fromCode(status.code())).isSameAs(status);
            assertThat(NrtStatus.fromName(status.name())).isSameAs(status);
            assertThat(NrtStatus.fromName("NRT_" + status.name())).isSameAs(status);
        }
    }

    @Test
    void whatIsNoStatusIsRefused() {
        for (final int code : new int[] {-1, 8, 12, 16, 1000, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            assertThatThrownBy(() -> NrtStatus.fromCode(code)).isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("" + code);
        }
        for (final String name : new String[] {"", "NRT_", "success", "NRT_NRT_SUCCESS", " SUCCESS"}) {
            assertThatThrownBy(() -> NrtStatus.fromName(name)).isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'" + name + "'");
        }
    }

    @Test
    void anExceptionCarriesStatusTextAndFirstCause() {
        final Exception cause = new Exception("first");
        final NrtException ex = new NrtException(NrtStatus.RESOURCE, "what", cause);
        assertThat(ex.status()).isEqualTo(NrtStatus.RESOURCE);
        assertThat(ex).hasMessage("what").hasCause(cause);
        assertThatThrownBy(() -> new NrtException(null, "what")).isInstanceOf(NullPointerException.class);
    }
}
