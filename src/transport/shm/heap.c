/* SPDX-License-Identifier: BSD-3-Clause */
/* One sparse file, mapped in one piece of address space without access, so that an address is an
 * offset in the file. Allocated memory is made accessible; freed memory is punched out of the file
 * and made inaccessible. Core dumps leave the mapping out, since they would have to touch all of
 * it. */
#include "transport/shm/heap.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/shm/memfd.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/params.h"
#include "util/runs.h"
#include "util/sanitizer.h"
#include "util/vec.h"

#define GRAIN       TTI_HEAP_GRAIN
#define LEAST_BYTES (UINT64_C(1) << 30) /* where address space is scarce, as much is tried */
/* ThreadSanitizer leaves programs little address space. */
#define MOST_BYTES  (TTI_SANITIZED ? UINT64_C(64) << 30 : (uint64_t)TTI_RUNS_MOST * GRAIN)

struct range {
	uint8_t *base;
	uint64_t nbytes;
};

struct ranges {
	struct range *at;
	size_t n, room;
};

struct tti_heap_place tti_heap_place;

static struct {
	pthread_mutex_t lock;
	bool is_tried, is_watched; /* of forks */
	int fd;
	uint64_t number;
	struct tti_runs runs;
	struct ranges copied;    /* allocated here, and copied when this process forks       */
	struct ranges plain;     /* of the kernel's, as there was no heap                    */
	struct ranges inherited; /* heaps of processes that this one descends from: room for
				    one more                                               */
	int copy; /* while this process forks: a file as long, with what is copied; -1:
				    there is nothing to copy, or it failed                */
	bool copy_failed;
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .copy = -1 };

/* -- Forks ------------------------------------------------------------------- */

/* Copy the data of a part of the file of the heap to the same place of another file. */
static bool copy_data(const struct range *range, const uint8_t *base, int to)
{
	const off_t end = (off_t)(range->base - base) + (off_t)range->nbytes;
	off_t at = (off_t)(range->base - base);

	while (at < end) {
		const off_t data = lseek(heap.fd, at, SEEK_DATA);
		off_t hole = data < 0 ? end : lseek(heap.fd, data, SEEK_HOLE);

		if (data < 0 || data >= end)
			return true;
		hole = hole < end ? hole : end;
		for (at = data; at < hole;) {
			const ssize_t done = pwrite(to, base + at, (size_t)(hole - at), at);

			if (done <= 0)
				return false;
			at += done;
		}
	}
	return true;
}

static tutti_status copy_all(void)
{
	const uint8_t *base = atomic_load(&tti_heap_place.base);

	TTI_TRY(tti_memfd_create("tutti-copy", tti_heap_place.nbytes, &heap.copy));
	for (size_t i = 0; i < heap.copied.n; i++)
		if (!copy_data(&heap.copied.at[i], base, heap.copy))
			return tti_fail_quiet(TUTTI_ESYS, "%m");
	return TUTTI_OK;
}

static void before_fork(void)
{
	pthread_mutex_lock(&heap.lock);
	heap.copy_failed = heap.copied.n && copy_all() != TUTTI_OK;
	if (heap.copy_failed)
		tti_fd_close(&heap.copy);
}

static void in_parent(void)
{
	const bool failed = heap.copy_failed;

	tti_fd_close(&heap.copy);
	pthread_mutex_unlock(&heap.lock);
	if (failed)
		tti_log(TTI_LOG_WARN, TTI_SHM,
			"copying memory for a child of this process: %s: the child has none of it, "
			"and dies if it looks at it",
			tti_error_text());
}

/* Only what may be called between fork() and exec(). What could not be copied is taken away:
 * written to, it would change the parent's. */
