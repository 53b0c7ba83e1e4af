/* SPDX-License-Identifier: BSD-3-Clause */
/* Heaps of other processes, mapped here.
 *
 * A rank passes its heap to the other processes of the host when it first names memory of it: it
 * connects to the socket that each rank keeps from join() on, and sends the descriptor of the file
 * of the heap. The kernel keeps the descriptor until the peer takes it, which happens when the peer
 * is first given a name in that heap. A random key, which was in the card of the sender, identifies
 * it; only descriptors of the same user are taken.
 *
 * A process maps a heap once for all its ports, with its whole address space, but without access to
 * what nobody has named yet, so that a process that locks its memory does not touch all of it. */
#include "transport/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/shm/heap.h"
#include "transport/shm/memfd.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fd_pass.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/mem.h"

/* For all heaps that a process maps: half of 47 bits of address space. */
#define HEAPS_MOST (UINT64_C(64) << 40)

#define STEP (UINT64_C(64) << 20) /* access is given in such steps */

/* What comes with the descriptor. */
struct parcel {
	uint64_t key;    /* of the rank that sends it                      */
	uint64_t number; /* of the heap                                    */
	uint64_t nbytes;
	uint64_t rank;
};

struct tti_shm_view {
	uint64_t number;
	uint64_t nbytes; /* mapped: as much as the ports may reach */
	uint8_t *base;
	_Atomic uint64_t open_bytes; /* bytes from the base on that can be accessed */
	int users;
	int pid; /* of this process: a child has this struct, but not the mapping */
};

static struct {
	TTI_VEC(struct tti_shm_view *) all;
} views;

uint64_t tti_shm_reach_bytes(uint64_t heap_bytes, int n)
{
	const uint64_t most = HEAPS_MOST / (uint64_t)n;

	return heap_bytes < most ? heap_bytes : most;
}

/* Whether the candidate is a thread of this process. */
static bool is_own(const struct tti_shm_port *port, int index)
{
	const struct tti_shm_process *own = &port->process[port->self],
				     *other = &port->process[index];

	return other->number == own->number && other->pid == own->pid;
}

/* -- Passing ---------------------------------------------------------------- */

/* Nobody of this user at the socket is no error: the candidate is not in our domain, or dead. */
static tutti_status pass_to(const struct tti_shm_process *to, const struct parcel *parcel, int file)
{
	tutti_status st;
	int fd;

	st = tti_shm_reach(to->name, &fd);
	if (st == TUTTI_AGAIN)
		return tti_fail_quiet(TUTTI_ESYS, "too many connections wait at its socket (see "
						  "net.core.somaxconn)");
	if (st == TUTTI_OK && fd >= 0)
		st = tti_fd_pass(fd, parcel, sizeof(*parcel), file);
	tti_fd_close(&fd);
	/* A rank that has left has no use for it. */
	return st == TUTTI_EPEER ? TUTTI_OK : st;
}

static tutti_status pass_to_all(const struct tti_shm_port *port)
{
	struct tti_heap_file file;
	struct parcel parcel = { .key = port->process[port->self].key,
				 .rank = (uint64_t)port->base.rank };

	if (!tti_heap_file(&file))
		return tti_fail_quiet(TUTTI_EUNSUPPORTED, "there is no heap");
	parcel.number = file.number;
	parcel.nbytes = file.nbytes;
	for (int i = 0; i < port->n; i++)
		if (!is_own(port, i))
			TTI_TRY(pass_to(&port->process[i], &parcel, file.fd));
	return TUTTI_OK;
}

bool tti_shm_pass(struct tti_shm_port *port)
{
	int passed = atomic_load_explicit(&port->passed, memory_order_acquire);

	if (passed)
		return passed > 0;
	pthread_mutex_lock(&port->ranges.lock);
	passed = atomic_load(&port->passed);
	if (!passed) {
		passed = pass_to_all(port) == TUTTI_OK ? 1 : -1;
		atomic_store_explicit(&port->passed, passed, memory_order_release);
		if (passed < 0)
			tti_log(TTI_LOG_INFO, TTI_SHM,
				"rank %d: memory of tutti_mem_alloc() cannot be reached in place: "
				"%s",
				port->base.rank, tti_error_text());
	}
	pthread_mutex_unlock(&port->ranges.lock);
	return passed > 0;
}

