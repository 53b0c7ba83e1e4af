/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake, byte by byte and over sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/net/auth.h"
#include "util/clock.h"
#include "util/error.h"

static const uint8_t secret[32] = { 1, 2, 3 };
static const uint8_t other[32] = { 1, 2, 4 };
static const char payload[16] = "who I am";

struct pair {
	struct tti_auth connector, acceptor;
	tutti_status connector_status, acceptor_status;
};

static void make(struct pair *pair, const uint8_t *a, const uint8_t *b)
{
	tti_auth_init(&pair->connector, true, TTI_AUTH_DATA, a, payload, sizeof(payload));
	tti_auth_init(&pair->acceptor, false, TTI_AUTH_DATA, b, NULL, sizeof(payload));
	pair->connector_status = pair->acceptor_status = TUTTI_AGAIN;
}

/* Move at most `chunk` bytes one way; flip the bit-th bit of what passes, if >= 0. */
static size_t move(struct tti_auth *from, struct tti_auth *to, tutti_status *status, size_t chunk,
		   long *bit)
{
	const uint8_t *data;
	size_t n = tti_auth_output(from, &data);
	uint8_t copy[TTI_AUTH_ROOM];

	if (*status < 0)
		return 0;
	n = n < chunk ? n : chunk;
	n = n < tti_auth_wants(to) ? n : tti_auth_wants(to);
	if (n == 0)
		return 0;
	memcpy(copy, data, n);
	if (*bit >= 0 && *bit < (long)n * 8)
		copy[*bit / 8] ^= (uint8_t)(1 << (*bit % 8));
	if (*bit >= 0)
		*bit = *bit < (long)n * 8 ? -1 : *bit - (long)n * 8;
	tti_auth_sent(from, n);
	*status = tti_auth_feed(to, copy, n);
	return n;
}

static void run(struct pair *pair, size_t chunk, long to_acceptor, long to_connector)
{
	while (move(&pair->connector, &pair->acceptor, &pair->acceptor_status, chunk,
		    &to_acceptor) +
		       move(&pair->acceptor, &pair->connector, &pair->connector_status, chunk,
			    &to_connector) >
	       0)
		continue;
}

static void equal_secrets_agree(void **state)
{
	(void)state;
	for (size_t chunk = 1; chunk < 100; chunk++) {
		struct pair pair;

		make(&pair, secret, secret);
		run(&pair, chunk, -1, -1);
		assert_int_equal(pair.connector_status, TUTTI_OK);
		assert_int_equal(pair.acceptor_status, TUTTI_OK);
		assert_true(tti_auth_done(&pair.connector));
		assert_true(tti_auth_done(&pair.acceptor));
		assert_memory_equal(pair.acceptor.payload, payload, sizeof(payload));
	}
}

static void different_secrets_do_not(void **state)
{
	struct pair pair;

	(void)state;
	make(&pair, secret, other);
	run(&pair, 1000, -1, -1);
	assert_int_equal(pair.connector_status, TUTTI_EPROTO);
	assert_non_null(strstr(tti_error_text(), "another secret"));
	assert_int_equal(pair.acceptor_status, TUTTI_EPROTO);
	assert_true(pair.connector.other_secret && pair.acceptor.other_secret);
	assert_false(tti_auth_done(&pair.acceptor));
	assert_false(tti_auth_done(&pair.connector));
}

/* Whatever bit is changed on the way, one side notices and none is done. */
static void a_changed_bit_is_noticed(void **state)
{
	struct pair pair;

	(void)state;
	for (long bit = 0; bit < (48 + 32 + 16) * 8; bit++) {
		make(&pair, secret, secret);
		run(&pair, 1000, bit, -1);
		assert_false(tti_auth_done(&pair.acceptor) && tti_auth_done(&pair.connector));
		assert_true(pair.acceptor_status < 0 || pair.connector_status < 0);
	}
	for (long bit = 0; bit < (48 + 1 + 32) * 8; bit++) {
		make(&pair, secret, secret);
		run(&pair, 1000, -1, bit);
		assert_int_equal(pair.connector_status, TUTTI_EPROTO);
	}
}

static tutti_status hello_of_version(uint8_t version)
{
	uint8_t hello[48];
	const uint8_t *data;
	struct pair pair;

	make(&pair, secret, secret);
	assert_int_equal(tti_auth_output(&pair.connector, &data), sizeof(hello));
	memcpy(hello, data, sizeof(hello));
	assert_int_equal(hello[8], 5);
	hello[8] = version;
	return tti_auth_feed(&pair.acceptor, hello, sizeof(hello));
}