static void in_child(void)
{
	uint8_t *base = atomic_load(&tti_heap_place.base);

	for (size_t i = 0; i < heap.copied.n; i++) {
		const struct range *range = &heap.copied.at[i];

		if (heap.copy < 0 || mmap(range->base, range->nbytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, heap.copy,
					  range->base - base) == MAP_FAILED)
			(void)mmap(range->base, range->nbytes, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
	if (heap.copy >= 0)
		close(heap.copy);
	if (heap.fd >= 0)
		close(heap.fd);
	heap.copy = heap.fd = -1;
	heap.copied.n = 0;
	if (base) {
		heap.inherited.at[heap.inherited.n++] =
			(struct range){ base, tti_heap_place.nbytes };
		tti_runs_release(&heap.runs);
	}
	atomic_store(&tti_heap_place.base, NULL);
	heap.is_tried = false;
	pthread_mutex_unlock(&heap.lock);
}

/* -- Making one ---------------------------------------------------------------- */

uint64_t tti_heap_limit(uint64_t wanted_bytes)
{
	static const __rlimit_resource_t which[] = { RLIMIT_FSIZE, RLIMIT_AS };

	for (int i = 0; i < 2; i++) {
		struct rlimit limit;

		if (getrlimit(which[i], &limit) || limit.rlim_cur != RLIM_INFINITY)
			return 0;
	}
	return wanted_bytes < MOST_BYTES ? wanted_bytes : MOST_BYTES;
}

static void *reserve(int fd, uint64_t nbytes)
{
	void *base = mmap(NULL, nbytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base != MAP_FAILED)
		(void)madvise(base, nbytes, MADV_DONTDUMP);
	return base;
}

/* Under the lock. */
static tutti_status create(uint64_t nbytes)
{
	uint8_t *base;

	if (getrandom(&heap.number, sizeof(heap.number), 0) != (ssize_t)sizeof(heap.number))
		return tti_fail_quiet(TUTTI_ESYS, "getrandom: %m");
	TTI_TRY(tti_memfd_create("tutti-heap", nbytes, &heap.fd));
	base = reserve(heap.fd, nbytes);
	if (base == MAP_FAILED || !tti_vec_grow(&heap.inherited)) {
		const tutti_status st = tti_fail_quiet(
			TUTTI_ESYS, "address space of %llu bytes for shared memory: %m",
			(unsigned long long)nbytes);

		if (base != MAP_FAILED)
			munmap(base, nbytes);
		tti_fd_close(&heap.fd);
		return st;
	}
	tti_runs_init(&heap.runs, (uint32_t)(nbytes / GRAIN));
	tti_heap_place.nbytes = nbytes;
	atomic_store_explicit(&tti_heap_place.base, base, memory_order_release);
	return TUTTI_OK;
}

/* Under the lock. Whether there is a heap; if there can be one there is. */
static bool has_heap(void)
{
	const size_t wanted = tti_params()->shm_heap;
	tutti_status st = TUTTI_EUNSUPPORTED;
	uint64_t nbytes;

	if (heap.is_tried)
		return heap.fd >= 0;
	heap.is_tried = true;
	/* Its handlers lock what closing a file needs, and ours close one: they are to run outside
	 * of its, and so to be registered later. */
	tti_fork_watch();
	if (!heap.is_watched)
		heap.is_watched = !pthread_atfork(before_fork, in_parent, in_child);
	nbytes = heap.is_watched ? tti_heap_limit(wanted) / GRAIN * GRAIN : 0;
	while (nbytes && st != TUTTI_OK) {
		st = create(nbytes);
		nbytes = nbytes / 2 < LEAST_BYTES ? 0 : nbytes / 2 / GRAIN * GRAIN;
	}
	if (st == TUTTI_OK)
		return true;
	tti_log(TTI_LOG_INFO, TTI_SHM, "memory of tutti_mem_alloc() cannot be reached in place: %s",
		st == TUTTI_EUNSUPPORTED
			? "TUTTI_SHM_HEAP, or a limit on address space or file sizes (ulimit -v, "
			  "-f), forbids it"
			: tti_error_text());
	return false;
}

/* -- Allocating ---------------------------------------------------------------- */

static tutti_status alloc_plain(size_t nbytes, void **out)
{
	void *fresh;

	if (!tti_vec_grow(&heap.plain))
		return tti_fail_quiet(TUTTI_ENOMEM, "list of allocations: out of memory");
	fresh = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		return tti_fail_quiet(TUTTI_ENOMEM, "mmap of %zu bytes: %m", nbytes);
	heap.plain.at[heap.plain.n++] = (struct range){ fresh, nbytes };
	*out = fresh;
	return TUTTI_OK;
}

static tutti_status alloc_shared(size_t nbytes, void **out)
{
	const uint64_t limit = tti_heap_place.nbytes;
	const size_t grains = nbytes / GRAIN + (nbytes % GRAIN != 0);
	uint32_t first = TTI_RUNS_NONE;
	bool is_dirty;
	uint8_t *at;

	if (grains < TTI_RUNS_MOST)
		first = tti_runs_take(&heap.runs, (uint32_t)grains, 1, &is_dirty);
	if (first == TTI_RUNS_NONE)
		return tti_fail_quiet(
			TUTTI_ENOMEM,
			"%zu bytes do not fit into the %llu that a process can share: "
			"raise TUTTI_SHM_HEAP",
			nbytes, (unsigned long long)limit);
	at = atomic_load(&tti_heap_place.base) + (uint64_t)first * GRAIN;
	if (mprotect(at, (uint64_t)grains * GRAIN, PROT_READ | PROT_WRITE)) {
		tti_runs_give(&heap.runs, first, false);
		return tti_fail_quiet(TUTTI_ENOMEM,
				      "mprotect of %zu bytes of shared memory: %m (see "
				      "vm.max_map_count)",
				      nbytes);
	}
	*out = at;
	return TUTTI_OK;
}

tutti_status tti_heap_alloc(size_t nbytes, void **out)
{
	tutti_status st;

	pthread_mutex_lock(&heap.lock);
	st = has_heap() ? alloc_shared(nbytes, out) : alloc_plain(nbytes, out);
	pthread_mutex_unlock(&heap.lock);
	return st;
}

/* Of a list, by its address; n: it is none of it. */
static size_t find(const struct ranges *list, const void *memory)
{
	size_t i = 0;

	while (i < list->n && list->at[i].base != memory)
		i++;
	return i;
}

static bool is_inherited(const void *memory)
{
	for (size_t i = 0; i < heap.inherited.n; i++)
		if ((uintptr_t)memory - (uintptr_t)heap.inherited.at[i].base <
		    heap.inherited.at[i].nbytes)
			return true;
	return false;
}

/* Bytes of what was allocated there of this heap; 0: nothing was. */
static uint64_t bytes_of(const void *memory, uint32_t *first)
{
	uint64_t at;

	if (!tti_heap_find(memory, 1, &at) || at % GRAIN)
		return 0;
	*first = (uint32_t)(at / GRAIN);
	return (uint64_t)tti_runs_units(&heap.runs, *first) * GRAIN;
}

static void free_shared(uint8_t *memory, uint64_t nbytes, uint32_t first)
{
	const size_t place = find(&heap.copied, memory);

	if (place < heap.copied.n)
		heap.copied.at[place] = heap.copied.at[--heap.copied.n];
	/* What is given out again must be zero. */
	if (fallocate(heap.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first * GRAIN,
		      (off_t)nbytes))
		memset(memory, 0, nbytes);
	(void)mprotect(memory, nbytes, PROT_NONE);
	tti_runs_give(&heap.runs, first, false);
}

/* Under the lock. */
static tutti_status release(void *memory)
{
	const size_t plain = find(&heap.plain, memory);
	uint32_t first = 0;
	const uint64_t nbytes = bytes_of(memory, &first);

	if (nbytes) {
		free_shared(memory, nbytes, first);
	} else if (plain < heap.plain.n) {
		munmap(memory, heap.plain.at[plain].nbytes);
		heap.plain.at[plain] = heap.plain.at[--heap.plain.n];
	} else if (!is_inherited(memory)) {
		return tti_fail_quiet(TUTTI_EINVAL, "%p was not allocated here", memory);
	}
	return TUTTI_OK;
}

tutti_status tti_heap_free(void *memory)
{
	tutti_status st;

	pthread_mutex_lock(&heap.lock);
	st = release(memory);
	pthread_mutex_unlock(&heap.lock);
	return st;
}

/* Under the lock. */
static tutti_status will_copy(void *memory)
{
	uint32_t first = 0;
	const uint64_t nbytes = bytes_of(memory, &first);
	const struct range range = { memory, nbytes };

	if (nbytes)
		return find(&heap.copied, memory) < heap.copied.n ||
				       tti_vec_push(&heap.copied, range)
			       ? TUTTI_OK
			       : tti_fail_quiet(TUTTI_ENOMEM, "list of allocations: out of memory");
	if (find(&heap.plain, memory) < heap.plain.n || is_inherited(memory))
		return TUTTI_OK;
	return tti_fail_quiet(TUTTI_EINVAL, "%p was not allocated here", memory);
}

tutti_status tti_heap_copy_on_fork(void *memory)
{
	tutti_status st;

	pthread_mutex_lock(&heap.lock);
	st = will_copy(memory);
	pthread_mutex_unlock(&heap.lock);
	return st;
}

bool tti_heap_file(struct tti_heap_file *out)
{
	pthread_mutex_lock(&heap.lock);
	*out = (struct tti_heap_file){ heap.fd, tti_heap_place.nbytes, heap.number };
	pthread_mutex_unlock(&heap.lock);
	return out->fd >= 0;
}
