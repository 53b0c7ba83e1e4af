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
#include "util/strbuf.h"
#include "util/vec.h"

/* Of a unix socket with an abstract name, which processes of one host reach without any network (more
 * exactly: of one network namespace). The name is made of the 16 bytes of `ip`. */
#define TTI_ADDR_UNIX 1

/* An address, fixed width: fit for the wire as it is. */
struct tti_addr {
	uint16_t family;       /* 4, 6, TTI_ADDR_UNIX, or 0: none        */
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

/* Fill out[0 .. most-1], *n of them; where there are more, each interface keeps its first
 * of each family before another gets its second. The first *nrunning (which may be NULL) are
 * of interfaces that run. Where no plain NIC does, those that are up follow, as they may run
 * soon: a container's NIC does not in its first second. None is left: TUTTI_EUSAGE (quiet) where
 * TUTTI_SOCKET_IFNAME or TUTTI_SOCKET_FAMILY excludes some, and else TUTTI_ESYS (quiet); the text
 * says which interfaces there are and why each is not used. */
TUTTI_CHECKED tutti_status tti_iface_list(struct tti_addr *out, size_t most, size_t *n,
					  size_t *nrunning);

/* For the text of an error: "; on rank 1's host eth0 (10.0.0.1): up, but not running (no carrier)",
 * with an entry for each interface that is excluded or does not run; "" if there is none. */
const char *tti_iface_tell(const char *host, char *buf, size_t size);

enum tti_iface_kind { TTI_IFACE_NIC, TTI_IFACE_BRIDGE, TTI_IFACE_LOOPBACK };

/* An interface: all its addresses are one way out. */
struct tti_iface {
	char name[IFNAMSIZ];
	uint32_t index, mbps; /* mbps: the speed it claims, 0: none or unknown */
	uint16_t mtu;         /* or 65535: more                                */
	uint8_t kind;         /* enum tti_iface_kind, by its name              */
	bool up;              /* it was switched on                            */
	bool running;         /* and has a carrier                             */
};

struct tti_iface_addr {
	struct tti_addr addr;
	uint8_t iface;  /* which one has it                  */
	uint8_t prefix; /* bits that its network's have in common */
	int score;      /* small is likely to be reachable from elsewhere */
};

struct tti_ifaces {
	TTI_VEC(struct tti_iface) iface;
	/* Likely ones first; then those that are up and do not run, then those that are down. */
	TTI_VEC(struct tti_iface_addr) addr;
	size_t nexcluded; /* further addresses, which variables exclude */
};

/* All that may be used, also what has no carrier now. What is excluded is told in `why` if
 * that is not NULL. Release it, also after a failure. */
TUTTI_CHECKED tutti_status tti_ifaces_look(struct tti_ifaces *out, struct tti_strbuf *why);
/* Find their speeds; takes locks of drivers, so it is not part of looking. */
void tti_ifaces_measure(struct tti_ifaces *ifaces);
void tti_ifaces_release(struct tti_ifaces *ifaces);

/* How many of the first addresses are offered (*nrunning: are of interfaces that run): see
 * tti_iface_list(). */
size_t tti_ifaces_offered(const struct tti_ifaces *ifaces, size_t *nrunning);

/* Which `most` of addr[0 .. n-1] to keep, as described for tti_iface_list(): take[i]; as many
 * as it returns. Pure. */
size_t tti_iface_choose(const struct tti_iface_addr *addr, size_t n, size_t most, bool *take);

/* To and from sockaddr; "10.0.0.1:5000", "[fe80::1]:5000" into buf, "10.0.0.1" if
 * the port is 0. */
socklen_t tti_addr_to_sock(const struct tti_addr *addr, struct sockaddr_storage *out);
tutti_status tti_addr_from_sock(const struct sockaddr *sock, struct tti_addr *out);

/* Whether it leads back to the host itself, whichever that is. */
bool tti_addr_is_loopback(const struct tti_addr *addr);

/* Split "host:port" or "[host]:port"; port_out points into text. Pure. */
TUTTI_CHECKED tutti_status tti_addr_split(const char *text, char *host, size_t size,
					  const char **port_out);

/* What "host:port", "1.2.3.4:5000" or "[::1]:5000" stands for. TUTTI_EINVAL says what is wrong with the
 * text. May ask the resolver, and, as names may appear late, again until the time is over: then
 * TUTTI_ETIMEOUT. 0 ms: once. TUTTI_EABORTED: this thread shall wait no longer (interrupt.h). */
TUTTI_CHECKED tutti_status tti_addr_parse(const char *text, int64_t timeout_ms,
					  struct tti_addr *out, size_t most, size_t *n);
const char *tti_addr_format(const struct tti_addr *addr, char *buf, size_t size);
#define TTI_ADDR_TEXT 64

/* A listening, nonblocking TCP socket on any address (IPv6 with IPv4 mapped, else
 * IPv4) and *port, or if that is 0, one of TUTTI_PORT_RANGE or of the system's choice. */
TUTTI_CHECKED tutti_status tti_listen(uint16_t *port, int backlog, int *fd_out);

/* A listening, nonblocking unix socket at a random name, and its address. Its port means nothing,
 * but is not 0. */
TUTTI_CHECKED tutti_status tti_listen_unix(int backlog, struct tti_addr *out, int *fd_out);

#endif
