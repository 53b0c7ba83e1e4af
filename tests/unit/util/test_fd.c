/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"

#define BIG (4 * 1024 * 1024)

static int pair[2];
static unsigned char *big;

static int open_pair(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	(void)state;
	tti_fd_close(&pair[0]);
	tti_fd_close(&pair[1]);
	return 0;
}

static void close_sets_minus_one(void **state)
{
	int fd = dup(pair[0]);
	const int old = fd;

	(void)state;
	errno = EXDEV;
	tti_fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(old, F_GETFD), -1);
	errno = EXDEV;
	tti_fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EXDEV);
}

struct job {
	int fd;
	tutti_status status;
	int64_t deadline_ns;
	const _Atomic int *stop;
};

static void *send_big(void *arg)
{
	struct job *job = arg;

	job->status = tti_fd_send_all(job->fd, big, BIG, job->deadline_ns, job->stop);
	return NULL;
}

/* More than the socket holds, so both sides wait for each other. */
static void check_transfer(void)
{
	struct job job = { .fd = pair[0], .deadline_ns = tti_deadline(60000) };
	unsigned char *got = malloc(BIG);
	pthread_t thread;

	assert_non_null(got);
	assert_int_equal(pthread_create(&thread, NULL, send_big, &job), 0);
	/* In odd pieces. */
	for (size_t at = 0, n; at < BIG; at += n) {
		n = at + 77777 < BIG ? 77777 : BIG - at;
		assert_int_equal(tti_fd_recv_all(pair[1], got + at, n, tti_deadline(60000), NULL),
				 TUTTI_OK);
	}
	pthread_join(thread, NULL);
	assert_int_equal(job.status, TUTTI_OK);
	assert_memory_equal(got, big, BIG);
	free(got);
}

static void all_bytes_move_when_blocking(void **state)
{
	(void)state;
	check_transfer();
}

static void all_bytes_move_when_nonblocking(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(fcntl(pair[i], F_SETFL, O_NONBLOCK), 0);
	check_transfer();
}

static void nothing_to_move_is_done(void **state)
{
	(void)state;
	assert_int_equal(tti_fd_send_all(-1, NULL, 0, 0, NULL), TUTTI_OK);
	assert_int_equal(tti_fd_recv_all(-1, NULL, 0, 0, NULL), TUTTI_OK);
}

static void what_is_there_is_taken_after_the_deadline(void **state)
{
	char got[4] = "";

	(void)state;
	assert_int_equal(tti_fd_send_all(pair[0], "abc", 4, 1, NULL), TUTTI_OK);
	assert_int_equal(tti_fd_recv_all(pair[1], got, 4, 1, NULL), TUTTI_OK);
	assert_string_equal(got, "abc");
}

static void deadlines_are_kept(void **state)
{
	const int64_t start = tti_now_ns();
	char byte[2];

	(void)state;
	assert_int_equal(tti_fd_send_all(pair[0], "x", 1, TTI_NEVER, NULL), TUTTI_OK);
	assert_int_equal(tti_fd_recv_all(pair[1], byte, 2, tti_deadline(120), NULL),
			 TUTTI_ETIMEOUT);
	assert_int_equal(tti_fd_send_all(pair[0], big, BIG, tti_deadline(120), NULL),
			 TUTTI_ETIMEOUT);
	assert_true(tti_now_ns() - start >= 240 * TTI_NS_PER_MS);
	assert_true(tti_now_ns() - start < 50000 * TTI_NS_PER_MS);
	assert_int_equal(tti_fd_recv_all(pair[0], byte, 1, tti_now_ns() - 1, NULL), TUTTI_ETIMEOUT);
	assert_string_not_equal(tti_error_text(), "");
}

static void a_closed_peer_is_epeer(void **state)
{
	char got[8];

	(void)state;
	assert_int_equal(tti_fd_send_all(pair[1], "abc", 3, tti_deadline(1000), NULL), TUTTI_OK);
	tti_fd_close(&pair[1]);
	assert_int_equal(tti_fd_recv_all(pair[0], got, 8, tti_deadline(60000), NULL), TUTTI_EPEER);
	/* SIGPIPE would end the test program here. */
	assert_int_equal(tti_fd_send_all(pair[0], "abc", 3, tti_deadline(60000), NULL),
			 TUTTI_EPEER);
	assert_string_equal(tti_error_text(), "send: Broken pipe");
}

