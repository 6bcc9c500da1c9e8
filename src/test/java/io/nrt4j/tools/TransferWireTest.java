package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.tools.TransferWire.Header;
import io.nrt4j.tools.TransferWire.Reply;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a peer sends is not to be trusted. */
class TransferWireTest {
    private static TransferFile file(final String name, final long size) {
        return new TransferFile(name.getBytes(StandardCharsets.UTF_8), size);
    }

    private static List<TransferFile> roundTrip(final TransferFile... files) {
        final byte[] manifest = TransferWire.encodeManifest(List.of(files));
        final long total = Arrays.stream(files).mapToLong(TransferFile::sizeBytes).sum();
        return TransferWire.decodeManifest(
            Header.decode(new Header(files.length, manifest.length, 1024, total).encode()), manifest);
    }

    @Test
    void aManifestComesBack() {
        final List<TransferFile> files = roundTrip(file("a", 0), file("b/\u00fc x", 5_000_000_000L));

        assertThat(files).extracting(TransferFile::toString).containsExactly("a", "b/\u00fc x");
        assertThat(files).extracting(TransferFile::sizeBytes).containsExactly(0L, 5_000_000_000L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "./a", "a/.", "", "a\u0000b"})
    void namesThatLeadElsewhereAreRefused(final String name) {
        assertThatThrownBy(() -> roundTrip(file("fine", 1), file(name, 1)))
            .isInstanceOf(NrtException.class).hasMessageContaining("file 1 '").hasMessageContaining("is refused");
    }

    @Test
    void sizesThatCannotBeAreRefused() {
        assertThatThrownBy(() -> roundTrip(file("fine", 10), file("odd", -1))).hasMessageContaining("its size is -1");
    }

    @Test
    void randomBytesAreRefusedAndNeverHurt() {
        final Random random = new Random(42);
        final byte[] good = TransferWire.encodeManifest(List.of(file("abc", 7), file("def/ghi", 8), file("x", 0)));
        for (int i = 0; i < 20_000; i++) {
            final byte[] bytes = Arrays.copyOf(good, random.nextInt(good.length + 8));
            for (int flips = random.nextInt(4); flips >= 0 && bytes.length > 0; flips--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            try {
                for (final TransferFile file : TransferWire.decodeManifest(new Header(3, bytes.length, 1, 15), bytes)) {
                    assertThat(FileNames.objection(file.name())).isNull();
                }
            } catch (final NrtException ex) {
                assertThat(ex).hasMessageContaining("manifest");
            }
        }
    }

    @Test
    void headersAreChecked() {
        assertThatThrownBy(() -> Header.decode(new byte[TransferWire.HEADER_BYTES])).hasMessageContaining("no header");
        assertThatThrownBy(() -> Header.decode(new byte[3])).isInstanceOf(RuntimeException.class);
        assertThatThrownBy(() -> Header.decode(new Header(0, 0, 1, 1).encode())).hasMessageContaining("cannot be");
        assertThatThrownBy(() -> Header.decode(new Header(1_000_000, 12, 1, 1).encode())).hasMessageContaining("cannot be");
        assertThatThrownBy(() -> Header.decode(new Header(1, Integer.MAX_VALUE, 1, 1).encode())).hasMessageContaining("cannot be");
        assertThatThrownBy(() -> Header.decode(new Header(1, 12, 0, 1).encode())).hasMessageContaining("cannot be");
        final byte[] otherVersion = new Header(1, 12, 1, 1).encode();
        otherVersion[8] = 2;
        assertThatThrownBy(() -> Header.decode(otherVersion)).hasMessageContaining("version 2");
    }

    @Test
    void repliesComeBack() {
        final byte[][] digests = {new byte[32], new byte[32]};
        digests[1][31] = 1;
        final Reply good = Reply.decode(new Reply(1, 2, digests, null).encode(), 2);
        assertThat(good.digests()).isDeepEqualTo(digests);
        assertThat(good.inFlightNs()).isEqualTo(1);

        final Reply bad = Reply.decode(new Reply(0, 0, null, "no room".repeat(1000)).encode(), 2);
        assertThat(bad.reason()).startsWith("no room").hasSize(TransferWire.REASON_BYTES);

        assertThatThrownBy(() -> Reply.decode(new Reply(1, 2, digests, null).encode(), 3)).hasMessageContaining("3 files");
        assertThatThrownBy(() -> Reply.decode(new byte[4], 3)).hasMessageContaining("4 bytes");
    }
}
