/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows between threads: in place and over TCP; order, passive targets, streams, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/window/window_net.h"
#include "support/sanitizer.h"
#include "support/world.h"
#include "transport/tcp/tcp.h"

#define ROOM   ((size_t)600 * 1024)
#define ROUNDS (SANITIZED ? 20 : 60)

enum kind { ALLOCATED, REGISTERED, PLAIN };

struct memory {
	unsigned char *at;
	tutti_reg_t reg;
};

static struct memory get_memory(tutti_comm_t comm, enum kind kind)
{
	struct memory memory = { 0 };
	void *at = NULL;

	if (kind == ALLOCATED)
		CHECK_OK(tutti_mem_alloc(&at, ROOM, comm));
	else
		at = calloc(1, ROOM);
	CHECK(at != NULL);
	memory.at = at;
	if (kind == REGISTERED)
		CHECK_OK(tutti_register(comm, at, ROOM, &memory.reg));
	return memory;
}

static void drop_memory(tutti_comm_t comm, enum kind kind, struct memory memory)
{
	CHECK_OK(tutti_deregister(comm, memory.reg));
	if (kind == ALLOCATED)
		CHECK_OK(tutti_mem_free(memory.at, comm));
	else
		free(memory.at);
}

static unsigned char value_of(int rank, int round, size_t i)
{
	return (unsigned char)(i * 7 + (size_t)rank * 31 + (size_t)round * 13 + 1);
}

static void fill(unsigned char *data, size_t nbytes, int rank, int round)
{
	for (size_t i = 0; i < nbytes; i++)
		data[i] = value_of(rank, round, i);
}

static bool is_filled(const unsigned char *data, size_t nbytes, int rank, int round)
{
	size_t i = 0;

	while (i < nbytes && data[i] == value_of(rank, round, i))
		i++;
	return i == nbytes;
}