/* A build of before frames were added, one of some day, and who answers as neither. */
static void another_version_is_named(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(hello_of_version(5), TUTTI_AGAIN);
	assert_int_equal(hello_of_version(2), TUTTI_EPROTO);
	assert_non_null(strstr(tti_error_text(), "it speaks version 2 of the protocol, this side "
						 "version 5"));
	assert_int_equal(hello_of_version(6), TUTTI_EPROTO);
	make(&pair, secret, secret);
	run(&pair, 1000, -1, 8 * 8); /* version 5 becomes 4, on the way back */
	assert_int_equal(pair.connector_status, TUTTI_EPROTO);
	assert_non_null(strstr(tti_error_text(), "it speaks version 4 of the protocol, this side "
						 "version 5"));
}

static void a_stranger_goes_at_his_first_byte(void **state)
{
	struct tti_auth acceptor;

	(void)state;
	tti_auth_init(&acceptor, false, TTI_AUTH_ANY, secret, NULL, 16);
	assert_int_equal(tti_auth_feed(&acceptor, "G", 1), TUTTI_EPROTO);
	assert_int_equal(tti_auth_wants(&acceptor), 0);
}

static void kinds_and_verdicts(void **state)
{
	struct pair pair;

	(void)state;
	make(&pair, secret, secret);
	tti_auth_init(&pair.acceptor, false, TTI_AUTH_SHM, secret, NULL, sizeof(payload));
	run(&pair, 1000, -1, -1);
	assert_int_equal(pair.acceptor_status, TUTTI_EPROTO);

	for (int welcome = 0; welcome < 2; welcome++) {
		make(&pair, secret, secret);
		tti_auth_init(&pair.acceptor, false, TTI_AUTH_ANY, secret, NULL, sizeof(payload));
		pair.acceptor.hold = true;
		run(&pair, 1000, -1, -1);
		assert_int_equal(pair.acceptor_status, TUTTI_OK);
		assert_int_equal(pair.acceptor.kind, TTI_AUTH_DATA);
		assert_true(tti_auth_held(&pair.acceptor));
		assert_int_equal(pair.connector_status, TUTTI_AGAIN);
		tti_auth_admit(&pair.acceptor, welcome);
		run(&pair, 1000, -1, -1);
		assert_int_equal(pair.connector_status, welcome ? TUTTI_OK : TUTTI_EPROTO);
	}
}

/* What one side said is worth nothing to another connection, or sent back. */
static void replays_and_echoes_fail(void **state)
{
	struct tti_auth connector, acceptor, second;
	const uint8_t *data;
	uint8_t hello[48];

	(void)state;
	tti_auth_init(&connector, true, TTI_AUTH_DATA, secret, payload, sizeof(payload));
	tti_auth_init(&acceptor, false, TTI_AUTH_DATA, secret, NULL, sizeof(payload));
	tti_auth_init(&second, false, TTI_AUTH_DATA, secret, NULL, sizeof(payload));
	assert_int_equal(tti_auth_output(&connector, &data), 48);
	memcpy(hello, data, 48);
	tti_auth_sent(&connector, 48);
	assert_int_equal(tti_auth_feed(&acceptor, hello, 48), TUTTI_AGAIN);
	assert_int_equal(tti_auth_feed(&second, hello, 48), TUTTI_AGAIN);
	assert_int_equal(tti_auth_output(&acceptor, &data), 48);
	assert_int_equal(tti_auth_feed(&connector, data, 48), TUTTI_AGAIN);
	assert_int_equal(tti_auth_output(&connector, &data), 48);
	assert_int_equal(tti_auth_feed(&second, data, 48), TUTTI_EPROTO);
	assert_int_equal(tti_auth_feed(&acceptor, data, 48), TUTTI_OK);
}

/* Whoever poses as an acceptor and sends the connector's own words back learns nothing that
 * opens anything: the two proofs are of different sides, and a verdict cannot be made up. */
