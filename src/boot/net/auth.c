/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/auth.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/wire.h"

/* The first two messages begin alike:
 *
 *     0        8         10     12            14        16           48
 *     | magic  | version | kind | payload len | ciphers | public 32  |
 *
 * The answer has kind and payload length 0. An answer to another version is followed by
 * zeros, as many as the hash has bytes that versions 1 and 2 wait for. */
#define VERSION   5 /* 3: the connector proves first; 4: keys; 5: cards name the process */
#define HEAD      48
#define HASH      32
#define VERDICT   (1 + HASH)
#define PUBLIC_AT 16

enum state {
	WAIT_HELLO,   /* acceptor                                  */
	WAIT_ANSWER,  /* connector                                 */
	WAIT_PROOF,   /* acceptor                                  */
	WAIT_VERDICT, /* connector                                 */
	HELD,         /* acceptor: proven, no verdict yet          */
	PROVEN,       /* done as soon as the output has been sent  */
	FAILED,
};

enum verdict {
	WELCOME = 1,
	SOMEBODY_ELSE = 2,
	OTHER_SECRET = 3, /* the hash is zeros: there is nothing to prove it with */
};

static const uint8_t magic[8] = { 'T', 'U', 'T', 'T', 'I', '\r', '\n', 0x1a };

struct head {
	unsigned version, kind, ciphers;
	size_t payload_len;
};

/* A public value that serves for this handshake alone. */
static void put_head(struct tti_auth *auth, uint8_t *head, int kind)
{
	memcpy(head, magic, 8);
	tti_wire_put16(head + 8, VERSION);
	tti_wire_put16(head + 10, (uint16_t)kind);
	tti_wire_put16(head + 12, (uint16_t)(kind ? auth->payload_len : 0));
	tti_wire_put16(head + 14, (uint16_t)tti_seal_ciphers());
	randombytes_buf(auth->ours, sizeof(auth->ours));
	(void)crypto_scalarmult_base(head + PUBLIC_AT, auth->ours);
}

static struct head get_head(const uint8_t *head)
{
	return (struct head){ .version = tti_wire_get16(head + 8),
			      .kind = tti_wire_get16(head + 10),
			      .payload_len = tti_wire_get16(head + 12),
			      .ciphers = tti_wire_get16(head + 14) };
}

/* The connector's proof ('c', verdict 0), or the acceptor's of its verdict ('a'). */
static void prove(const struct tti_auth *auth, char side, uint8_t verdict, uint8_t *out)
{
	crypto_generichash_state hash;

	crypto_generichash_init(&hash, auth->secret, sizeof(auth->secret), HASH);
	crypto_generichash_update(&hash, (const uint8_t *)&side, 1);
	crypto_generichash_update(&hash, auth->hello, HEAD);
	crypto_generichash_update(&hash, auth->answer, HEAD);
	crypto_generichash_update(&hash, auth->payload, auth->payload_len);
	crypto_generichash_update(&hash, &verdict, 1);
	crypto_generichash_final(&hash, out, HASH);
	sodium_memzero(&hash, sizeof(hash));
}

static void say(struct tti_auth *auth, const void *data, size_t nbytes)
{
	tti_assert(auth->out_len + nbytes <= sizeof(auth->out));
	memcpy(auth->out + auth->out_len, data, nbytes);
	auth->out_len += nbytes;
}

static void await(struct tti_auth *auth, enum state state, size_t nbytes)
{
	auth->state = (int)state;
	auth->in_len = 0;
	auth->in_want = nbytes;
}

void tti_auth_init(struct tti_auth *auth, bool connector, enum tti_auth_kind kind,
		   const uint8_t *secret, const void *payload, size_t payload_len)
{
	tti_assert(payload_len <= TTI_AUTH_PAYLOAD);
	tti_assert(sodium_init() >= 0);
	memset(auth, 0, sizeof(*auth));
	memcpy(auth->secret, secret, sizeof(auth->secret));
	auth->connector = connector;
	auth->kind = kind;
	auth->payload_len = payload_len;
	if (!connector) {
		await(auth, WAIT_HELLO, HEAD);
		return;
	}
	if (payload_len > 0)
		memcpy(auth->payload, payload, payload_len);
	put_head(auth, auth->hello, (int)kind);
	say(auth, auth->hello, HEAD);
	await(auth, WAIT_ANSWER, HEAD);
}

size_t tti_auth_output(const struct tti_auth *auth, const uint8_t **data)
{
	*data = auth->out + auth->out_sent;
	return auth->out_len - auth->out_sent;
}

void tti_auth_sent(struct tti_auth *auth, size_t nbytes)
{
	auth->out_sent += nbytes;
	tti_assert(auth->out_sent <= auth->out_len);
	if (auth->out_sent == auth->out_len)
		auth->out_sent = auth->out_len = 0;
}

size_t tti_auth_wants(const struct tti_auth *auth)
{
	return auth->in_want - auth->in_len;
}

