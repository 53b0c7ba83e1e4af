/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/fd_pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"

bool tti_fd_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

/* Room for one descriptor beside a message. CMSG_SPACE() rounds up, and two would fit: the kernel
 * is told CMSG_LEN(), so that it installs one and drops the others. */
#define ROOM CMSG_LEN(sizeof(int))
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

tutti_status tti_fd_pass(int socket, const void *data, size_t nbytes, int fd)
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

tutti_status tti_fd_take(int socket, void *data, size_t nbytes, int *fd)
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
	return tti_fail_quiet(TUTTI_EPROTO, "it sent %zd bytes without one file", got);
}