static const size_t sizes[] = { 1, 8, 4000, 70000, 262144, 300001 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Everybody puts to the next rank and signals; the signal says that the bytes are there. The
 * signal back says that they were looked at. */
static void ring_of_puts(tutti_window_t window, const unsigned char *own, int rank, int n)
{
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	unsigned char *src = malloc(ROOM);

	for (int round = 0; round < ROUNDS && CHECK(src != NULL); round++) {
		const size_t nbytes = sizes[(size_t)round % NSIZES];
		const size_t offset = (size_t)round % 3, half = nbytes / 2;

		fill(src, nbytes, rank, round);
		CHECK_OK(tutti_put(window, next, offset, src, half, NULL));
		CHECK_OK(tutti_put(window, next, offset + half, src + half, nbytes - half, NULL));
		/* What was given may be changed at once. */
		memset(src, 0, nbytes);
		CHECK_OK(tutti_signal(window, next, NULL));
		if (!CHECK_OK(tutti_wait_signal(window, prev, 1, NULL)))
			break;
		CHECK(is_filled(own + offset, nbytes, prev, round));
		CHECK_OK(tutti_signal(window, prev, NULL));
		if (!CHECK_OK(tutti_wait_signal(window, next, 1, NULL)))
			break;
	}
	free(src);
}

/* A barrier, and a flush on either side of it: what the own rank and the thread that serves
 * its window do is then ordered for a sanitizer of threads, which sees no messages. */
static void meet(tutti_window_t window, tutti_comm_t comm)
{
	CHECK_OK(tutti_window_flush(window, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_window_flush(window, -1, NULL));
}

/* Gets from all, the own rank too, then a put that a flush and a barrier make known. */
static void gets_and_flush(tutti_window_t window, tutti_comm_t comm, unsigned char *own, int rank,
			   int n)
{
	unsigned char *dst = malloc(ROOM);

	fill(own, ROOM, rank, 0);
	meet(window, comm);
	for (int peer = 0; peer < n && CHECK(dst != NULL); peer++) {
		CHECK_OK(tutti_get(window, peer, 0, dst, ROOM, NULL));
		CHECK(is_filled(dst, ROOM, peer, 0));
		CHECK_OK(tutti_get(window, peer, 77, dst, 9, NULL));
		CHECK(!memcmp(dst, &(unsigned char){ value_of(peer, 0, 77) }, 1));
		CHECK_OK(tutti_get(window, peer, ROOM, dst, 0, NULL));
	}
	meet(window, comm);
	fill(dst, 1000, rank, 5);
	for (int peer = 0; peer < n; peer++)
		CHECK_OK(tutti_put(window, peer, (size_t)rank * 1000, dst, 1000, NULL));
	/* It sees what this rank put itself. */
	CHECK_OK(tutti_get(window, (rank + 1) % n, (size_t)rank * 1000, dst, 1000, NULL));
	CHECK(is_filled(dst, 1000, rank, 5));
	CHECK_OK(tutti_window_flush(window, -1, NULL));
	meet(window, comm);
	for (int peer = 0; peer < n; peer++)
		CHECK(is_filled(own + (size_t)peer * 1000, 1000, peer, 5));
	free(dst);
}

static void all_of_it(tutti_comm_t comm, int rank, int n, void *arg)
{
	const enum kind kind = *(enum kind *)arg;
	const struct memory memory = get_memory(comm, kind);
	tutti_window_t window = NULL;

	if (CHECK_OK(tutti_window_create(comm, memory.at, ROOM, &window))) {
		ring_of_puts(window, memory.at, rank, n);
		CHECK_OK(tutti_barrier(comm, NULL));
		/* Plain pointers and barriers are nothing that a sanitizer of threads knows to
		 * belong together. */
		if (!(TTI_SANITIZED && kind == REGISTERED))
			gets_and_flush(window, comm, memory.at, rank, n);
		CHECK_OK(tutti_window_destroy(window));
	}
	drop_memory(comm, kind, memory);
}

static void everywhere(void **state)
{
	static const struct {
		const char *transport;
		enum kind kind;
	} ways[] = {
		{ "shm", ALLOCATED }, { "shm", REGISTERED }, { "tcp", ALLOCATED }, { "auto", PLAIN }
	};

	(void)state;
	for (size_t w = 0; w < 4; w++)
		for (int n = 1; n <= 4; n++) {
			const struct world world = { .n = n, .transport = ways[w].transport };
			enum kind kind = ways[w].kind;

			if (world_run(&world, all_of_it, &kind))
				fail_msg("%d ranks over %s, kind %d", n, ways[w].transport, kind);
		}
}

/* Where the log goes. */
static char log_name[] = "/tmp/tutti-test-window-XXXXXX";

/* Windows that end leave no warning of ranks that were the first to go. */
static void nobody_is_missed(void **state)
{
	char line[1024];
	FILE *log = fopen(log_name, "r");

	(void)state;
	assert_non_null(log);
	while (fgets(line, sizeof(line), log))
		if (strstr(line, "is gone"))
			fail_msg("%s", line);
	fclose(log);
}

/* Rank 0 only sleeps; the others read and write its memory. */
static void passive(tutti_comm_t comm, int rank, int n, void *arg)
{
	static _Atomic int done;
	const enum kind kind = *(enum kind *)arg;
	const struct memory memory = get_memory(comm, kind);
	tutti_window_t window = NULL;
	long value = 0;

	if (rank == 0)
		done = 0;
	CHECK_OK(tutti_window_create(comm, memory.at, rank == 0 ? ROOM : 0, &window));
	while (rank == 0 && done < n - 1)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	for (long i = 1; rank > 0 && i <= 20; i++) {
		CHECK_OK(tutti_put(window, 0, (size_t)rank * sizeof(i), &i, sizeof(i), NULL));
		CHECK_OK(tutti_window_flush(window, 0, NULL));
		CHECK_OK(tutti_get(window, 0, (size_t)rank * sizeof(i), &value, sizeof(i), NULL));
		CHECK(value == i);
	}
	done += rank > 0;
	CHECK_OK(tutti_window_destroy(window));
	drop_memory(comm, kind, memory);
}

static void passive_target(void **state)
{
	enum kind allocated = ALLOCATED, plain = PLAIN;
	const struct world shm = { .n = 3, .transport = "shm" },
			   tcp = { .n = 3, .transport = "tcp" };

	(void)state;
	assert_int_equal(world_run(&shm, passive, &allocated), 0);
	assert_int_equal(world_run(&tcp, passive, &plain), 0);
}

/* A stream puts and signals, another waits; several windows at once. */
static void streams(tutti_comm_t comm, int rank, int n, void *arg)
{
	const enum kind kind = *(enum kind *)arg;
	const struct memory a = get_memory(comm, kind), b = get_memory(comm, kind);
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	tutti_window_t wa = NULL, wb = NULL;
	tutti_stream_t out, in;
	unsigned char *src = malloc(ROOM);

	CHECK(src != NULL);
	fill(src, ROOM, rank, 3);
	CHECK_OK(tutti_stream_create(&out));
	CHECK_OK(tutti_stream_create(&in));
	CHECK_OK(tutti_window_create(comm, a.at, ROOM, &wa));
	CHECK_OK(tutti_window_create(comm, b.at, ROOM, &wb));
	CHECK_OK(tutti_wait_signal(wa, prev, 2, in));
	CHECK_OK(tutti_wait_signal(wb, prev, 1, in));
	CHECK_OK(tutti_put(wb, next, 0, src, ROOM, out));
	CHECK_OK(tutti_signal(wb, next, out));
	CHECK_OK(tutti_put(wa, next, 0, src, ROOM, out));
	CHECK_OK(tutti_signal(wa, next, out));
	CHECK_OK(tutti_signal(wa, next, out));
	CHECK_OK(tutti_stream_synchronize(out));
	CHECK_OK(tutti_stream_synchronize(in));
	CHECK(is_filled(a.at, ROOM, prev, 3) && is_filled(b.at, ROOM, prev, 3));
	CHECK_OK(tutti_window_destroy(wa));
	CHECK_OK(tutti_window_destroy(wb));
	CHECK_OK(tutti_stream_destroy(out));
	CHECK_OK(tutti_stream_destroy(in));
	drop_memory(comm, kind, a);
	drop_memory(comm, kind, b);
	free(src);
}

static void on_streams(void **state)
{
	enum kind allocated = ALLOCATED, plain = PLAIN;
	const struct world shm = { .n = 3, .transport = "shm" },
			   tcp = { .n = 3, .transport = "tcp" };

	(void)state;
	assert_int_equal(world_run(&shm, streams, &allocated), 0);
	assert_int_equal(world_run(&tcp, streams, &plain), 0);
}

/* Calls wait on a stream, held up by an event that the caller lets happen only shortly before the
 * window is destroyed: they are done first, on all ranks, and what they put is there. */
static void destroyed_early(tutti_comm_t comm, int rank, int n, void *arg)
{
	const enum kind kind = *(enum kind *)arg;
	const struct memory memory = get_memory(comm, kind);
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	tutti_window_t window = NULL;
	tutti_stream_t stream = NULL, held = NULL;
	tutti_event_t event = NULL;
	unsigned char *src = malloc(ROOM);

	CHECK(src != NULL);
	fill(src, ROOM, rank, 4);
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_stream_create(&held));
	CHECK_OK(tutti_event_create(&event));
	CHECK_OK(tutti_window_create(comm, memory.at, ROOM, &window));
	/* The gate of all that follows on `stream`. */
	CHECK_OK(tutti_wait_signal(window, rank, 1, held));
	CHECK_OK(tutti_event_record(event, held));
	CHECK_OK(tutti_stream_wait_event(stream, event));
	for (size_t at = 0; at < ROOM; at += 4096)
		CHECK_OK(tutti_put(window, next, at, src + at, 4096, stream));
	CHECK_OK(tutti_signal(window, next, stream));
	CHECK_OK(tutti_wait_signal(window, prev, 1, stream));
	CHECK_OK(tutti_signal(window, rank, NULL));
	CHECK_OK(tutti_window_destroy(window));
	CHECK(is_filled(memory.at, ROOM, prev, 4));
	CHECK_OK(tutti_stream_destroy(stream));
	CHECK_OK(tutti_stream_destroy(held));
	CHECK_OK(tutti_event_destroy(event));
	drop_memory(comm, kind, memory);
	free(src);
}

static void destroyed_with_calls_queued(void **state)
{
	enum kind allocated = ALLOCATED, plain = PLAIN;
	const struct world shm = { .n = 3, .transport = "shm" },
			   tcp = { .n = 3, .transport = "tcp" };

	(void)state;
	for (int round = 0; round < (SANITIZED ? 3 : 20); round++) {
		assert_int_equal(world_run(&shm, destroyed_early, &allocated), 0);
		assert_int_equal(world_run(&tcp, destroyed_early, &plain), 0);
	}
}

/* The communicator goes first: what is still queued fails, and the window waits for that. */
static void outlived_with_calls_queued(void **state)
{
	tutti_comm_t comm;
	tutti_window_t window = NULL;
	tutti_stream_t stream = NULL;
	char own[8];

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, own, sizeof(own), &window), TUTTI_OK);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(tutti_put(window, 0, 0, "12345678", 8, stream), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	assert_int_equal(tutti_window_destroy(window), TUTTI_OK);
	(void)tutti_stream_destroy(stream);
}