static tutti_status fail(struct tti_auth *auth, const char *why)
{
	await(auth, FAILED, 0);
	return tti_fail_quiet(TUTTI_EPROTO, "%s", why);
}

static tutti_status wrong_secret(struct tti_auth *auth)
{
	auth->other_secret = true;
	return fail(auth, "it holds another secret");
}

static tutti_status wrong_version(struct tti_auth *auth, unsigned version)
{
	await(auth, FAILED, 0);
	auth->other_version = true;
	return tti_fail_quiet(TUTTI_EPROTO,
			      "it speaks version %u of the protocol, this side version %d: "
			      "use the same library on all ranks",
			      version, VERSION);
}

static void derive_key(const struct tti_auth *auth, char side, const uint8_t *shared, uint8_t *key)
{
	static const uint8_t label[] = "key";
	crypto_generichash_state hash;

	crypto_generichash_init(&hash, auth->secret, sizeof(auth->secret), TTI_SEAL_KEY);
	crypto_generichash_update(&hash, label, sizeof(label) - 1);
	crypto_generichash_update(&hash, (const uint8_t *)&side, 1);
	crypto_generichash_update(&hash, shared, crypto_scalarmult_BYTES);
	crypto_generichash_update(&hash, auth->hello, HEAD);
	crypto_generichash_update(&hash, auth->answer, HEAD);
	crypto_generichash_final(&hash, key, TTI_SEAL_KEY);
	sodium_memzero(&hash, sizeof(hash));
}

/* The other side has proven itself, so its public value is its own. */
static tutti_status derive(struct tti_auth *auth)
{
	const uint8_t *theirs = (auth->connector ? auth->answer : auth->hello) + PUBLIC_AT;
	struct tti_seal_keys *keys = &auth->keys;
	uint8_t shared[crypto_scalarmult_BYTES];

	if (crypto_scalarmult(shared, auth->ours, theirs))
		return fail(auth, "its public value is invalid");
	derive_key(auth, 'c', shared, auth->connector ? keys->out : keys->in);
	derive_key(auth, 'a', shared, auth->connector ? keys->in : keys->out);
	keys->cipher =
		tti_seal_choose(get_head(auth->hello).ciphers, get_head(auth->answer).ciphers);
	sodium_memzero(shared, sizeof(shared));
	sodium_memzero(auth->ours, sizeof(auth->ours));
	return TUTTI_OK;
}

const struct tti_seal_keys *tti_auth_keys(const struct tti_auth *auth)
{
	tti_assert(auth->state == PROVEN);
	return &auth->keys;
}

void tti_auth_forget(struct tti_auth *auth)
{
	sodium_memzero(auth, sizeof(*auth));
}

static tutti_status take_hello(struct tti_auth *auth)
{
	static const uint8_t zeros[HASH];
	const struct head head = get_head(auth->in);

	put_head(auth, auth->answer, 0);
	if (head.version != VERSION) {
		say(auth, auth->answer, HEAD);
		say(auth, zeros, HASH);
		return wrong_version(auth, head.version);
	}
	if (head.kind < TTI_AUTH_ROOT || head.kind > TTI_AUTH_SHM ||
	    (auth->kind != TTI_AUTH_ANY && auth->kind != head.kind))
		return fail(auth, "it asked for a kind of connection that is not served here");
	if (head.payload_len != auth->payload_len)
		return fail(auth, "its payload has another length");
	auth->kind = (enum tti_auth_kind)head.kind;
	memcpy(auth->hello, auth->in, HEAD);
	say(auth, auth->answer, HEAD);
	await(auth, WAIT_PROOF, HASH + auth->payload_len);
	return TUTTI_AGAIN;
}

static tutti_status take_answer(struct tti_auth *auth)
{
	const struct head head = get_head(auth->in);
	uint8_t hash[HASH];

	if (head.version != VERSION)
		return wrong_version(auth, head.version);
	if (head.kind != 0 || head.payload_len != 0)
		return fail(auth, "its answer is malformed");
	memcpy(auth->answer, auth->in, HEAD);
	prove(auth, 'c', 0, hash);
	say(auth, hash, HASH);
	say(auth, auth->payload, auth->payload_len);
	await(auth, WAIT_VERDICT, VERDICT);
	return TUTTI_AGAIN;
}

static tutti_status take_proof(struct tti_auth *auth)
{
	static const uint8_t refusal[VERDICT] = { OTHER_SECRET };
	uint8_t hash[HASH];

	memcpy(auth->payload, auth->in + HASH, auth->payload_len);
	prove(auth, 'c', 0, hash);
	if (sodium_memcmp(hash, auth->in, HASH) != 0) {
		say(auth, refusal, VERDICT);
		return wrong_secret(auth);
	}
	TTI_TRY(derive(auth));
	await(auth, HELD, 0);
	if (auth->hold)
		return TUTTI_OK;
	tti_auth_admit(auth, true);
	return TUTTI_OK;
}

