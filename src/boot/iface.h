/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_IFACE_H
#define TTI_BOOT_IFACE_H

/* The addresses under which this host may be reached: by TUTTI_SOCKET_IFNAME and
 * TUTTI_SOCKET_FAMILY, else all of every running interface, likely ones first
 * (plain NICs, then bridges and docker*, then loopback). Used by the bootstrap and
 * the TCP transport: all are offered, what is reachable is kept. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tutti/status.h"

/* An address, fixed width: fit for the wire as it is. */
struct tti_addr {
	uint16_t family;       /* 4, 6, or 0: none (host order of little endian) */
	uint16_t port;         /* network order                                   */
	uint32_t scope;        /* IPv6 link-local: interface index at the sender  */
	uint8_t ip[16];        /* IPv4: the first 4                               */
	char ifname[IFNAMSIZ]; /* for logs                                   */
};

#define TTI_IFACE_MOST 8

/* Whether TUTTI_SOCKET_IFNAME's `list` lets an interface of that name pass: prefixes
 * "eth,ib", exact "=eth0,eth1", all but "^docker,lo", all but exactly "^=lo". NULL:
 * any. Pure. */
bool tti_iface_passes(const char *list, const char *name);

/* Fill out[0 .. most-1], *n of them. TUTTI_ESYS: none is left; the text says which
 * interfaces there are and what excluded them. */
TUTTI_CHECKED tutti_status tti_iface_list(struct tti_addr *out, size_t most, size_t *n);

/* To and from sockaddr; "10.0.0.1:5000", "[fe80::1]:5000" into buf, "10.0.0.1" if
 * the port is 0. */
socklen_t tti_addr_to_sock(const struct tti_addr *addr, struct sockaddr_storage *out);
tutti_status tti_addr_from_sock(const struct sockaddr *sock, struct tti_addr *out);

/* Split "host:port" or "[host]:port"; port_out points into text. Pure. */
TUTTI_CHECKED tutti_status tti_addr_split(const char *text, char *host, size_t size,
					  const char **port_out);

/* What "host:port", "1.2.3.4:5000" or "[::1]:5000" stands for. TUTTI_EINVAL says
 * what is wrong with the text. May ask the resolver. */
TUTTI_CHECKED tutti_status tti_addr_parse(const char *text, struct tti_addr *out, size_t most,
					  size_t *n);
const char *tti_addr_format(const struct tti_addr *addr, char *buf, size_t size);
#define TTI_ADDR_TEXT 64

/* A listening, nonblocking TCP socket on any address (IPv6 with IPv4 mapped, else
 * IPv4) and a port of the system's choice, or *port if nonzero. */
TUTTI_CHECKED tutti_status tti_listen(uint16_t *port, int backlog, int *fd_out);

#endif
