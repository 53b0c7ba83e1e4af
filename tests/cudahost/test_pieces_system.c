/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of memory in other processes, and when calls of the system fail. */
#include "mapped.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "system_faults.h"

/* -- Other processes ---------------------------------------------------------------------- */

static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { &(char){ 0 }, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	struct cmsghdr *const header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	CHECK(sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

static int recv_fd(int socket)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	int fd;

	CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static void exporter_body(void *arg)
{
	const int socket = *(const int *)arg;
	struct tti_cuda_piece *piece;
	char *at;
	int fd;

	at = map_new(UNIT, &piece);
	memset(at, 6, UNIT);
	GOOD(tti_cuda_piece_export(piece, &fd));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	send_fd(socket, fd);
	close(fd);
	(void)pause(); /* until it is killed */
}

static void import_body(void *arg)
{
	struct tti_cuda_piece *piece;
	size_t nfree;
	size_t total;
	int ends[2];
	pid_t pid;
	char *at;
	int fd;

	(void)arg;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	pid = alone_start(exporter_body, &ends[1]);
	fd = recv_fd(ends[0]);
	GOOD(tti_cuda_piece_import(fd, &piece));
	CHECK(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	CHECK(tti_cuda_piece_bytes(piece) == UNIT && tti_cuda_piece_device(piece) == 0);
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == total); /* it is the other's */
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, (void **)&at));
	GOOD(tti_cuda_address_map(at, UNIT, 0, piece));
	GOOD(tti_cuda_address_allow(at, UNIT, 3, TTI_CUDA_ALL_DEVICES));
	CHECK(at[0] == 6 && at[UNIT - 1] == 6);
	CHECK(kill(pid, SIGKILL) == 0 && alone_wait(pid) == 128 + SIGKILL);
	memset(at, 7, UNIT);
	CHECK(at[UNIT - 1] == 7);
	GOOD(tti_cuda_piece_release(piece));
	unmap_all(at, UNIT);
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void an_exported_piece_outlives_its_process(void **state)
{
	(void)state;
	alone_run(import_body, NULL);
}

static void shrink_body(void *arg)
{
	struct tti_cuda_piece *piece;
	struct tti_cuda_piece *other;
	char *at;
	int fd;

	(void)arg;
	at = map_new(UNIT, &piece);
	GOOD(tti_cuda_piece_export(piece, &fd));
	CHECK(ftruncate(fd, 0) < 0 && errno == EPERM);
	at[UNIT - 1] = 1;
	GOOD(tti_cuda_piece_import(fd, &other)); /* in the same process, too */
	GOOD(tti_cuda_piece_release(other));
	close(fd);
	unmap_all(at, UNIT);
	GOOD(tti_cuda_piece_release(piece));
}

static void an_exported_piece_cannot_be_cut(void **state)
{
	(void)state;
	alone_run(shrink_body, NULL);
}

static void foreign_body(void *arg)
{
	char path[] = "/tmp/tutti_test_pieces_XXXXXX";
	const int plain = mkstemp(path);
	const int memory = memfd_create("tutti_cudahost_piece0", MFD_ALLOW_SEALING);
	struct tti_cuda_piece *piece;
	int files[16];
	int ends[2];
	void *at;

	(void)arg;
	CHECK(plain >= 0 && unlink(path) == 0 && memory >= 0 && pipe(ends) == 0);
	FAILS(TTI_CUDA_EINVAL, "Bad file descriptor", tti_cuda_piece_import(-1, &piece));
	FAILS(TTI_CUDA_EINVAL, "Bad file descriptor", tti_cuda_piece_import(1000, &piece));
	CHECK(ftruncate(plain, 4 * (off_t)UNIT) == 0 && ftruncate(memory, 4 * (off_t)UNIT) == 0);
	FAILS(TTI_CUDA_EINVAL, "not an exported piece", tti_cuda_piece_import(plain, &piece));
	FAILS(TTI_CUDA_EINVAL, "not an exported piece", tti_cuda_piece_import(ends[0], &piece));
	FAILS(TTI_CUDA_EINVAL, "not an exported piece", tti_cuda_piece_import(memory, &piece));
	CHECK(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
	FAILS(TTI_CUDA_EINVAL, "not an exported piece", tti_cuda_piece_import(memory, &piece));
	close(memory);
	GOOD(tti_cuda_memory_alloc(1, &at));
	CHECK(alone_files(files) == 1);
	FAILS(TTI_CUDA_EINVAL, "not an exported piece", tti_cuda_piece_import(files[0], &piece));
	GOOD(tti_cuda_memory_free(at));
	CHECK(alone_nfiles() == 1);
	close(plain);
	close(ends[0]);
	close(ends[1]);
}

static void only_an_exported_piece_is_imported(void **state)
{
	(void)state;
	alone_run(foreign_body, NULL);
}

static void child_body(void *arg)
{
	struct tti_cuda_piece *piece;

	CHECK(!alone_can_access(arg, false));
	CHECK(alone_nfiles() == 0 && alone_maps() == 0);
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_piece_create(UNIT, 0, &piece));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_address_unmap(arg, UNIT));
	_exit(0);
}

