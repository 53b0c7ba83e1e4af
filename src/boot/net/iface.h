/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_IFACE_H
#define TTI_BOOT_IFACE_H

/* The addresses at which this host may be reached: those of TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY,
 * or else those of every interface that runs, likely ones first (plain NICs, then bridges and docker*,
 * then loopback). The bootstrap and the TCP transport offer all of them and keep what is reachable. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tutti/status.h"
#include "util/strbuf.h"
#include "util/vec.h"

/* The family of a unix socket with an abstract name, made of the 16 bytes of `ip`. Processes of one host (of
 * one network namespace) reach it without a network. */
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

/* Whether the `list` of TUTTI_SOCKET_IFNAME allows an interface of that name: prefixes "eth,ib", exact names
 * "=eth0,eth1", all but prefixes "^docker,lo", all but exact names "^=lo". NULL: any. Pure. */
bool tti_iface_passes(const char *list, const char *name);

/* Fill out[0 .. most-1], *n of them. If there are more, each interface keeps its first address of each
 * family before another one gets its second. The first *nrunning (which may be NULL) are of interfaces
 * that run. If no plain NIC runs, interfaces that are up follow, as they may run soon: a container's NIC
 * does not in its first second. If none is left, quietly: TUTTI_EUSAGE where TUTTI_SOCKET_IFNAME or
 * TUTTI_SOCKET_FAMILY excludes some, otherwise TUTTI_ESYS; the text names the interfaces and why each is
 * not used. */
TUTTI_CHECKED tutti_status tti_iface_list(struct tti_addr *out, size_t most, size_t *n,
					  size_t *nrunning);

/* For error texts: "; on rank 1's host eth0 (10.0.0.1): up, but not running (no carrier)", with an entry for
 * each interface that is excluded or does not run; "" if there is none. */
const char *tti_iface_tell(const char *host, char *buf, size_t size);

enum tti_iface_kind { TTI_IFACE_NIC, TTI_IFACE_BRIDGE, TTI_IFACE_LOOPBACK };

/* An interface. */
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
	uint8_t iface;  /* the interface that has it         */
	uint8_t prefix; /* bits of the network's part           */
	int score;      /* small is likely to be reachable from elsewhere */
};

struct tti_ifaces {
	TTI_VEC(struct tti_iface) iface;
	/* Likely ones first; then interfaces that are up, but do not run; then those that are down. */
	TTI_VEC(struct tti_iface_addr) addr;
	size_t nexcluded; /* addresses that variables exclude */
};

/* All addresses that may be used, also those without a carrier now. `why`, if not NULL, gets what is excluded
 * or does not run. To be released after a failure, too. */
TUTTI_CHECKED tutti_status tti_ifaces_look(struct tti_ifaces *out, struct tti_strbuf *why);
/* Find their speeds. That takes locks of drivers, so looking does not do it. */
void tti_ifaces_measure(struct tti_ifaces *ifaces);
void tti_ifaces_release(struct tti_ifaces *ifaces);

/* How many of the first addresses are offered, of which *nrunning are of interfaces that run:
 * tti_iface_list(). */
size_t tti_ifaces_offered(const struct tti_ifaces *ifaces, size_t *nrunning);

/* Choose `most` of addr[0 .. n-1] as tti_iface_list() does: take[i]. Returns how many are taken. Pure. */
size_t tti_iface_choose(const struct tti_iface_addr *addr, size_t n, size_t most, bool *take);

/* To and from sockaddr; "10.0.0.1:5000", "[fe80::1]:5000" into buf, "10.0.0.1" if
 * the port is 0. */
socklen_t tti_addr_to_sock(const struct tti_addr *addr, struct sockaddr_storage *out);
tutti_status tti_addr_from_sock(const struct sockaddr *sock, struct tti_addr *out);

/* Whether it leads back to the host that uses it. */
bool tti_addr_is_loopback(const struct tti_addr *addr);

/* Split "host:port" or "[host]:port"; port_out points into text. Pure. */
TUTTI_CHECKED tutti_status tti_addr_split(const char *text, char *host, size_t size,
					  const char **port_out);

/* The addresses of "host:port", "1.2.3.4:5000" or "[::1]:5000". TUTTI_EINVAL: the text is wrong, and the error
 * says how. May ask the resolver, again and again until the time is over, as names may appear late: then
 * TUTTI_ETIMEOUT. 0 ms: once. TUTTI_EABORTED: this thread is to wait no longer (interrupt.h). */
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