static void a_reset_connection_is_epeer(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int other;
	char byte;

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	other = accept(listener, NULL, NULL);
	assert_true(other >= 0);
	assert_int_equal(setsockopt(other, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	tti_fd_close(&other);
	assert_int_equal(tti_fd_recv_all(fd, &byte, 1, tti_deadline(60000), NULL), TUTTI_EPEER);
	tti_fd_close(&fd);
	tti_fd_close(&listener);
}

static void what_is_no_stream_is_esys(void **state)
{
	int ends[2];
	char byte = 0;

	(void)state;
	assert_int_equal(tti_fd_send_all(-1, &byte, 1, tti_deadline(1000), NULL), TUTTI_ESYS);
	assert_int_equal(tti_fd_recv_all(-1, &byte, 1, tti_deadline(1000), NULL), TUTTI_ESYS);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(tti_fd_send_all(ends[1], &byte, 1, tti_deadline(1000), NULL), TUTTI_ESYS);
	tti_fd_close(&ends[0]);
	tti_fd_close(&ends[1]);
}

static void *stop_soon(void *stop)
{
	usleep(100000);
	atomic_store((_Atomic int *)stop, 1);
	return NULL;
}

static void stop_is_obeyed(void **state)
{
	_Atomic int stop = 1;
	int64_t start;
	pthread_t thread;
	char byte;

	(void)state;
	/* Even when it could go on. */
	assert_int_equal(tti_fd_send_all(pair[1], "x", 1, TTI_NEVER, NULL), TUTTI_OK);
	assert_int_equal(tti_fd_recv_all(pair[0], &byte, 1, TTI_NEVER, &stop), TUTTI_EABORTED);
	assert_int_equal(tti_fd_send_all(pair[0], "x", 1, TTI_NEVER, &stop), TUTTI_EABORTED);
	for (int sends = 0; sends < 2; sends++) {
		atomic_store(&stop, 0);
		start = tti_now_ns();
		assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stop), 0);
		if (sends)
			assert_int_equal(tti_fd_send_all(pair[0], big, BIG, TTI_NEVER, &stop),
					 TUTTI_EABORTED);
		else
			assert_int_equal(tti_fd_recv_all(pair[1], &byte, 1, TTI_NEVER, &stop),
					 TUTTI_EABORTED);
		pthread_join(thread, NULL);
		assert_true(tti_now_ns() - start >= 100 * TTI_NS_PER_MS);
		assert_true(tti_now_ns() - start < 30000 * TTI_NS_PER_MS);
	}
}

static void the_limit_of_files_is_raised_to_the_hard_one(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max / 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	tti_fd_raise_limit();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
	tti_fd_raise_limit();
}

static void deadlines_do_not_overflow(void **state)
{
	int left = 0;

	(void)state;
	assert_true(tti_deadline(-1) == TTI_NEVER);
	assert_true(tti_deadline(INT64_MAX) == TTI_NEVER);
	assert_true(tti_deadline(INT64_MAX / TTI_NS_PER_MS) == TTI_NEVER);
	assert_true(tti_deadline(0) <= tti_now_ns());
	assert_true(tti_deadline(10000) > tti_now_ns());
	assert_int_equal(tti_left_ms(TTI_NEVER, 50), 50);
	assert_int_equal(tti_left_ms(tti_deadline(10000), 50), 50);
	assert_int_equal(tti_left_ms(tti_now_ns(), 50), 0);
	assert_int_equal(tti_left_ms(0, 50), 0);
	/* A part of a millisecond is not nothing: no busy wait. It may be over, on a busy machine. */
	for (int i = 0; i < 1000 && left == 0; i++)
		left = tti_left_ms(tti_now_ns() + TTI_NS_PER_MS / 2, 50);
	assert_int_equal(left, 1);
}

static int setup(void **state)
{
	(void)state;
	big = malloc(BIG);
	for (size_t i = 0; big && i < BIG; i++)
		big[i] = (unsigned char)(i * 2654435761U >> 13);
	return big ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(big);
	return 0;
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(close_sets_minus_one),
		WITH_PAIR(all_bytes_move_when_blocking),
		WITH_PAIR(all_bytes_move_when_nonblocking),
		WITH_PAIR(nothing_to_move_is_done),
		WITH_PAIR(what_is_there_is_taken_after_the_deadline),
		WITH_PAIR(deadlines_are_kept),
		WITH_PAIR(a_closed_peer_is_epeer),
		WITH_PAIR(a_reset_connection_is_epeer),
		WITH_PAIR(what_is_no_stream_is_esys),
		WITH_PAIR(stop_is_obeyed),
		cmocka_unit_test(the_limit_of_files_is_raised_to_the_hard_one),
		cmocka_unit_test(deadlines_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
