/* SPDX-License-Identifier: BSD-3-Clause */
/* The sealed connections of the bootstrap, and somebody in the middle of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/net/tunnel.h"
#include "boot/net/wire.h"
#include "util/clock.h"
#include "util/error.h"

#define MOST (TTI_TUNNEL_HEAD + TTI_TUNNEL_RECORD + TTI_SEAL_MAC)

/* What one end sends waits in the middle, until it is passed on. */
struct way {
	struct tti_tunnel *from, *to;
	int out, in; /* of the one in the middle */
};

static void begin(struct way *way)
{
	const struct tti_seal_keys keys = { .out = { 1 }, .in = { 2 }, .cipher = TTI_SEAL_XCHACHA };
	const struct tti_seal_keys theirs = { .out = { 2 }, .in = { 1 }, .cipher = keys.cipher };
	int near[2], far[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, near), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, far), 0);
	assert_int_equal(tti_tunnel_open(near[0], &keys, &way->from), TUTTI_OK);
	assert_int_equal(tti_tunnel_open(far[0], &theirs, &way->to), TUTTI_OK);
	way->out = near[1];
	way->in = far[1];
}

static void end(struct way *way)
{
	tti_tunnel_close(&way->from);
	tti_tunnel_close(&way->to);
	close(way->out);
	close(way->in);
}

/* One record, as it is on its way. */
static size_t catch (struct way *way, const char *text, uint8_t bytes[MOST])
{
	ssize_t n;

	assert_int_equal(tti_tunnel_send(way->from, text, strlen(text)), strlen(text));
	n = recv(way->out, bytes, MOST, 0);
	assert_int_equal(n, TTI_TUNNEL_HEAD + strlen(text) + TTI_SEAL_MAC);
	return (size_t)n;
}

static void pass(const struct way *way, const uint8_t *bytes, size_t n)
{
	assert_int_equal(send(way->in, bytes, n, 0), n);
}

static void expect(struct way *way, const char *text)
{
	char got[TTI_TUNNEL_RECORD] = "";

	assert_int_equal(tti_tunnel_recv(way->to, got, sizeof(got)), strlen(text));
	assert_string_equal(got, text);
}

/* Nothing comes out, now and later, but why. */
static void expect_refusal(struct way *way)
{
	char got[TTI_TUNNEL_RECORD], why[TTI_TUNNEL_WHY];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(tti_tunnel_recv(way->to, got, sizeof(got)), -1);
		assert_int_equal(errno, EBADMSG);
	}
	assert_true(way->to->failed);
	assert_non_null(strstr(tti_tunnel_why(way->to, why), "somebody on the network"));
	assert_int_equal(tti_tunnel_recv_all(way->to, got, 1, tti_deadline(20000), NULL),
			 TUTTI_EPROTO);
}

/* A record that comes byte by byte, is looked at, and is taken in two parts. */
static void bytes_come_through(void **state)
{
	uint8_t bytes[MOST];
	struct way way;
	char got[8] = "";

	(void)state;
	begin(&way);
	const size_t n = catch (&way, "sealed", bytes);

	assert_null(memmem(bytes, n, "sealed", 6));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(tti_tunnel_recv(way.to, got, sizeof(got)), -1);
		assert_int_equal(errno, EAGAIN);
		pass(&way, bytes + i, 1);
	}
	assert_false(tti_tunnel_holds(way.to));
	assert_int_equal(tti_tunnel_peek(way.to, got, sizeof(got)), 6);
	assert_true(tti_tunnel_holds(way.to));
	assert_int_equal(tti_tunnel_recv(way.to, got, 4), 4);
	assert_int_equal(tti_tunnel_recv(way.to, got + 4, 4), 2);
	assert_false(tti_tunnel_holds(way.to));
	assert_string_equal(got, "sealed");
	close(way.in);
	assert_int_equal(tti_tunnel_recv(way.to, got, 4), 0);
	way.in = dup(way.out);
	end(&way);
}

