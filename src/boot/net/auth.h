/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_AUTH_H
#define TTI_BOOT_AUTH_H

/* Both sides of a connection prove to each other that they hold the secret
 * before a byte of what they say is trusted, and agree on the protocol version and on keys
 * for what they will say. Used by bootstrap, control and data connections alike.
 *
 *     connector                                   acceptor
 *     hello: magic, version, kind, ciphers, public_c  ->
 *                    <-  answer: magic, version, ciphers, public_a
 *     H(secret, "c", hello, answer, payload), payload  ->
 *                    <-  verdict, H(secret, "a", hello, answer, payload, verdict)
 *
 * H is keyed BLAKE2b (libsodium crypto_generichash, 32 bytes). The payload is
 * `nbytes` of the caller's (who am I). The connector proves first, so what an acceptor
 * sends to a stranger does not depend on the secret: it is a random public value, and a
 * verdict with zeros in place of the hash. There is nothing on which a guess could be tried.
 *
 * The public values are of X25519 and of this connection alone, so they are also what makes
 * each handshake another one. Once both are proven, the keys of the two directions (seal.h) are
 *
 *     H(secret, "key", "c" or "a", X25519(public_c, public_a), hello, answer)
 *
 * Nobody can compute them later, not even who gets hold of the secret: the private values
 * are forgotten with the handshake.
 *
 * The state machine does no I/O by itself: feed what arrived, send what it wants
 * sent; so it runs blocking, nonblocking and under a fuzzer. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/net/seal.h"
#include "tutti/status.h"

/* On the wire. */
enum tti_auth_kind {
	TTI_AUTH_ANY = 0, /* an acceptor that takes several: see auth.kind */
	TTI_AUTH_ROOT = 1,
	TTI_AUTH_RING = 2,
	TTI_AUTH_PEER = 3,
	TTI_AUTH_DATA = 4,
	TTI_AUTH_SHM = 5,
};

#define TTI_AUTH_PAYLOAD 64  /* at most */
#define TTI_AUTH_ROOM    256 /* bytes of any one message, at most */

struct tti_auth {
	uint8_t secret[32];
	uint8_t ours[32];          /* the private value of this side; zeros once there are keys */
	struct tti_seal_keys keys; /* once proven */
	uint8_t hello[48], answer[48];
	uint8_t payload[TTI_AUTH_PAYLOAD]; /* connector: to send; acceptor: received */
	uint8_t in[TTI_AUTH_ROOM], out[TTI_AUTH_ROOM];
	size_t payload_len, in_len, in_want, out_len, out_sent;
	int state;
	enum tti_auth_kind kind;
	bool connector;
	bool other_version; /* it failed since the other end speaks another version */
	bool other_secret;  /* ... since the other end holds another secret         */
	bool other_rank;    /* connector: ... since the other end is somebody else  */
	bool hold;          /* acceptor, set after init: the verdict waits for tti_auth_admit() */
};

/* payload of a connector is copied; an acceptor passes NULL and the length that
 * it expects. */
void tti_auth_init(struct tti_auth *auth, bool connector, enum tti_auth_kind kind,
		   const uint8_t *secret, const void *payload, size_t payload_len);

/* The bytes to send now, *data and their number; 0: none. tti_auth_sent() says how many were sent. */
size_t tti_auth_output(const struct tti_auth *auth, const uint8_t **data);
void tti_auth_sent(struct tti_auth *auth, size_t nbytes);

/* Bytes the machine wants to read next; 0: none (send first, or done). Never
 * more than what belongs to the handshake, so what follows stays in the socket. */
size_t tti_auth_wants(const struct tti_auth *auth);

/* Feed at most that many bytes. TUTTI_AGAIN: go on; TUTTI_OK: proven (an acceptor
 * must still send its output); TUTTI_EPROTO: drop the connection. */
TUTTI_CHECKED tutti_status tti_auth_feed(struct tti_auth *auth, const void *data, size_t nbytes);

/* An acceptor with `hold` set: whether the connector has proven itself and waits
 * for the verdict; and the verdict: false says "you want somebody else". */
bool tti_auth_held(const struct tti_auth *auth);
void tti_auth_admit(struct tti_auth *auth, bool welcome);

/* Whether all is proven and sent. */
bool tti_auth_done(const struct tti_auth *auth);

/* The keys of what follows, once all is proven; and forget all that is secret. */
const struct tti_seal_keys *tti_auth_keys(const struct tti_auth *auth);
void tti_auth_forget(struct tti_auth *auth);

/* Run it to the end over a socket, blocking until the deadline. Quiet errors:
 * TUTTI_EPROTO, TUTTI_EPEER, TUTTI_ETIMEOUT, TUTTI_EABORTED (see tti_fd_recv_all). */
TUTTI_CHECKED tutti_status tti_auth_run(struct tti_auth *auth, int fd, int64_t deadline_ns,
					const _Atomic int *stop);

/* Drive it over a nonblocking socket: TUTTI_AGAIN until done. */
TUTTI_CHECKED tutti_status tti_auth_step(struct tti_auth *auth, int fd);

#endif
