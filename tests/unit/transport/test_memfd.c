/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that processes pass to each other: nothing else is taken, and nothing is left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/shm/memfd.h"
#include "util/fd_pass.h"

#define NBYTES 65536u
#define WORD   UINT64_C(0x1122334455667788)

/* The number that a new file would get: it grows with each file that is left open. */
static int next_number(void)
{
	const int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void send_files(int socket, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	uint64_t word = WORD;
	struct iovec part = { .iov_base = &word, .iov_len = sizeof(word) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *header;

		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(n * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), sizeof(word));
}

static void one_file_is_taken_and_no_other_stays_open(void **state)
{
	int pair[2], fds[8], fd, before;
	uint64_t word = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(tti_memfd_create("tutti-test", NBYTES, &fds[i]), TUTTI_OK);
	before = next_number();
	for (size_t n = 0; n <= 8; n++) {
		send_files(pair[0], fds, n);
		assert_int_equal(tti_fd_take(pair[1], &word, sizeof(word), &fd),
				 n == 1 ? TUTTI_OK : TUTTI_EPROTO);
		assert_int_equal(fd >= 0, n == 1);
		if (n == 1) {
			assert_true(word == WORD);
			assert_int_equal(tti_memfd_check(fd, NBYTES), TUTTI_OK);
			close(fd);
		}
		assert_int_equal(next_number(), before);
	}
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	close(pair[0]);
	close(pair[1]);
}

static void only_sealed_files_are_shared_memory(void **state)
{
	struct stat stat;
	int fd;

	(void)state;
	assert_int_equal(tti_memfd_create("tutti-test", NBYTES, &fd), TUTTI_OK);
	assert_int_equal(tti_memfd_check(fd, NBYTES), TUTTI_OK);
	assert_int_equal(tti_memfd_check(fd, NBYTES - 1), TUTTI_EPROTO);
	close(fd);
	assert_int_equal(tti_memfd_check(fd, NBYTES), TUTTI_EPROTO);

	fd = memfd_create("tutti-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, NBYTES), 0);
	assert_int_equal(tti_memfd_check(fd, NBYTES), TUTTI_EPROTO);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(tti_memfd_check(fd, NBYTES), TUTTI_EPROTO);
	close(fd);

	/* Of a file system without seals, such as this program's mostly is, or procfs. */
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(tti_memfd_check(fd, (uint64_t)stat.st_size), TUTTI_EPROTO);
	close(fd);
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(tti_memfd_check(fd, 0), TUTTI_EPROTO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_file_is_taken_and_no_other_stays_open),
		cmocka_unit_test(only_sealed_files_are_shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
