/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that has memory and gives handles of it, as another one asks it to. */
#ifndef TESTS_CUDAHOST_OWNER_H
#define TESTS_CUDAHOST_OWNER_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "alone.h"
#include "engine/memory.h"

enum order { ALLOC, FREE, FILL, PEEK, FILE_GONE, FILE_IS_FIFO, FILE_IS_OTHER, HIDE, ALLOC_INSIDE };

struct request {
	enum order order;
	uint64_t nbytes;
	uint32_t slot;
	char byte;
};

struct reply {
	uint8_t handle[64];
	char byte;
	int file;
};

struct owner {
	pid_t pid;
	int socket;
	int theirs;
	uid_t user; /* not 0: become this one */
};

static inline void replace_file(int file, enum order order)
{
	int other = -1;

	close(file);
	if (order == FILE_IS_FIFO) {
		int ends[2];

		CHECK(pipe(ends) == 0);
		other = ends[0];
	} else if (order == FILE_IS_OTHER) {
		other = memfd_create("tutti_cudahost_device0", MFD_ALLOW_SEALING);
		CHECK(ftruncate(other, 64 << 20) == 0);
		CHECK(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
	}
	if (other >= 0 && other != file)
		CHECK(dup2(other, file) == file);
}

static inline void serve(const struct request *request, char **at, struct reply *reply)
{
	int files[16];

	switch (request->order) {
	case ALLOC:
	case ALLOC_INSIDE:
		GOOD(tti_cuda_memory_alloc(request->nbytes, (void **)at));
		memset(tti_cuda_memory_reach(*at), request->byte, request->nbytes);
		GOOD(tti_cuda_memory_get_handle(
			*at + (request->order == ALLOC_INSIDE ? request->nbytes / 2 : 0),
			reply->handle));
		break;
	case FREE:
		GOOD(tti_cuda_memory_free(*at));
		break;
	case FILL:
		memset(tti_cuda_memory_reach(*at), request->byte, request->nbytes);
		break;
	case PEEK:
		reply->byte = *(char *)tti_cuda_memory_reach(*at + request->nbytes - 1);
		break;
	case FILE_GONE:
	case FILE_IS_FIFO:
	case FILE_IS_OTHER:
		CHECK(alone_files(files) == 1);
		replace_file(files[0], request->order);
		break;
	case HIDE:
		CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
		break;
	}
}

static inline void owner_body(void *arg)
{
	const struct owner *const self = arg;
	struct request request;
	char *slots[64] = { NULL };

	close(self->socket);
	if (self->user) {
		CHECK(setresuid(self->user, self->user, self->user) == 0);
		CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	}
	while (recv(self->theirs, &request, sizeof(request), MSG_WAITALL) ==
	       (ssize_t)sizeof(request)) {
		struct reply reply = { .file = -1 };

		serve(&request, &slots[request.slot], &reply);
		alone_send(self->theirs, &reply, sizeof(reply));
	}
	_exit(0);
}

static inline struct owner start_owner(uid_t user)
{
	struct owner owner = { .user = user };
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	owner.socket = ends[0];
	owner.theirs = ends[1];
	owner.pid = alone_start(owner_body, &owner);
	close(owner.theirs);
	return owner;
}

static inline struct reply ask(const struct owner *owner, struct request request)
{
	struct reply reply;

	alone_send(owner->socket, &request, sizeof(request));
	alone_recv(owner->socket, &reply, sizeof(reply));
	return reply;
}

static inline void end_owner(struct owner *owner)
{
	close(owner->socket);
	CHECK(alone_wait(owner->pid) == 0);
}

static inline void kill_owner(struct owner *owner)
{
	CHECK(kill(owner->pid, SIGKILL) == 0 && alone_wait(owner->pid) == 128 + SIGKILL);
	close(owner->socket);
}

#endif