/* -- Views -------------------------------------------------------------------- */

static struct tti_shm_view *find_known(uint64_t number, uint64_t nbytes)
{
	for (size_t i = 0; i < views.all.n; i++) {
		struct tti_shm_view *view = views.all.at[i];

		if (view->number == number && view->nbytes >= nbytes &&
		    view->pid == tti_fork_pid()) {
			view->users++;
			return view;
		}
	}
	return NULL;
}

/* Under the lock. */
static tutti_status map_view(int fd, uint64_t number, uint64_t nbytes, struct tti_shm_view **out)
{
	struct tti_shm_view *view;
	void *base;

	*out = find_known(number, nbytes);
	if (*out)
		return TUTTI_OK;
	view = tti_zalloc(sizeof(*view));
	if (!view || !tti_vec_grow(&views.all)) {
		tti_free(view);
		return tti_fail_quiet(TUTTI_ENOMEM, "views of shared memory: out of memory");
	}
	base = mmap(NULL, nbytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		tti_free(view);
		return tti_fail_quiet(TUTTI_ESYS,
				      "mmap of %llu bytes of address space: %m (see ulimit -v; "
				      "TUTTI_SHM_HEAP makes it smaller)",
				      (unsigned long long)nbytes);
	}
	/* A child does not need it, and would keep the memory of ranks that are gone. */
	(void)madvise(base, nbytes, MADV_DONTFORK);
	(void)madvise(base, nbytes, MADV_DONTDUMP);
	*view = (struct tti_shm_view){
		.number = number,
		.nbytes = nbytes,
		.base = base,
		.users = 1,
		.pid = tti_fork_pid(),
	};
	views.all.at[views.all.n++] = view;
	*out = view;
	return TUTTI_OK;
}

static void drop_view(struct tti_shm_view *view)
{
	tti_fork_lock();
	if (--view->users == 0) {
		for (size_t i = 0; i < views.all.n; i++)
			if (views.all.at[i] == view)
				views.all.at[i] = views.all.at[--views.all.n];
		if (view->pid == tti_fork_pid())
			munmap(view->base, view->nbytes);
		tti_free(view);
	}
	tti_fork_unlock();
}

/* Give access to the first so many bytes. */
static tutti_status open_view(struct tti_shm_view *view, uint64_t nbytes)
{
	const uint64_t rounded = (nbytes + STEP - 1) / STEP * STEP;
	const uint64_t end = rounded < view->nbytes ? rounded : view->nbytes;
	tutti_status st = TUTTI_OK;

	tti_fork_lock();
	if (atomic_load(&view->open_bytes) < end) {
		if (mprotect(view->base, end, PROT_READ | PROT_WRITE))
			st = tti_fail_quiet(TUTTI_ESYS,
					    "mprotect of %llu bytes of shared memory: %m (see "
					    "vm.max_map_count)",
					    (unsigned long long)end);
		else
			atomic_store(&view->open_bytes, end);
	}
	tti_fork_unlock();
	return st;
}

/* -- Taking ------------------------------------------------------------------- */

/* The process that sent it; NULL: unknown. */
static struct tti_shm_process *find_sender(struct tti_shm_port *port, const struct parcel *parcel)
{
	const int index = parcel->rank < (uint64_t)port->base.nranks
				  ? tti_shm_find_candidate(port, (int)parcel->rank)
				  : -1;

	if (index < 0 || port->process[index].key != parcel->key || port->process[index].view)
		return NULL;
	return &port->process[index];
}

/* Takes `file`. */
static tutti_status take_parcel(struct tti_shm_port *port, const struct parcel *parcel, int file)
{
	struct tti_shm_process *sender = find_sender(port, parcel);
	const uint64_t nbytes =
		parcel->nbytes < port->reach_bytes ? parcel->nbytes : port->reach_bytes;
	tutti_status st = TUTTI_OK;

	if (sender)
		st = tti_memfd_check(file, parcel->nbytes);
	if (sender && st == TUTTI_OK) {
		tti_fork_lock();
		st = map_view(file, parcel->number, nbytes, &sender->view);
		tti_fork_unlock();
	}
	tti_fd_close(&file);
	return st;
}

