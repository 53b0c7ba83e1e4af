/* SPDX-License-Identifier: BSD-3-Clause */
/* The all-gather beside neighbours that have more to say than their blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "boot/net/sock.h"
#include "util/clock.h"
#include "util/error.h"

/* Rank 0 of three, and what its neighbours, ranks 1 and 2, hold of the connections. */
struct ring {
	struct tti_sock sock;
	struct tti_wire_card cards[3];
	struct tti_tunnel *none[3];
	struct tti_tunnel *next, *prev;
};

/* Both ends of a connection whose handshake is over. */
static void connected(struct tti_tunnel **near, struct tti_tunnel **far)
{
	const struct tti_seal_keys keys = { .out = { 1 }, .in = { 2 }, .cipher = TTI_SEAL_XCHACHA };
	const struct tti_seal_keys theirs = { .out = { 2 }, .in = { 1 }, .cipher = keys.cipher };
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(tti_tunnel_open(fds[0], &keys, near), TUTTI_OK);
	assert_int_equal(tti_tunnel_open(fds[1], &theirs, far), TUTTI_OK);
}

static void ring_open(struct ring *ring)
{
	*ring = (struct ring){ 0 };
	ring->sock = (struct tti_sock){
		.base = { .nranks = 3 },
		.timeout_ms = 20000,
		.cards = ring->cards,
		.in = ring->none,
		.inbox_fd = -1,
	};
	connected(&ring->sock.next_tunnel, &ring->next);
	connected(&ring->sock.prev_tunnel, &ring->prev);
	pthread_mutex_init(&ring->sock.lock, NULL);
}

static void ring_close(struct ring *ring)
{
	pthread_mutex_destroy(&ring->sock.lock);
	tti_tunnel_close(&ring->sock.next_tunnel);
	tti_tunnel_close(&ring->sock.prev_tunnel);
	tti_tunnel_close(&ring->next);
	tti_tunnel_close(&ring->prev);
}

static void say(struct tti_tunnel *tunnel, const void *data, size_t nbytes)
{
	assert_int_equal(tti_tunnel_send(tunnel, data, nbytes), nbytes);
}

static void say_block(struct tti_tunnel *tunnel, uint8_t value)
{
	const struct tti_frame head = { .type = TTI_FRAME_BLOCK, .seq = 1, .nbytes = 1 };

	say(tunnel, &head, sizeof(head));
	say(tunnel, &value, 1);
}

/* Says why, and leaves. */
static void say_news(struct tti_tunnel *tunnel, tutti_status status)
{
	const struct {
		struct tti_frame head;
		struct tti_failure failure;
	} said = { { .type = TTI_FRAME_FAILURE, .nbytes = sizeof(struct tti_failure) },
		   { .status = status, .failed_rank = 1, .origin = 1, .text = "so" } };

	say(tunnel, &said, sizeof(said));
	shutdown(tunnel->fd, SHUT_WR);
}

static void *come_late(void *self)
{
	const struct timespec nap = { .tv_nsec = 100 * 1000 * 1000 };
	struct ring *ring = self;

	(void)nanosleep(&nap, NULL);
	say_block(ring->prev, 22);
	return NULL;
}

/* The next rank has gathered, says that with `status` all is over, and is gone, while the
 * previous one has not sent its block, or never does. */
static tutti_status gather_beside(struct ring *ring, tutti_status said, bool comes,
				  uint8_t blobs[3])
{
	pthread_t late;
	tutti_status status;

	say_block(ring->next, 11);
	say_news(ring->next, said);
	if (comes)
		assert_int_equal(pthread_create(&late, NULL, come_late, ring), 0);
	blobs[0] = 7;
	status = tti_sock_gather(&ring->sock, blobs, 1, "all_gather", tti_deadline(20000));
	if (comes)
		assert_int_equal(pthread_join(late, NULL), 0);
	return status;
}

/* Who revokes has ended its init, so others can end theirs; the watch hears of it then. */
static void a_revocation_waits_until_init_is_over(void **state)
{
	struct ring ring;
	uint8_t blobs[3];
	struct tti_frame head;

	(void)state;
	ring_open(&ring);
	assert_int_equal(gather_beside(&ring, TUTTI_EREVOKED, true, blobs), TUTTI_OK);
	assert_int_equal(blobs[1], 11);
	assert_int_equal(blobs[2], 22);
	assert_int_equal(tti_tunnel_recv(ring.sock.next_tunnel, &head, sizeof(head)), sizeof(head));
	assert_int_equal(head.type, TTI_FRAME_FAILURE);
	ring_close(&ring);
}

static void a_death_ends_init(void **state)
{
	struct ring ring;
	uint8_t blobs[3];

	(void)state;
	ring_open(&ring);
	assert_int_equal(gather_beside(&ring, TUTTI_EPEER, false, blobs), TUTTI_EPEER);
	assert_string_equal(tti_error_text(), "so");
	ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_revocation_waits_until_init_is_over),
		cmocka_unit_test(a_death_ends_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
