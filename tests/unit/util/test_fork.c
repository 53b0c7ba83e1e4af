/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process that this one forks has of the library's sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fault.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/mem.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether calls that open sockets wait for a fork. */
static _Atomic bool is_watching;

static int open_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open_in_a_child(int fd)
{
	const pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_child_has_no_socket(void **state)
{
	int fd = tti_fork_close(open_socket()), other = open_socket();

	(void)state;
	assert_false(is_open_in_a_child(fd));
	assert_true(is_open_in_a_child(other));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	tti_fd_close(&fd);
	tti_fd_close(&other);
}

/* Even if it is the same socket: the library has closed its number, so what has it is the user's. */
static void a_child_keeps_what_got_the_number(void **state)
{
	int fd = tti_fork_close(open_socket());
	const int number = fd, user = dup(fd);

	(void)state;
	assert_true(user >= 0);
	tti_fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	assert_int_equal(dup2(user, number), number);
	assert_true(is_open_in_a_child(number));
	close(number);
	close(user);
}

static bool is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
	return lock.l_type != F_UNLCK;
}

/* The child lives, and has not the lock. */
static void a_lock_ends_with_the_file(void **state)
{
	char path[] = "/tmp/tutti-test-XXXXXX", byte;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = tti_fork_close(mkostemp(path, O_CLOEXEC)), lines[2];
	const int other = open(path, O_RDWR | O_CLOEXEC);
	pid_t pid;

	(void)state;
	unlink(path);
	assert_true(fd >= 0 && other >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines), 0);
	pid = fork();
	if (pid == 0) {
		close(lines[0]);
		_exit(write(lines[1], "r", 1) != 1 || read(lines[1], &byte, 1) != 0);
	}
	close(lines[1]);
	assert_int_equal(read(lines[0], &byte, 1), 1);
	assert_true(is_locked(other));
	tti_fd_close(&fd);
	assert_false(is_locked(other));
	close(lines[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(other);
}

static void a_number_is_the_new_sockets(void **state)
{
	int fd = tti_fork_close(open_socket());
	const int number = fd;

	(void)state;
	/* As a program does that closes all its files. */
	close(fd);
	fd = open_socket();
	assert_int_equal(fd, number);
	assert_true(is_open_in_a_child(number));
	(void)tti_fork_close(fd);
	assert_false(is_open_in_a_child(number));
	tti_fd_close(&fd);
	assert_false(tti_fork_drop(number));
}

/* While malloc() is on its way into a fork with a lock of its own, this lock waits for that one. */
static void files_take_no_memory_of_malloc(void **state)
{
	int fds[600];
	void *memory;

	(void)state;
	tti_fault_set("mem:1");
	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = tti_fork_close(open_socket());
	memory = tti_alloc(1);
	tti_fault_set(NULL);
	assert_null(memory);
	assert_false(is_open_in_a_child(fds[0]));
	assert_false(is_open_in_a_child(fds[COUNT(fds) - 1]));
	for (size_t i = 0; i < COUNT(fds); i++)
		tti_fd_close(&fds[i]);
}

/* -- A fork between the opening and the list ------------------------------------------------ */

static _Atomic int opened = -1; /* what a thread is to find in its child */
static _Atomic bool has_forked;

static void *fork_once_opened(void *self)
{
	bool *is_inherited = self;

	while (opened < 0)
		usleep(50);
	*is_inherited = is_open_in_a_child(opened);
	has_forked = true;
	return NULL;
}

/* In place of the system's: gives the other thread time to fork, if it can. */
static int forked_meanwhile(int fd)
{
	if (fd < 0 || !is_watching)
		return fd;
	opened = fd;
	for (int i = 0; i < 300 && !has_forked; i++)
		usleep(1000);
	return fd;
}

int socket(int family, int type, int protocol)
{
	return forked_meanwhile((int)syscall(SYS_socket, family, type, protocol));
}

int accept4(int listener, struct sockaddr *restrict from, socklen_t *restrict len, int flags)
{
	return forked_meanwhile((int)syscall(SYS_accept4, listener, from, len, flags));
}

static int open_beside_a_fork(int listener)
{
	bool is_inherited = true;
	pthread_t thread;
	int fd;

	opened = -1;
	has_forked = false;
	is_watching = true;
	assert_int_equal(pthread_create(&thread, NULL, fork_once_opened, &is_inherited), 0);
	fd = listener < 0 ? tti_fork_socket(AF_UNIX, SOCK_STREAM)
			  : tti_fork_accept(listener, NULL, NULL);
	is_watching = false;
	assert_true(fd >= 0);
	pthread_join(thread, NULL);
	assert_false(is_inherited);
	return fd;
}

static void no_child_comes_between(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(at.sun_family);
	int listener = open_socket(), guest = open_socket(), fd;

	(void)state;
	/* Linux gives it a name. */
	assert_int_equal(bind(listener, (const struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	len = sizeof(at);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(guest, (const struct sockaddr *)&at, len), 0);
	fd = open_beside_a_fork(-1);
	tti_fd_close(&fd);
	fd = open_beside_a_fork(listener);
	tti_fd_close(&fd);
	tti_fd_close(&listener);
	tti_fd_close(&guest);
}

static _Atomic bool stop;

static void *open_and_close(void *self)
{
	(void)self;
	while (!stop) {
		int fds[8];

		for (int i = 0; i < 8; i++)
			fds[i] = tti_fork_close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
		for (int i = 0; i < 8; i++)
			tti_fd_close(&fds[i]);
	}
	return NULL;
}

static void threads_open_and_close_beside_forks(void **state)
{
	int fd = tti_fork_close(open_socket());
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
	for (int i = 0; i < 50; i++)
		assert_false(is_open_in_a_child(fd));
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	tti_fd_close(&fd);
}

static _Atomic bool is_held;

static void *hold(void *self)
{
	(void)self;
	while (!stop) {
		tti_fork_lock();
		is_held = true;
		usleep(2000);
		is_held = false;
		tti_fork_unlock();
		usleep(100);
	}
	return NULL;
}

/* The thread that had the lock is not in the child, which would wait for ever. */
static void a_child_finds_the_lock_free(void **state)
{
	pthread_t thread;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
	for (int i = 0; i < 20; i++) {
		int status = -1;
		pid_t pid;

		while (!is_held)
			usleep(50);
		pid = fork();
		if (pid == 0) {
			alarm(60);
			tti_fork_lock();
			tti_fork_unlock();
			_exit(is_held);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	stop = true;
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_no_socket),
		cmocka_unit_test(a_child_keeps_what_got_the_number),
		cmocka_unit_test(a_lock_ends_with_the_file),
		cmocka_unit_test(a_number_is_the_new_sockets),
		cmocka_unit_test(files_take_no_memory_of_malloc),
		cmocka_unit_test(no_child_comes_between),
		cmocka_unit_test(threads_open_and_close_beside_forks),
		cmocka_unit_test(a_child_finds_the_lock_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
