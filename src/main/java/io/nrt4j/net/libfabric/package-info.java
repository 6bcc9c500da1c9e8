/**
 * The transport over libfabric, between processes and hosts.
 *
 * <p>One endpoint per transport instance, whatever the number of LNCs and peers: an endpoint costs memory (70 MB with tcp;ofi_rxm), a
 * dozen file descriptors and some microseconds of each poll. Only with shm has each peer an endpoint of its own (see below).
 * The communicators of all LNCs share one lock. Most calls hold it for about a microsecond; a poll that finds data holds it while the
 * provider copies, which takes tens of microseconds for a message of 1 MiB, and the set-up of a peer holds it for milliseconds.
 *
 * <p><b>Layers</b>, ground floor first: {@link io.nrt4j.net.libfabric.FiLayout} (offsets),
 * {@link io.nrt4j.net.libfabric.DataPath} (the calls of the data path), {@link io.nrt4j.net.libfabric.Libfabric} (the loaded
 * library), {@link io.nrt4j.net.libfabric.FabricSelection} (provider and address), {@link io.nrt4j.net.libfabric.FabricEndpoint}
 * (native objects, operations, completions), {@link io.nrt4j.net.libfabric.MessageEngine} (peers, communicators and the message
 * protocol, whose parts are {@link io.nrt4j.net.libfabric.Sending}, {@link io.nrt4j.net.libfabric.Receiving},
 * {@link io.nrt4j.net.libfabric.Outbox}, {@link io.nrt4j.net.libfabric.Incoming}, {@link io.nrt4j.net.libfabric.Outcomes} and
 * {@link io.nrt4j.net.libfabric.CommClosing}), {@link io.nrt4j.net.libfabric.ControlPlane} (control sockets: hello, liveness, closing),
 * {@link io.nrt4j.net.libfabric.Rendezvous} (connecting over them), {@link io.nrt4j.net.libfabric.LibfabricTransport} (what the
 * engine sees).
 *
 * <p><b>The message protocol</b>. Per communicator, both ends number their posts. The receiver <i>announces</i> the length of
 * each posted receive. A short message travels eagerly, inside a library message, into a buffer of the receiving library;
 * a long one goes from user memory to user memory under a tag of its own, once its receive was announced as posted.
 * <ul>
 * <li>A send completes when its receive was announced with enough room <i>and</i> its buffer is free. When the announced
 *     length is too short, the send fails without moving data, and tells the receiver, which fails too.</li>
 * <li>Announcements ride on library messages that go the same way anyhow; otherwise they are sent when a poll finds nothing
 *     to do. In a steady ping-pong of short messages, one library message goes each way per round trip.</li>
 * <li>Library messages are bounded by credits per pair of processes, so a provider's queues never overflow.</li>
 * <li>Short sends may run ahead of their receives within a budget per pair of processes, since each pins a buffer over there;
 *     all others wait at the sender, which costs nothing.</li>
 * </ul>
 *
 * <p><b>Failed peers</b>. A peer fails when its control connection breaks or what it says is wrong, which does not mean that it is dead.
 * The sockets that the provider has with it are shut down ({@link io.nrt4j.net.libfabric.DataLinks}), so that none of its messages
 * arrives in memory that was given back.
 *
 * <p><b>Shared memory</b>. With the shm provider each pair of processes has a pair of endpoints of its own, so that a dead peer's can be
 * closed without harm to others, and so that {@link io.nrt4j.net.libfabric.ShmRescue} may free the spin locks that it died with. What is
 * not survived: a peer that is stopped, not killed, while it holds such a lock keeps the calls of the others waiting until it goes on.
 */
package io.nrt4j.net.libfabric;