static void a_reflection_is_refused(void **state)
{
	struct tti_auth connector;
	const uint8_t *data;
	uint8_t verdict[33] = { 1 };

	(void)state;
	tti_auth_init(&connector, true, TTI_AUTH_DATA, secret, payload, sizeof(payload));
	assert_int_equal(tti_auth_output(&connector, &data), 48);
	assert_int_equal(tti_auth_feed(&connector, data, 48), TUTTI_EPROTO);

	for (int proof = 0; proof < 2; proof++) {
		struct tti_auth acceptor;

		tti_auth_init(&connector, true, TTI_AUTH_DATA, secret, payload, sizeof(payload));
		tti_auth_init(&acceptor, false, TTI_AUTH_DATA, secret, NULL, sizeof(payload));
		assert_int_equal(tti_auth_output(&connector, &data), 48);
		assert_int_equal(tti_auth_feed(&acceptor, data, 48), TUTTI_AGAIN);
		tti_auth_sent(&connector, 48);
		tti_auth_output(&acceptor, &data);
		assert_int_equal(tti_auth_feed(&connector, data, 48), TUTTI_AGAIN);
		assert_int_equal(tti_auth_output(&connector, &data), 48);
		if (proof)
			memcpy(verdict + 1, data, 32);
		assert_int_equal(tti_auth_feed(&connector, verdict, 33), TUTTI_EPROTO);
		assert_false(tti_auth_done(&connector));
	}
}

/* -- What a stranger learns --------------------------------------------------------- */

/* The nonces of all tests come from here, so that a handshake can be had twice. */
static uint64_t dice;

static void dice_buf(void *const buf, const size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++) {
		dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		((uint8_t *)buf)[i] = (uint8_t)(dice >> 56);
	}
}

static uint32_t dice_random(void)
{
	uint32_t value;

	dice_buf(&value, sizeof(value));
	return value;
}

static const char *dice_name(void)
{
	return "dice";
}

static struct randombytes_implementation dice_of_this_test = {
	.implementation_name = dice_name,
	.random = dice_random,
	.buf = dice_buf,
};

/* All that an acceptor with this key sends to one who says this hello, and then this proof. */
static size_t record(const uint8_t *key, const uint8_t *hello, const uint8_t *proof, uint8_t *out)
{
	struct tti_auth acceptor;
	const uint8_t *data;
	size_t n, all = 0;

	dice = 1;
	tti_auth_init(&acceptor, false, TTI_AUTH_ANY, key, NULL, sizeof(payload));
	for (int step = 0; step < 2; step++) {
		const tutti_status st = step == 0 ? tti_auth_feed(&acceptor, hello, 48)
						  : tti_auth_feed(&acceptor, proof, 48);

		assert_int_not_equal(st, TUTTI_OK);
		n = tti_auth_output(&acceptor, &data);
		memcpy(out + all, data, n);
		tti_auth_sent(&acceptor, n);
		all += n;
		if (tti_auth_wants(&acceptor) == 0)
			break;
	}
	return all;
}

/* If what a stranger can get is the same whatever the key is, no number of guesses tells one key
 * from another. */
static void a_stranger_learns_nothing(void **state)
{
	uint8_t hello[48], proof[48], first[TTI_AUTH_ROOM], again[TTI_AUTH_ROOM];
	const uint8_t *data;
	struct tti_auth connector;

	(void)state;
	for (int how = 0; how < 3; how++) {
		size_t n = 0;

		tti_auth_init(&connector, true, TTI_AUTH_DATA, other, payload, sizeof(payload));
		tti_auth_output(&connector, &data);
		memcpy(hello, data, sizeof(hello));
		hello[8] = (uint8_t)(how == 1 ? 2 : hello[8]);    /* another version         */
		hello[10] = (uint8_t)(how == 2 ? 99 : hello[10]); /* a kind that is not there */
		dice_buf(proof, sizeof(proof));
		for (int i = 0; i < 1000; i++) {
			const uint8_t key[32] = { (uint8_t)i, (uint8_t)(i >> 8) };
			const size_t now = record(key, hello, proof, i == 0 ? first : again);

			assert_true(i == 0 || now == n);
			if (i > 0)
				assert_memory_equal(again, first, n);
			n = now;
		}
		assert_int_equal(n, how == 0 ? 48 + 33 : how == 1 ? 80 : 0);
	}
}

/* -- Keys ---------------------------------------------------------------------------- */

static void equal(const uint8_t *a, const uint8_t *b, bool are)
{
	assert_int_equal(memcmp(a, b, TTI_SEAL_KEY) == 0, are);
}

/* Both sides have the same two keys, of which each handshake makes new ones. */
static void a_handshake_yields_keys(void **state)
{
	struct tti_seal_keys first = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct tti_seal_keys *c, *a;
		struct pair pair;

		make(&pair, secret, secret);
		run(&pair, 1000, -1, -1);
		c = tti_auth_keys(&pair.connector);
		a = tti_auth_keys(&pair.acceptor);
		equal(c->out, a->in, true);
		equal(c->in, a->out, true);
		equal(c->in, c->out, false);
		equal(c->in, first.in, false);
		equal(c->out, first.out, false);
		assert_int_equal(c->cipher, a->cipher);
		/* What the keys were made of is gone, with what the log of a wire has. */
		equal(pair.connector.ours, (const uint8_t[32]){ 0 }, true);
		equal(pair.acceptor.ours, (const uint8_t[32]){ 0 }, true);
		first = *c;
	}
}

