package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.testing.ChildJvm;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** A JVM that denies native access, by processes of their own: options are those of a whole JVM. */
class NativeAccessTest {
    /** What such a JVM runs. */
    static final class Child {
        private Child() {
        }

        /**
         * Asks for the transport twice, since the second failure of a class differs from the first.
         *
         * @param args none.
         */
        public static void main(final String[] args) {
            final NrtConfig config = FabricPair.config("");
            for (int i = 0; i < 2; i++) {
                System.out.println("cause: " + new LibfabricProvider().unavailabilityCause(config));
                System.out.println("described: " + new LibfabricProvider().describe(config));
                try {
                    new LibfabricProvider().create(config).close();
                    System.out.println("created");
                } catch (final NrtException ex) {
                    System.out.println("refused: " + ex.getMessage());
                }
            }
            System.out.println("end");
        }
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_25)
    void nativeAccessThatIsDeniedIsACauseAndNoCrash() {
        try (ChildJvm child = ChildJvm.start(List.of("--illegal-native-access=deny"), Child.class)) {
            assertThat(child.awaitLine("cause: ", Duration.ofSeconds(30)))
                .contains("JNA cannot be used").contains("--enable-native-access=ALL-UNNAMED");
            for (int i = 0; i < 2; i++) {
                assertThat(child.awaitLine("refused: ", Duration.ofSeconds(30))).contains("JNA cannot be used");
            }
            child.awaitLine("end", Duration.ofSeconds(30));
        }
    }

    @Test
    void withoutJavaLangForeignTheTransportOpensAllTheSame() {
        FabricPair.assumeLibfabric();
        try (ChildJvm child = ChildJvm.start(List.of("-Dnrt4j.libfabric.foreign=false"), Child.class)) {
            child.awaitLine("created", Duration.ofSeconds(30));
            child.awaitLine("end", Duration.ofSeconds(30));
        }
    }
}
