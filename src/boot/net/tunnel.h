/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_TUNNEL_H
#define TTI_BOOT_TUNNEL_H

/* A stream of bytes over a socket, sealed in both directions (seal.h) from the end of the handshake on. All
 * connections of the bootstrap and of the watch are tunnels. If bytes are changed on their way, the tunnel
 * fails and does not deliver them.
 *
 *     | length 2 | mac 16 |   | bytes, as many | mac 16 |
 *
 * The length is sealed as a record of its own, so nobody can make a side wait for bytes that do not
 * exist.
 *
 * Owner: whoever opened it closes it, and the socket with it. Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "boot/net/seal.h"

#define TTI_TUNNEL_RECORD 4096 /* bytes at a time, at most */
#define TTI_TUNNEL_HEAD   (2 + TTI_SEAL_MAC)

struct tti_tunnel {
	int fd;
	struct tti_seal in, out;
	uint64_t sent;       /* bytes given to the system, sealed                   */
	size_t nout, out_at; /* bytes of a record that is being sent, and that are  */
	size_t nplain;       /* what it is of the caller's                          */
	size_t nin;          /* bytes of a record that came                         */
	size_t nopen, taken; /* bytes that were opened, and given to the caller     */
	bool failed;         /* bytes came that the other side did not send         */
	int broken;          /* the errno that sending failed with, 0: it did not   */
	uint8_t out_bytes[TTI_TUNNEL_HEAD + TTI_TUNNEL_RECORD + TTI_SEAL_MAC];
	uint8_t in_bytes[TTI_TUNNEL_HEAD + TTI_TUNNEL_RECORD + TTI_SEAL_MAC];
};

/* fd, nonblocking, is the tunnel's on success. */
TUTTI_CHECKED tutti_status tti_tunnel_open(int fd, const struct tti_seal_keys *keys,
					   struct tti_tunnel **out);
void tti_tunnel_close(struct tti_tunnel **tunnel); /* NULL is fine, and is what is left */

/* Like send() and sendmsg(), without blocking: how many bytes were sent, or -1 and errno. After
 * EAGAIN the next call must begin with the same bytes, of which some are on their way. After any
 * other error nothing can be sent any more: -1 and EPIPE. */
ssize_t tti_tunnel_send(struct tti_tunnel *tunnel, const void *data, size_t nbytes);
ssize_t tti_tunnel_sendv(struct tti_tunnel *tunnel, const struct iovec *iov, size_t n);

/* Whether a record was sent in part, when a call ended with EAGAIN: nothing else can be sent before its
 * rest. */
static inline bool tti_tunnel_is_torn(const struct tti_tunnel *tunnel)
{
	return tunnel->nout > 0;
}

/* Like recv() without blocking. -1 and EBADMSG: see tti_tunnel_why(). With room for
 * TTI_TUNNEL_RECORD bytes, nothing that has come stays behind where poll() does not see it. */
ssize_t tti_tunnel_recv(struct tti_tunnel *tunnel, void *data, size_t nbytes);

/* The same, but the next call reads the same bytes again. */
ssize_t tti_tunnel_peek(struct tti_tunnel *tunnel, void *data, size_t nbytes);

/* Whether there is something to read that poll() does not see: bytes, or that it has failed. */
static inline bool tti_tunnel_holds(const struct tti_tunnel *tunnel)
{
	return tunnel->taken < tunnel->nopen || tunnel->failed;
}

/* Send or receive all of it, blocking until the deadline; as tti_fd_send_all(). */
TUTTI_CHECKED tutti_status tti_tunnel_send_all(struct tti_tunnel *tunnel, const void *data,
					       size_t nbytes, int64_t deadline_ns,
					       const _Atomic int *stop);
TUTTI_CHECKED tutti_status tti_tunnel_recv_all(struct tti_tunnel *tunnel, void *data, size_t nbytes,
					       int64_t deadline_ns, const _Atomic int *stop);

/* Words about a tunnel that failed, with its address, to follow "the connection to rank 3". */
#define TTI_TUNNEL_WHY 192
const char *tti_tunnel_why(const struct tti_tunnel *tunnel, char why[TTI_TUNNEL_WHY]);

#endif
