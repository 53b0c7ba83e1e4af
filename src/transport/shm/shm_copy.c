/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of another process, copied by the kernel (process_vm_readv(2), process_vm_writev(2)).
 *
 * The kernel knows a process by its id, and may give the id of a process that has ended to another
 * one. So that no other process is ever read or written, each process keeps a random number at an
 * address that is in its card: a process that has the number there is the right one. The number is
 * checked before the first copy, and again when that was more than FOUND_NS ago. In between this
 * relies on Linux, which hands out ids in turn: an id comes back only after all others
 * (kernel.pid_max, by default 32768 or 1024 for each processor), so not within some
 * milliseconds. */
#include "transport/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "util/clock.h"
#include "util/error.h"

#define FOUND_NS (10 * TTI_NS_PER_MS)

enum direction { READ, WRITE };

/* What the caller asked for, to name it in errors. */
struct request {
	enum direction direction;
	int peer;
	void *here;
	uint64_t there;
	size_t nbytes;
};

/* Copy all of it; false: errno. The kernel stops early at a page that it cannot access, and at 2
 * GiB; asked for the rest, it says why. */
static bool copy_all(const struct tti_shm_process *process, const struct request *request)
{
	size_t done = 0;

	while (done < request->nbytes) {
		const struct iovec here = { .iov_base = (char *)request->here + done,
					    .iov_len = request->nbytes - done };
		const struct iovec there = { .iov_base = (void *)(uintptr_t)(request->there + done),
					     .iov_len = request->nbytes - done };
		const pid_t pid = (pid_t)process->pid;
		const ssize_t got = request->direction == READ
					    ? process_vm_readv(pid, &here, 1, &there, 1, 0)
					    : process_vm_writev(pid, &here, 1, &there, 1, 0);

		if (got < 0)
			return false;
		if (got == 0) {
			errno = EFAULT;
			return false;
		}
		done += (size_t)got;
	}
	return true;
}

/* The error of a copy, from errno. */
static tutti_status explain(const struct tti_shm_port *port, const struct tti_shm_process *process,
			    const struct request *request)
{
	const bool reads = request->direction == READ;
	const char *what = reads ? "reading" : "writing";
	const int rank = port->base.rank, peer = request->peer;
	const unsigned long long there = request->there;

	switch (errno) {
	case EFAULT:
		return tti_fail(
			TUTTI_EINVAL,
			"shared memory, rank %d, %s %zu bytes at 0x%llx of rank %d: not all "
			"of them are memory that may be %s there, or those at %p here are "
			"not: check that the buffers of both ranks are as long as the call "
			"says",
			rank, what, request->nbytes, there, peer, reads ? "read" : "written",
			request->here);
	case ESRCH:
		return tti_fail(TUTTI_EPEER,
				"shared memory, rank %d, %s %zu bytes at 0x%llx of rank %d: its "
				"process %u is gone: see why it ended",
				rank, what, request->nbytes, there, peer, process->pid);
	default:
		return tti_fail(
			TUTTI_ESYS,
			"shared memory, rank %d, %s %zu bytes at 0x%llx of rank %d, process "
			"%u: %m: if the kernel no longer lets the ranks copy from each "
			"other, do without (TUTTI_REACH=slots)",
			rank, what, request->nbytes, there, peer, process->pid);
	}
}

int tti_shm_copy_quietly(const struct tti_shm_process *process, void *to, uint64_t from,
			 size_t nbytes)
{
	const struct request request = {
		.direction = READ, .here = to, .there = from, .nbytes = nbytes
	};

	return copy_all(process, &request) ? 0 : errno;
}

/* All ranks that try write the same number. */
int tti_shm_copy_try(const struct tti_shm_port *port, int index)
{
	const struct tti_shm_process *process = &port->process[index];
	const uint64_t word_at = process->number_at + sizeof(uint64_t);
	uint64_t number = 0, word = process->number;
	const struct request write = {
		.direction = WRITE, .here = &word, .there = word_at, .nbytes = sizeof(word)
	};
	int error;

	if (process->pid_ns != port->process[port->self].pid_ns)
		return ESRCH;
	error = tti_shm_copy_quietly(process, &number, process->number_at, sizeof(number));
	/* A process without that address is another one. */
	if (error == EFAULT || (!error && (!number || number != process->number)))
		return ESRCH;
	if (!error && !copy_all(process, &write))
		error = errno;
	word = 0;
	if (!error)
		error = tti_shm_copy_quietly(process, &word, word_at, sizeof(word));
	return !error && word != number ? EIO : error;
}

/* Check that the process with that id is the one of the peer. */
static tutti_status find_process(const struct tti_shm_port *port, struct tti_shm_process *process,
				 const struct request *request)
{
	const int64_t now_ns = tti_now_ns();
	uint64_t number = 0;
	int error;

	if (process->found_ns && now_ns - process->found_ns < FOUND_NS)
		return TUTTI_OK;
	error = tti_shm_copy_quietly(process, &number, process->number_at, sizeof(number));
	/* A process without that address is another one. */
	if (error && error != EFAULT)
		return explain(port, process, request);
	if (!process->number || number != process->number)
		return tti_fail(TUTTI_EPEER,
				"shared memory, rank %d: process %u is not that of rank %d, which "
				"has ended, or has its id in another pid namespace: see why it "
				"ended, or do without copies by the kernel (TUTTI_REACH=slots)",
				port->base.rank, process->pid, request->peer);
	process->found_ns = now_ns;
	return TUTTI_OK;
}

static tutti_status copy(struct tti_port *base, const struct request *request)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	const int index = tti_shm_find_candidate(port, request->peer);

	if (index < 0)
		return tti_fail(TUTTI_EINVAL, "rank %d shares no memory with rank %d", base->rank,
				request->peer);
	TTI_TRY(find_process(port, &port->process[index], request));
	return copy_all(&port->process[index], request)
		       ? TUTTI_OK
		       : explain(port, &port->process[index], request);
}

tutti_status tti_shm_copy_from(struct tti_port *port, int peer, void *to, uint64_t from,
			       size_t nbytes)
{
	return copy(port, &(struct request){ READ, peer, to, from, nbytes });
}

tutti_status tti_shm_copy_to(struct tti_port *port, int peer, uint64_t to, const void *from,
			     size_t nbytes)
{
	/* It is only read. */
	return copy(port, &(struct request){ WRITE, peer, (void *)(uintptr_t)from, to, nbytes });
}
