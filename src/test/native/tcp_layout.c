#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

/* What the Java side believes of sockets, by the names of its constants. */
#define IS(name, value) printf(#name "=%lld\n", (long long) (value))

int main(void) {
    IS(AF_INET, AF_INET);
    IS(AF_INET6, AF_INET6);
    IS(SOL_SOCKET, SOL_SOCKET);
    IS(SO_TYPE, SO_TYPE);
    IS(SOCK_STREAM, SOCK_STREAM);
    IS(SHUT_RDWR, SHUT_RDWR);
    IS(IPPROTO_TCP, IPPROTO_TCP);
    IS(TCP_INFO, TCP_INFO);
    IS(INFO_PROBES, offsetof(struct tcp_info, tcpi_probes));
    IS(INFO_UNACKED, offsetof(struct tcp_info, tcpi_unacked));
    IS(INFO_LAST_ACK_RECV, offsetof(struct tcp_info, tcpi_last_ack_recv));
    IS(INFO_USED, offsetof(struct tcp_info, tcpi_last_ack_recv) + sizeof(((struct tcp_info *) 0)->tcpi_last_ack_recv));
    return 0;
}
