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

#include "boot/sock.h"
#include "util/clock.h"
#include "util/error.h"

/* Rank 0 of three, and what its neighbours, ranks 1 and 2, hold of the connections. */
struct ring {
	struct tti_sock sock;
	struct tti_wire_card cards[3];
	int none[3];
	int next, prev;
};

static void ring_open(struct ring *ring)
{
	int next[2], prev[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, next), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, prev), 0);
	*ring = (struct ring){ .none = { -1, -1, -1 }, .next = next[1], .prev = prev[1] };
	ring->sock = (struct tti_sock){
		.base = { .nranks = 3 },
		.timeout_ms = 20000,
		.cards = ring->cards,
		.next_fd = next[0],
		.prev_fd = prev[0],
		.in = ring->none,
		.inbox_fd = -1,
		.inbox_prev = -1,
	};
	pthread_mutex_init(&ring->sock.lock, NULL);
}

static void ring_close(struct ring *ring)
{
	pthread_mutex_destroy(&ring->sock.lock);
	close(ring->sock.next_fd);
	close(ring->sock.prev_fd);
	close(ring->next);
	close(ring->prev);
}

static void say_block(int fd, uint8_t value)
{
	const struct tti_frame head = { .type = TTI_FRAME_BLOCK, .seq = 1, .nbytes = 1 };

	assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(send(fd, &value, 1, 0), 1);
}

/* Says why, and leaves. */
static void say_news(int fd, tutti_status status)
{
	const struct tti_frame head = { .type = TTI_FRAME_NEWS, .nbytes = sizeof(struct tti_news) };
	const struct tti_news news = { .status = status, .culprit = 1, .origin = 1, .text = "so" };

	assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(send(fd, &news, sizeof(news), 0), sizeof(news));
	shutdown(fd, SHUT_WR);
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
 * previous one has not sent its block. */
static tutti_status gather_beside(struct ring *ring, tutti_status said, uint8_t blobs[3])
{
	pthread_t late;
	tutti_status status;

	say_block(ring->next, 11);
	say_news(ring->next, said);
	assert_int_equal(pthread_create(&late, NULL, come_late, ring), 0);
	blobs[0] = 7;
	status = tti_sock_gather(&ring->sock, blobs, 1, "all_gather", tti_deadline(20000));
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
	assert_int_equal(gather_beside(&ring, TUTTI_EREVOKED, blobs), TUTTI_OK);
	assert_int_equal(blobs[1], 11);
	assert_int_equal(blobs[2], 22);
	assert_int_equal(recv(ring.sock.next_fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.type, TTI_FRAME_NEWS);
	ring_close(&ring);
}

static void a_death_ends_init(void **state)
{
	struct ring ring;
	uint8_t blobs[3];

	(void)state;
	ring_open(&ring);
	assert_int_equal(gather_beside(&ring, TUTTI_EPEER, blobs), TUTTI_EPEER);
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
