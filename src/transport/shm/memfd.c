/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Growing a file past RLIMIT_FSIZE would be a deadly signal. */
static tutti_status check_limit(uint64_t nbytes)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < nbytes)
		return tti_fail_quiet(
			TUTTI_ESYS,
			"shared memory is a sparse file of %llu bytes, the limit on file "
			"sizes is %llu: raise it (ulimit -f)",
			(unsigned long long)nbytes, (unsigned long long)limit.rlim_cur);
	return TUTTI_OK;
}

static int open_memfd(const char *name)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	if (tti_fault("shm.memfd")) {
		errno = ENFILE;
		return -1;
	}
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	return fd;
}

tutti_status tti_memfd_create(const char *name, uint64_t nbytes, int *out)
{
	tutti_status st;
	int fd;

	TTI_TRY(check_limit(nbytes));
	fd = open_memfd(name);
	if (fd < 0)
		return tti_fail_quiet(TUTTI_ESYS, "memfd_create for shared memory: %m");
	if (ftruncate(fd, (off_t)nbytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		st = tti_fail_quiet(TUTTI_ESYS, "sizing shared memory to %llu bytes: %m",
				    (unsigned long long)nbytes);
		tti_fd_close(&fd);
		return st;
	}
	*out = fd;
	return TUTTI_OK;
}

tutti_status tti_memfd_check(int fd, uint64_t nbytes)
{
	const int seals = fcntl(fd, F_GET_SEALS); /* -1: the file system has none */
	struct stat stat;

	if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size != nbytes || seals < 0 ||
	    (seals & SEALS) != SEALS)
		return tti_fail_quiet(
			TUTTI_EPROTO,
			"the shared memory offered is not a sealed file of %llu bytes",
			(unsigned long long)nbytes);
	return TUTTI_OK;
}

/* Room for one descriptor beside a message. CMSG_SPACE() rounds up, and two would fit: the kernel
 * is told CMSG_LEN(), so that it installs one and drops the others. */
#define ROOM CMSG_LEN(sizeof(int))
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

tutti_status tti_memfd_send(int socket, const void *data, size_t nbytes, int fd)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = nbytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	struct cmsghdr *const header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (sendmsg(socket, &message, MSG_NOSIGNAL) != (ssize_t)nbytes)
		return tti_fail_quiet(errno == EPIPE || errno == ECONNRESET ? TUTTI_EPEER
									    : TUTTI_ESYS,
				      "passing a file descriptor: %m");
	return TUTTI_OK;
}

tutti_status tti_memfd_recv(int socket, void *data, size_t nbytes, int *fd)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = data, .iov_len = nbytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = ROOM };
	const struct cmsghdr *header;
	ssize_t got;

	*fd = -1;
	got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return TUTTI_AGAIN;
	if (got < 0 && errno != ECONNRESET)
		return tti_fail_quiet(TUTTI_ESYS, "receiving a file descriptor: %m");
	if (got <= 0)
		return tti_fail_quiet(TUTTI_EPEER, "it closed the connection");
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(header), sizeof(int));
	if (got == (ssize_t)nbytes && *fd >= 0 && !(message.msg_flags & MSG_CTRUNC))
		return TUTTI_OK;
	/* A descriptor that we had no number free for is left out, and said so. */
	if (*fd < 0 && message.msg_flags & MSG_CTRUNC)
		return tti_fail_quiet(TUTTI_ESYS, "no file descriptor is free, raise ulimit -n");
	tti_fd_close(fd);
	return tti_fail_quiet(TUTTI_EPROTO, "it sent %zd bytes without one file of shared memory",
			      got);
}
