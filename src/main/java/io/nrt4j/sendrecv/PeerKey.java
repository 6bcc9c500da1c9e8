package io.nrt4j.sendrecv;

import java.util.Comparator;

/**
 * Key by which the service thread keeps connecting communicators, in order. Ports the
 * {@code pair<string, int>} and its {@code str_int_pair_comparator}.
 *
 * @param ip  the peer's address in canonical text.
 * @param lnc the peer's LNC.
 */
record PeerKey(String ip, int lnc) implements Comparable<PeerKey> {
    private static final Comparator<PeerKey> ORDER = Comparator.comparing(PeerKey::ip).thenComparingInt(PeerKey::lnc);

    @Override
    public int compareTo(final PeerKey other) {
        return ORDER.compare(this, other);
    }
}