static void every_changed_bit_is_refused(void **state)
{
	const size_t nbits = 8 * (TTI_TUNNEL_HEAD + 5 + TTI_SEAL_MAC);

	(void)state;
	for (size_t bit = 0; bit < nbits; bit++) {
		uint8_t bytes[MOST];
		struct way way;

		begin(&way);
		const size_t n = catch (&way, "bytes", bytes);

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		pass(&way, bytes, n);
		expect_refusal(&way);
		end(&way);
	}
}

/* Of two records, one is left out, sent twice, or they change places; or the answer of the other
 * side comes back as its own. */
static void records_keep_their_places(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		uint8_t one[MOST], two[MOST];
		struct way way;
		size_t n;

		begin(&way);
		n = catch (&way, "one", one);
		assert_int_equal(catch (&way, "two", two), n);
		if (how == 1) {
			pass(&way, one, n);
			expect(&way, "one");
			pass(&way, one, n);
		} else if (how == 3) {
			assert_int_equal(tti_tunnel_send(way.to, "two", 3), 3);
			assert_int_equal(recv(way.in, two, MOST, 0), n);
			pass(&way, two, n);
		} else {
			pass(&way, two, n);
			pass(&way, one, how == 2 ? n : 0);
		}
		expect_refusal(&way);
		end(&way);
	}
}

/* What the system does not take at once is taken later, and nothing else comes between. */
static void a_full_socket(void **state)
{
	static uint8_t data[1 << 20], got[1 << 20];
	size_t sent = 0, came = 0;
	struct way way;
	int torn = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 2654435761u >> 24);
	begin(&way);
	while (came < sizeof(data)) {
		uint8_t bytes[3000];
		ssize_t n;

		while (sent < sizeof(data) &&
		       (n = tti_tunnel_send(way.from, data + sent, sizeof(data) - sent)) > 0)
			sent += (size_t)n;
		torn += tti_tunnel_is_torn(way.from);
		while ((n = recv(way.out, bytes, sizeof(bytes), 0)) > 0) {
			pass(&way, bytes, (size_t)n);
			while ((n = tti_tunnel_recv(way.to, got + came, sizeof(got) - came)) > 0)
				came += (size_t)n;
		}
	}
	assert_true(torn > 0);
	assert_memory_equal(got, data, sizeof(data));
	end(&way);
}

/* What failed stays so: the rest of a record of which the caller has let go is not sent after all. */
static void nothing_is_sent_after_an_error(void **state)
{
	static struct tti_outbox box;
	uint8_t data[1000] = { 0 };
	struct way way;
	int fd;

	(void)state;
	begin(&way);
	box.len = 0;
	while (!tti_tunnel_is_torn(way.from)) {
		assert_true(tti_outbox_put(&box, TTI_FRAME_BLOCK, 0, data, sizeof(data), 0));
		tti_outbox_flush(&box, way.from);
	}
	fd = way.from->fd;
	way.from->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	tti_outbox_flush(&box, way.from);
	assert_int_equal(box.len, 0);
	close(way.from->fd);
	way.from->fd = fd;
	while (recv(way.out, data, sizeof(data), 0) > 0)
		;
	assert_true(tti_outbox_put(&box, TTI_FRAME_BYE, 0, NULL, 0, 0));
	assert_int_equal(tti_tunnel_send(way.from, box.bytes, box.len), -1);
	assert_int_equal(errno, EPIPE);
	tti_outbox_flush(&box, way.from);
	assert_int_equal(box.len, 0);
	assert_int_equal(recv(way.out, data, sizeof(data), 0), -1);
	end(&way);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_through),
		cmocka_unit_test(every_changed_bit_is_refused),
		cmocka_unit_test(records_keep_their_places),
		cmocka_unit_test(a_full_socket),
		cmocka_unit_test(nothing_is_sent_after_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