static void fork_body(void *arg)
{
	struct tti_cuda_piece *piece;
	char *at;

	(void)arg;
	at = map_new(UNIT, &piece);
	at[5] = 5;
	CHECK(alone_wait(alone_start(child_body, at)) == 0);
	CHECK(at[5] == 5);
	unmap_all(at, UNIT);
	GOOD(tti_cuda_piece_release(piece));
}

static void a_forked_child_has_no_pieces(void **state)
{
	(void)state;
	alone_run(fork_body, NULL);
}

/* -- Failures of the system --------------------------------------------------------------- */

static void map_fault_body(void *arg)
{
	struct tti_cuda_piece *piece;
	struct tti_cuda_range range;
	int fd;
	char *at;

	(void)arg;
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, (void **)&at));
	GOOD(tti_cuda_piece_create(UNIT, 0, &piece));
	if (!system_fails(SYS_mmap, 3, MAP_SHARED | MAP_FIXED, MAP_SHARED | MAP_FIXED, ENOMEM) ||
	    !system_fails(SYS_fcntl, 1, ~0u, F_DUPFD_CLOEXEC, EMFILE) ||
	    !system_fails(SYS_memfd_create, 0, 0, 0, EMFILE))
		_exit(ALONE_UNTESTED);
	FAILS(TTI_CUDA_ENOMEM, "vm.max_map_count", tti_cuda_address_map(at, UNIT, 0, piece));
	CHECK(!tti_cuda_memory_find(at, &range) && !alone_can_access(at, false));
	FAILS(TTI_CUDA_ESYS, "ulimit -n", tti_cuda_piece_export(piece, &fd));
	FAILS(TTI_CUDA_ESYS, "ulimit -n", tti_cuda_piece_import(0, &piece));
	GOOD(tti_cuda_address_free(at, UNIT));
	GOOD(tti_cuda_piece_release(piece));
	FAILS(TTI_CUDA_ESYS, "ulimit -n", tti_cuda_piece_create(UNIT, 0, &piece));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	_exit(0);
}

static void failing_calls_leave_nothing_mapped(void **state)
{
	(void)state;
	alone_run(map_fault_body, NULL);
}

static void closed_body(void *arg)
{
	struct tti_cuda_piece *piece;
	int files[16];
	void *at;
	int fd;

	(void)arg;
	GOOD(tti_cuda_piece_create(UNIT, 0, &piece));
	GOOD(tti_cuda_address_reserve(UNIT, 0, NULL, &at));
	CHECK(alone_files(files) == 1 && dup2(0, files[0]) == files[0]);
	FAILS(TTI_CUDA_EINVAL, "has closed file descriptor", tti_cuda_piece_export(piece, &fd));
	FAILS(TTI_CUDA_EINVAL, "has closed file descriptor",
	      tti_cuda_address_map(at, UNIT, 0, piece));
	GOOD(tti_cuda_piece_release(piece));
	CHECK(fcntl(files[0], F_GETFD) >= 0); /* the program's */
	GOOD(tti_cuda_address_free(at, UNIT));
}

static void a_piece_whose_file_was_closed_is_an_error(void **state)
{
	(void)state;
	alone_run(closed_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exported_piece_outlives_its_process),
		cmocka_unit_test(an_exported_piece_cannot_be_cut),
		cmocka_unit_test(only_an_exported_piece_is_imported),
		cmocka_unit_test(a_forked_child_has_no_pieces),
		cmocka_unit_test(failing_calls_leave_nothing_mapped),
		cmocka_unit_test(a_piece_whose_file_was_closed_is_an_error),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