static void misuse(tutti_comm_t comm, int rank, int n, void *arg)
{
	char byte = 0, own[100] = { 0 };
	void *memory = NULL;
	tutti_window_t window = NULL;

	(void)arg;
	CHECK_OK(tutti_mem_alloc(&memory, 100, comm));
	CHECK(tutti_window_create(comm, NULL, 5, &window) == TUTTI_EINVAL);
	CHECK(tutti_window_create(comm, memory, 100, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_group_start());
	CHECK(tutti_window_create(comm, memory, 100, &window) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());
	/* One rank's cannot be reached: all hear so, and can go on. */
	CHECK(tutti_window_create(comm, rank ? memory : own, 100, &window) == TUTTI_EUNSUPPORTED);
	CHECK_OK(tutti_window_create(comm, memory, rank ? 100 : 0, &window));
	CHECK_OK(tutti_group_start());
	CHECK(tutti_window_destroy(window) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());
	CHECK(tutti_put(NULL, 0, 0, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_put(window, n, 0, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_put(window, -1, 0, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_put(window, 0, 0, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_put(window, 1, 100, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_put(window, 1, SIZE_MAX, &byte, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_get(window, 1, 1, &byte, SIZE_MAX, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "which has 100") != NULL);
	CHECK(tutti_get(window, 1, 0, NULL, 1, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_put(window, 1, 100, NULL, 0, NULL));
	CHECK(tutti_signal(window, n, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signal(window, -1, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_window_flush(window, n, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_wait_signal(window, 0, 0, NULL));
	CHECK_OK(tutti_signal(window, rank, NULL));
	CHECK_OK(tutti_wait_signal(window, rank, 1, NULL));
	CHECK(tutti_wait_signal(window, rank, UINT64_MAX, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_window_destroy(NULL));
	CHECK_OK(tutti_window_destroy(window));
}

static void wrong_use(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, misuse, NULL), 0);
}

/* A signal that nobody sends ends by the deadline, on all ranks; windows that are destroyed
 * after that, or after their communicator, are gone. */
static void too_late(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window = NULL;
	tutti_status st;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_window_create(comm, NULL, 0, &window));
	CHECK_OK(tutti_comm_set_timeout(comm, 1500));
	st = tutti_wait_signal(window, 1 - rank, 1, NULL);
	CHECK(st == TUTTI_ETIMEOUT);
	CHECK(strstr(tutti_last_error(comm), "a signal on a window") != NULL);
	CHECK(tutti_signal(window, 1 - rank, NULL) == TUTTI_ETIMEOUT);
	(void)tutti_window_destroy(window);
}

static void deadline(void **state)
{
	const struct world shm = { .n = 2, .transport = "shm", .timeout_ms = 60000 };
	const struct world tcp = { .n = 2, .transport = "tcp", .timeout_ms = 60000 };

	(void)state;
	assert_int_equal(world_run(&shm, too_late, NULL), 0);
	assert_int_equal(world_run(&tcp, too_late, NULL), 0);
}

static void outlived(void **state)
{
	tutti_comm_t comm;
	tutti_window_t window = NULL;
	char own[8];

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, own, sizeof(own), &window), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	assert_int_equal(tutti_signal(window, 0, NULL), TUTTI_EUSAGE);
	assert_int_equal(tutti_window_destroy(window), TUTTI_OK);
}

/* What is refused leaves the window. */
static void after_finalize(void **state)
{
	tutti_comm_t comm;
	tutti_window_t window = NULL;
	char own[8];

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, own, sizeof(own), &window), TUTTI_OK);
	assert_int_equal(tutti_comm_finalize(comm), TUTTI_OK);
	assert_int_equal(tutti_window_destroy(window), TUTTI_EUSAGE);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	assert_int_equal(tutti_window_destroy(window), TUTTI_OK);
}

/* The connections of a window end, and no rank does: the one that tells of it names the other in full. */
static void lose_links(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window = NULL;
	char who[64];
	int value = 1;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_window_create(comm, &value, sizeof(value), &window));
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 1) {
		struct tti_window_net *net = window->net;
		const struct tti_tcp_link *link;

		pthread_mutex_lock(&net->lock);
		link = (const struct tti_tcp_link *)net->peers[0].link;
		for (int i = 0; i < link->nlanes; i++)
			if (link->conn[i])
				(void)shutdown(link->conn[i]->fd, SHUT_RDWR);
		pthread_mutex_unlock(&net->lock);
	}
	while (tutti_get(window, 1 - rank, 0, &value, sizeof(value), NULL) == TUTTI_OK)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	snprintf(who, sizeof(who), "process %d) is gone: ", (int)getpid());
	CHECK(strstr(tutti_last_error(comm), who));
	CHECK(tutti_window_destroy(window) < 0);
}

static void links_that_end_are_named(void **state)
{
	const struct world tcp = { .n = 2, .transport = "tcp", .sockets = true };

	(void)state;
	assert_int_equal(world_run(&tcp, lose_links, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everywhere),
		cmocka_unit_test(nobody_is_missed),
		cmocka_unit_test(passive_target),
		cmocka_unit_test(on_streams),
		cmocka_unit_test(wrong_use),
		cmocka_unit_test(deadline),
		cmocka_unit_test(outlived),
		cmocka_unit_test(after_finalize),
		cmocka_unit_test(destroyed_with_calls_queued),
		cmocka_unit_test(outlived_with_calls_queued),
		cmocka_unit_test(links_that_end_are_named),
	};
	const int fd = mkstemp(log_name);
	int failed;

	if (fd < 0)
		return 1;
	setenv("TUTTI_DEBUG_FILE", log_name, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	close(fd);
	unlink(log_name);
	return failed;
}