/* Take a heap from a connection. TUTTI_AGAIN: nothing has come, as the sender is between connect()
 * and sendmsg(). Anything else that comes is dropped. */
static tutti_status take_one(struct tti_shm_port *port, int fd)
{
	struct parcel parcel;
	int file;
	tutti_status st = tti_fd_take(fd, &parcel, sizeof(parcel), &file);

	if (st == TUTTI_AGAIN)
		return st;
	return st == TUTTI_OK ? take_parcel(port, &parcel, file) : TUTTI_OK;
}

/* Accept connections of this user. take_all() keeps no more open than ranks can send, and drops the
 * oldest. */
static tutti_status accept_all(struct tti_shm_port *port)
{
	for (;;) {
		int fd = tti_fork_accept(port->listener, NULL, NULL);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 && errno == EAGAIN)
			return TUTTI_OK;
		if (fd < 0)
			return tti_fail_quiet(TUTTI_ESYS, "accept: %m (see ulimit -n)");
		if (!tti_fd_is_same_user(fd) || !tti_vec_grow(&port->senders)) {
			tti_fd_close(&fd);
			continue;
		}
		port->senders.at[port->senders.n++] = fd;
	}
}

static void drop_sender(struct tti_shm_port *port, size_t i)
{
	tti_fd_close(&port->senders.at[i]);
	port->senders.n--;
	memmove(port->senders.at + i, port->senders.at + i + 1,
		(port->senders.n - i) * sizeof(*port->senders.at));
}

/* Take all that has come. A heap that cannot be mapped does not stop the others; returns the first
 * error. */
static tutti_status take_all(struct tti_shm_port *port)
{
	tutti_status first = port->listener >= 0 ? accept_all(port) : TUTTI_OK;

	for (size_t i = 0; i < port->senders.n;) {
		const tutti_status st = take_one(port, port->senders.at[i]);

		if (st == TUTTI_AGAIN && port->senders.n - i <= (size_t)port->n)
			i++;
		else
			drop_sender(port, i);
		if (first == TUTTI_OK && st != TUTTI_AGAIN)
			first = st;
	}
	return first;
}

void tti_shm_views_begin(struct tti_shm_port *port)
{
	/* They are of join(): no rank passes a heap before all have joined. */
	(void)!take_all(port);
	while (port->senders.n)
		drop_sender(port, port->senders.n - 1);
}

tutti_status tti_shm_view_find(struct tti_shm_port *port, int index, uint64_t at, size_t nbytes,
			       void **out)
{
	struct tti_shm_process *process = &port->process[index];
	uint8_t *own = atomic_load(&tti_heap_place.base);
	tutti_status st = TUTTI_OK;

	if (is_own(port, index) && own && at + nbytes <= tti_heap_place.nbytes) {
		*out = own + at;
		return TUTTI_OK;
	}
	if (!process->view)
		st = take_all(port);
	if (process->view)
		st = TUTTI_OK;
	if (st == TUTTI_OK && !process->view)
		st = tti_fail_quiet(TUTTI_EPROTO, "it has not come (see ulimit -n)");
	if (st == TUTTI_OK && at + nbytes > process->view->nbytes)
		st = tti_fail_quiet(TUTTI_EPROTO, "there are no %zu bytes at %llu in it", nbytes,
				    (unsigned long long)at);
	if (st == TUTTI_OK &&
	    at + nbytes > atomic_load_explicit(&process->view->open_bytes, memory_order_relaxed))
		st = open_view(process->view, at + nbytes);
	if (st != TUTTI_OK)
		return tti_shm_fail(port, st, port->candidate[index], "reaching the memory of");
	*out = process->view->base + at;
	return TUTTI_OK;
}

void tti_shm_views_release(struct tti_shm_port *port)
{
	for (int i = 0; i < port->n && port->process; i++)
		if (port->process[i].view)
			drop_view(port->process[i].view);
	while (port->senders.n)
		drop_sender(port, port->senders.n - 1);
	tti_vec_release(&port->senders);
}