/* The keys of given private values, worked out by another program (Python's hashlib and X25519):
 * no build means something else by the same version of the protocol. They depend on the ciphers
 * that both sides have. */
static void the_keys_are_those_of_the_protocol(void **state)
{
	static const char *const expected[2][2] = {
		{ "14475d3a0109ff82836cc58c7d52cd4b998e1a72ba337bd814726c8609d0c620",
		  "427608e06693c7401c68a19589f84769086629d41b04700644b4c7c1bea54804" },
		{ "e8a679b50e3331e8fea4a5066a1c68370e6fedeace2593b745c5b97cc2fed3b3",
		  "0021b355d90d1a949f9d092e259216516a04918209c75b7e3d12354ee7df754d" },
	};
	const char *const *keys = expected[(tti_seal_ciphers() & TTI_SEAL_AES) != 0];
	char text[2 * TTI_SEAL_KEY + 1];
	struct pair pair;

	(void)state;
	dice = 7;
	make(&pair, secret, secret);
	run(&pair, 1000, -1, -1);
	sodium_bin2hex(text, sizeof(text), tti_auth_keys(&pair.connector)->out, TTI_SEAL_KEY);
	assert_string_equal(text, keys[0]);
	sodium_bin2hex(text, sizeof(text), tti_auth_keys(&pair.connector)->in, TTI_SEAL_KEY);
	assert_string_equal(text, keys[1]);
}

/* -- Over sockets ------------------------------------------------------------------ */

struct side {
	struct tti_auth auth;
	int fd;
	_Atomic int stop;
	tutti_status status;
};

static void *serve(void *self)
{
	struct side *side = self;

	side->status = tti_auth_run(&side->auth, side->fd, tti_deadline(60000), &side->stop);
	return NULL;
}

static void blocking(void **state)
{
	struct side side = { 0 };
	struct tti_auth auth;
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	side.fd = fds[1];
	tti_auth_init(&side.auth, false, TTI_AUTH_PEER, secret, NULL, sizeof(payload));
	tti_auth_init(&auth, true, TTI_AUTH_PEER, secret, payload, sizeof(payload));
	pthread_create(&thread, NULL, serve, &side);
	assert_int_equal(tti_auth_run(&auth, fds[0], tti_deadline(60000), NULL), TUTTI_OK);
	pthread_join(thread, NULL);
	assert_int_equal(side.status, TUTTI_OK);

	/* What comes after the handshake is still in the socket. */
	char c = 0;

	assert_int_equal(write(fds[0], "x", 1), 1);
	assert_int_equal(read(fds[1], &c, 1), 1);
	assert_int_equal(c, 'x');

	tti_auth_init(&auth, true, TTI_AUTH_PEER, secret, payload, sizeof(payload));
	assert_int_equal(tti_auth_run(&auth, fds[0], tti_deadline(50), NULL), TUTTI_ETIMEOUT);

	tti_auth_init(&side.auth, false, TTI_AUTH_PEER, secret, NULL, sizeof(payload));
	assert_int_equal(read(fds[1], side.auth.in, 48), 48);
	pthread_create(&thread, NULL, serve, &side);
	usleep(20000);
	side.stop = 1;
	pthread_join(thread, NULL);
	assert_int_equal(side.status, TUTTI_EABORTED);

	close(fds[0]);
	tti_auth_init(&side.auth, false, TTI_AUTH_PEER, secret, NULL, sizeof(payload));
	assert_int_equal(tti_auth_run(&side.auth, fds[1], tti_deadline(60000), NULL), TUTTI_EPEER);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_secrets_agree),
		cmocka_unit_test(different_secrets_do_not),
		cmocka_unit_test(a_changed_bit_is_noticed),
		cmocka_unit_test(another_version_is_named),
		cmocka_unit_test(a_stranger_goes_at_his_first_byte),
		cmocka_unit_test(kinds_and_verdicts),
		cmocka_unit_test(replays_and_echoes_fail),
		cmocka_unit_test(a_reflection_is_refused),
		cmocka_unit_test(a_stranger_learns_nothing),
		cmocka_unit_test(a_handshake_yields_keys),
		cmocka_unit_test(the_keys_are_those_of_the_protocol),
		cmocka_unit_test(blocking),
	};

	randombytes_set_implementation(&dice_of_this_test);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
