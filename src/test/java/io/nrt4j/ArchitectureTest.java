package io.nrt4j;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The rooms of docs/architecture.md: who may import whom, and what is public. */
class ArchitectureTest {
    private static final String ROOT = "io.nrt4j";

    /** For each room, the rooms that it may import. The vocabulary, {@code io.nrt4j} itself, is open to all. */
    private static final Map<String, List<String>> ROOMS = Map.ofEntries(
        Map.entry("io.nrt4j", List.of()),
        Map.entry("io.nrt4j.concurrent", List.of()),
        Map.entry("io.nrt4j.net", List.of()),
        Map.entry("io.nrt4j.net.loopback", List.of("io.nrt4j.net")),
        Map.entry("io.nrt4j.net.signals", List.of()),
        Map.entry("io.nrt4j.net.libfabric", List.of("io.nrt4j.net", "io.nrt4j.net.signals", "io.nrt4j.concurrent")),
        Map.entry("io.nrt4j.net.libnccom", List.of("io.nrt4j.net", "io.nrt4j.net.signals", "io.nrt4j.concurrent")),
        Map.entry("io.nrt4j.net.opfifo", List.of("io.nrt4j.net")),
        Map.entry("io.nrt4j.kv", List.of("io.nrt4j.concurrent")),
        Map.entry("io.nrt4j.sendrecv", List.of("io.nrt4j.net", "io.nrt4j.kv", "io.nrt4j.concurrent")),
        Map.entry("io.nrt4j.proxy", List.of("io.nrt4j.net", "io.nrt4j.concurrent")));

    /** The one room that may import every other. */
    private static final String TOOLS = "io.nrt4j.tools";

    private static JavaClasses all;

    @BeforeAll
    static void importClasses() throws URISyntaxException {
        // By place, not by package: the tests are in the same packages.
        all = new ClassFileImporter().importPath(
            Path.of(NrtStatus.class.getProtectionDomain().getCodeSource().getLocation().toURI()));
    }

    @Test
    void everyClassIsInARoom() {
        assertThat(all.stream().map(JavaClass::getPackageName).collect(Collectors.toSet()))
            .as("packages that docs/architecture.md does not know").isSubsetOf(rooms());
    }

    private static Set<String> rooms() {
        final Set<String> rooms = new TreeSet<>(ROOMS.keySet());
        rooms.add(TOOLS);
        return rooms;
    }

    @TestFactory
    List<DynamicTest> aRoomImportsOnlyWhatItMay() {
        final List<DynamicTest> tests = new ArrayList<>();
        ROOMS.forEach((room, allowed) -> tests.add(DynamicTest.dynamicTest(room, () -> {
            final List<String> may = new ArrayList<>(allowed);
            may.add(room);
            may.add(ROOT);
            final DescribedPredicate<JavaClass> ours = resideInAPackage(ROOT + "..");
            noClasses().that().resideInAPackage(room).should()
                .dependOnClassesThat(ours.and(DescribedPredicate.not(resideInAnyPackage(may.toArray(String[]::new)))))
                .allowEmptyShould(true).check(all);
        })));
        return tests;
    }

    @Test
    void theVocabularyImportsNothingOfOurs() {
        noClasses().that().resideInAPackage(ROOT).should().dependOnClassesThat(
            resideInAPackage(ROOT + "..").and(DescribedPredicate.not(resideInAPackage(ROOT)))).check(all);
    }

    @Test
    void thereIsNoCircle() {
        slices().matching("(io.nrt4j..)").should().beFreeOfCycles().check(all);
    }

    @Test
    void theCommandLineAloneUsesWhatItAloneBrings() {
        noClasses().that().resideOutsideOfPackage(TOOLS).should().dependOnClassesThat()
            .resideInAnyPackage("picocli..", "org.HdrHistogram..", "org.slf4j.simple..", "org.slf4j.impl..").check(all);
    }

    @Test
    void nobodyUsesWhatWillBeTakenAway() {
        noClasses().should().dependOnClassesThat().resideInAnyPackage("sun..", "jdk.internal..").check(all);
    }

    @Test
    void theEngineShowsItsApiAndNothingElse() {
        assertThat(publicTypes("io.nrt4j.sendrecv"))
            .containsExactlyInAnyOrder("NrtAsyncSendRecv", "SendRecvComm", "SendRecvRequest", "CommFailure");
    }

    @Test
    void theProxyDriverShowsItsApiAndNothingElse() {
        assertThat(publicTypes("io.nrt4j.proxy")).containsExactlyInAnyOrder("GlobalComm", "SharedProxyQueues", "ProxyQueue",
            "ProxyTask", "NetworkProxyTask", "BarrierProxyTask", "ProxyTaskState", "RunState", "TaskType", "ProxyTasks", "TaskStatus",
            "EncContext", "FifoSet", "DeviceTrigger", "HostBarrier", "ProcessBarrier", "NetBarrier");
        assertThat(publicTypes("io.nrt4j.net.opfifo")).containsExactlyInAnyOrder("OpFifoProxy", "PeerLinks", "SemaphoreStyle");
    }

    @Test
    void theCommandLineShowsItsMainAndNothingElse() {
        assertThat(publicTypes(TOOLS)).containsExactly("Main");
    }

    private static List<String> publicTypes(final String room) {
        return all.stream()
            .filter(type -> type.getPackageName().equals(room) && type.isTopLevelClass())
            .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
            .map(JavaClass::getSimpleName)
            .filter(name -> !name.equals("package-info"))
            .toList();
    }

    @Test
    void whatThePublicApiShowsIsPublic() {
        classes().that().resideInAnyPackage("io.nrt4j.sendrecv", "io.nrt4j.proxy", "io.nrt4j.net.opfifo").and().arePublic()
            .should(new SignaturesArePublic()).check(all);
    }
}