static tutti_status take_verdict(struct tti_auth *auth)
{
	uint8_t hash[HASH];

	prove(auth, 'a', auth->in[0], hash);
	if (auth->in[0] == OTHER_SECRET || sodium_memcmp(hash, auth->in + 1, HASH) != 0)
		return wrong_secret(auth);
	if (auth->in[0] == SOMEBODY_ELSE) {
		auth->other_rank = true;
		return fail(auth, "it is another rank than the one wanted");
	}
	if (auth->in[0] != WELCOME)
		return fail(auth, "its verdict is malformed");
	TTI_TRY(derive(auth));
	await(auth, PROVEN, 0);
	return TUTTI_OK;
}

tutti_status tti_auth_feed(struct tti_auth *auth, const void *data, size_t nbytes)
{
	tti_assert(nbytes <= tti_auth_wants(auth));
	memcpy(auth->in + auth->in_len, data, nbytes);
	auth->in_len += nbytes;

	/* A stranger is recognised by its first byte: no need to wait for the rest. */
	if ((auth->state == WAIT_HELLO || auth->state == WAIT_ANSWER) &&
	    memcmp(auth->in, magic, auth->in_len < 8 ? auth->in_len : 8) != 0)
		return fail(auth, "it does not speak this protocol");
	if (auth->in_len < auth->in_want)
		return TUTTI_AGAIN;

	switch ((enum state)auth->state) {
	case WAIT_HELLO:
		return take_hello(auth);
	case WAIT_ANSWER:
		return take_answer(auth);
	case WAIT_PROOF:
		return take_proof(auth);
	case WAIT_VERDICT:
		return take_verdict(auth);
	case HELD:
	case PROVEN:
		return TUTTI_OK;
	case FAILED:
		break;
	}
	return fail(auth, "the handshake had failed");
}

bool tti_auth_held(const struct tti_auth *auth)
{
	return auth->state == HELD;
}

void tti_auth_admit(struct tti_auth *auth, bool welcome)
{
	uint8_t verdict[VERDICT] = { welcome ? WELCOME : SOMEBODY_ELSE };

	tti_assert(auth->state == HELD);
	prove(auth, 'a', verdict[0], verdict + 1);
	say(auth, verdict, VERDICT);
	await(auth, welcome ? PROVEN : FAILED, 0);
}

bool tti_auth_done(const struct tti_auth *auth)
{
	return auth->state == PROVEN && auth->out_len == 0;
}

/* Send what is to be sent. */
static tutti_status push(struct tti_auth *auth, int fd)
{
	const uint8_t *data;

	for (size_t left; (left = tti_auth_output(auth, &data)) > 0;) {
		const ssize_t n = send(fd, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			tti_auth_sent(auth, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			return TUTTI_AGAIN;
		else if (n < 0 && errno != EINTR)
			return tti_fail_quiet(TUTTI_EPEER, "it closed during the handshake (%m)");
	}
	return TUTTI_OK;
}

tutti_status tti_auth_step(struct tti_auth *auth, int fd)
{
	for (;;) {
		uint8_t data[TTI_AUTH_ROOM];

		TTI_TRY(push(auth, fd));
		if (auth->state == PROVEN)
			return TUTTI_OK;
		if (auth->state == HELD)
			return TUTTI_AGAIN;
		if (auth->state == FAILED)
			return tti_fail_quiet(TUTTI_EPROTO, "the handshake had failed");

		const ssize_t n = recv(fd, data, tti_auth_wants(auth), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return TUTTI_AGAIN;
		if (n < 0)
			return tti_fail_quiet(TUTTI_EPEER, "it closed during the handshake (%m)");
		if (n == 0)
			return tti_fail_quiet(TUTTI_EPEER, "it closed during the handshake");

		const tutti_status status = tti_auth_feed(auth, data, (size_t)n);

		if (status < 0) {
			/* The other side learns why, if versions or secrets differ. */
			char why[256];

			(void)strncpy(why, tti_error_text(), sizeof(why) - 1);
			why[sizeof(why) - 1] = '\0';
			(void)push(auth, fd);
			return tti_fail_quiet(status, "%s", why);
		}
	}
}

tutti_status tti_auth_run(struct tti_auth *auth, int fd, int64_t deadline_ns,
			  const _Atomic int *stop)
{
	for (;;) {
		const uint8_t *data;
		const tutti_status status = tti_auth_step(auth, fd);

		if (status != TUTTI_AGAIN)
			return status;
		if (stop && *stop)
			return tti_fail_quiet(TUTTI_EABORTED, "the handshake was aborted");
		if (tti_left_ms(deadline_ns, 1) == 0)
			return tti_fail_quiet(TUTTI_ETIMEOUT, "it did not finish the handshake");

		struct pollfd ready = {
			.fd = fd,
			.events = tti_auth_output(auth, &data) > 0 ? POLLOUT : POLLIN,
		};
		(void)poll(&ready, 1, tti_left_ms(deadline_ns, stop ? 20 : 1000));
	}
}
