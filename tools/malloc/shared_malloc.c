/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload (LD_PRELOAD; `tutti run --shared-malloc`): malloc() takes large allocations of a
 * program from the heap of its process, which the other ranks of the host can address, so that
 * collectives on them move each byte once. All else is the C library's malloc, which is glibc's; it also
 * serves what the arena has no room for.
 *
 * The arena is one allocation of tutti_mem_alloc(), address space that costs nothing until it is
 * touched. Which units of it are in use is kept by util/runs.h. Freed units keep their pages for the
 * next allocation until they are DIRTY_MOST bytes in all; then the pages are returned to the system.
 * Only what was ever in use is accessible, so that a program that locks its memory locks no more.
 *
 * A forked child has a copy of what is allocated (tutti_mem_copy_on_fork()), which is private memory.
 * Other ranks cannot address a child's memory, so what it allocates is the C library's. Children that
 * are made without handlers of pthread_atfork() (_Fork(), clone()) share the arena with their parent:
 * such a child may do nothing but call exec().
 *
 * Threads: any. One lock, held while a process forks; the thread that forks may allocate meanwhile. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tutti/inspect.h"
#include "tutti/memory.h"
#include "util/param_parse.h"
#include "util/runs.h"

#define UNIT        65536u
#define ALIGN       (UINT64_C(2) << 20)  /* of the arena: a huge page */
#define STEP        (UINT64_C(64) << 20) /* access is given in such steps */
#define DIRTY_MOST  (UINT64_C(64) << 20)
#define LEAST_BYTES (UINT64_C(1) << 30) /* of an arena that is of any use */

#define EXPORT __attribute__((visibility("default")))

/* The C library's own, under the names that it has for such as this one. */
extern void *__libc_malloc(size_t nbytes);
extern void *__libc_calloc(size_t count, size_t nbytes);
extern void *__libc_realloc(void *old, size_t nbytes);
extern void *__libc_memalign(size_t align, size_t nbytes);
extern void __libc_free(void *memory);

static struct {
	pthread_mutex_t lock;
	_Atomic uintptr_t base; /* 0: there is no arena */
	uint64_t nbytes;
	size_t least;  /* bytes of an allocation that is taken from it, at least */
	bool is_child; /* of the process whose arena it was                      */
	struct tti_runs runs;
	uint64_t open_bytes; /* from the base on there is access to so many */
	uint64_t dirty_bytes;
} arena = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* This thread forks and holds the lock: other libraries' handlers of forks may allocate. */
static __thread bool is_forking __attribute__((tls_model("initial-exec")));

static void lock(void)
{
	if (!is_forking)
		pthread_mutex_lock(&arena.lock);
}

static void unlock(void)
{
	if (!is_forking)
		pthread_mutex_unlock(&arena.lock);
}

/* The C library ends a program that frees memory that was never allocated; so do we. */
_Noreturn static void die(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
	__builtin_trap();
}

static bool is_ours(const void *memory)
{
	const uintptr_t base = atomic_load_explicit(&arena.base, memory_order_acquire);

	return base && (uintptr_t)memory - base < arena.nbytes;
}

static uint32_t unit_of(const void *memory)
{
	return (uint32_t)(((uintptr_t)memory - arena.base) / UNIT);
}

static uint8_t *address_of(uint32_t unit)
{
	return (uint8_t *)arena.base + (uint64_t)unit * UNIT;
}

/* Zero, and without pages where the system allows that: locked memory keeps them. A child's memory is
 * private, of a file with what the parent had: it gets other memory in its place. */
static void clear(void *at, size_t nbytes)
{
	const bool is_done = arena.is_child
				     ? mmap(at, nbytes, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
					    -1, 0) != MAP_FAILED
				     : !syscall(SYS_madvise, at, nbytes, MADV_REMOVE);

	if (!is_done)
		memset(at, 0, nbytes);
}

/* -- Under the lock ------------------------------------------------------------- */

static void clean_all(void)
{
	uint32_t first, units;

	while ((first = tti_runs_clean(&arena.runs, &units)) != TTI_RUNS_NONE)
		clear(address_of(first), (uint64_t)units * UNIT);
	arena.dirty_bytes = 0;
}

static bool open_to(uint64_t end)
{
	const uint64_t rounded = (end + STEP - 1) / STEP * STEP;
	const uint64_t upto = rounded < arena.nbytes ? rounded : arena.nbytes;

	if (end <= arena.open_bytes)
		return true;
	if (mprotect((void *)(arena.base + arena.open_bytes), upto - arena.open_bytes,
		     PROT_READ | PROT_WRITE))
		return false;
	arena.open_bytes = upto;
	return true;
}

static void give(uint32_t first, uint64_t units)
{
	tti_runs_give(&arena.runs, first, true);
	arena.dirty_bytes += units * UNIT;
	if (arena.is_child || arena.dirty_bytes > DIRTY_MOST)
		clean_all();
}

static uint32_t take(uint32_t units, uint32_t align, bool *is_dirty)
{
	const uint32_t first = tti_runs_take(&arena.runs, units, align, is_dirty);

	if (first == TTI_RUNS_NONE || open_to(((uint64_t)first + units) * UNIT))
		return first;
	tti_runs_give(&arena.runs, first, *is_dirty);
	return TTI_RUNS_NONE;
}

/* -- Allocating ------------------------------------------------------------------ */

/* NULL: not from the arena. */
static void *get(size_t nbytes, size_t align, bool zero)
{
	const size_t units = nbytes / UNIT + (nbytes % UNIT != 0);
	const size_t align_units = align > UNIT ? align / UNIT : 1;
	uint32_t first = TTI_RUNS_NONE;
	bool is_dirty = false;

	if (!atomic_load_explicit(&arena.base, memory_order_acquire) || nbytes < arena.least ||
	    units >= TTI_RUNS_MOST || align > ALIGN)
		return NULL;
	lock();
	first = take((uint32_t)units, (uint32_t)align_units, &is_dirty);
	unlock();
	if (first == TTI_RUNS_NONE)
		return NULL;
	if (zero && is_dirty)
		clear(address_of(first), (uint64_t)units * UNIT);
	return address_of(first);
}

/* Under the lock. How many units begin there; 0: nothing was allocated there. */
static uint32_t units_at(const void *memory)
{
	return (uintptr_t)memory % UNIT ? 0 : tti_runs_units(&arena.runs, unit_of(memory));
}

static uint64_t bytes_at(const void *memory)
{
	uint64_t units;

	lock();
	units = units_at(memory);
	unlock();
	return units * UNIT;
}

static void put(void *memory)
{
	uint32_t units;

	lock();
	units = units_at(memory);
	if (units)
		give(unit_of(memory), units);
	unlock();
	if (!units)
		die("free(): invalid pointer\n");
}

/* Whether it could be made that long where it is. */
static bool resize(const void *memory, size_t nbytes)
{
	const uint32_t first = unit_of(memory);
	const size_t units = nbytes / UNIT + (nbytes % UNIT != 0);
	bool is_dirty = true, good = false;
	uint32_t old;

	lock();
	old = tti_runs_units(&arena.runs, first);
	if (units < TTI_RUNS_MOST)
		good = tti_runs_resize(&arena.runs, first, (uint32_t)units, &is_dirty);
	if (good && units > old && !open_to((first + units) * UNIT)) {
		(void)tti_runs_resize(&arena.runs, first, old, &is_dirty);
		good = false;
	}
	if (good && units < old)
		arena.dirty_bytes += (uint64_t)(old - units) * UNIT;
	unlock();
	return good;
}

/* -- What the C library has, too ------------------------------------------------- */

EXPORT void *malloc(size_t nbytes)
{
	void *memory = get(nbytes, 1, false);

	return memory ? memory : __libc_malloc(nbytes);
}

EXPORT void free(void *memory)
{
	const int error = errno;

	if (!is_ours(memory))
		__libc_free(memory);
	else
		put(memory);
	errno = error;
}

EXPORT void *calloc(size_t count, size_t nbytes)
{
	size_t all;
	void *memory = __builtin_mul_overflow(count, nbytes, &all) ? NULL : get(all, 1, true);

	return memory ? memory : __libc_calloc(count, nbytes);
}

EXPORT void *realloc(void *old, size_t nbytes)
{
	uint64_t had;
	void *fresh;

	if (!is_ours(old)) {
		/* An allocation that outgrows the heap of the C library may have to be reached by others. */
		if (!old)
			return malloc(nbytes);
		if (nbytes < arena.least || !arena.base)
			return __libc_realloc(old, nbytes);
		had = malloc_usable_size(old);
	} else {
		if (nbytes == 0) {
			free(old);
			return NULL;
		}
		had = bytes_at(old);
		if (!had)
			die("realloc(): invalid pointer\n");
		if (nbytes >= arena.least && resize(old, nbytes))
			return old;
	}
	fresh = malloc(nbytes);
	if (!fresh)
		return NULL;
	memcpy(fresh, old, had < nbytes ? had : nbytes);
	free(old);
	return fresh;
}

EXPORT void *memalign(size_t align, size_t nbytes)
{
	void *memory = align && !(align & (align - 1)) ? get(nbytes, align, false) : NULL;

	return memory ? memory : __libc_memalign(align, nbytes);
}

EXPORT void *aligned_alloc(size_t align, size_t nbytes)
{
	return memalign(align, nbytes);
}

EXPORT int posix_memalign(void **out, size_t align, size_t nbytes)
{
	const int error = errno;
	void *memory;

	if (!align || align & (align - 1) || align % sizeof(void *))
		return EINVAL;
	memory = memalign(align, nbytes);
	errno = error;
	if (!memory)
		return ENOMEM;
	*out = memory;
	return 0;
}

EXPORT void *valloc(size_t nbytes)
{
	return memalign((size_t)sysconf(_SC_PAGESIZE), nbytes);
}

EXPORT size_t malloc_usable_size(void *memory)
{
	/* begin() calls it, so that realloc() need not wait for the lock of the dynamic linker. */
	static _Atomic(size_t(*)(void *)) next;
	size_t (*real)(void *) = atomic_load(&next);

	if (is_ours(memory))
		return bytes_at(memory);
	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "malloc_usable_size");
		atomic_store(&next, real);
	}
	return real(memory);
}

/* On private memory these leave zeros behind; on shared memory they would leave the data. */
EXPORT int madvise(void *at, size_t nbytes, int advice)
{
	const bool drops = advice == MADV_DONTNEED || advice == MADV_FREE;

	if (!drops || !is_ours(at))
		return (int)syscall(SYS_madvise, at, nbytes, advice);
	if (!arena.is_child || (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE))
		return (int)syscall(SYS_madvise, at, nbytes, MADV_REMOVE);
	clear(at, nbytes);
	return 0;
}

/* -- The arena ------------------------------------------------------------------- */

/* Blocks that are free need not be copied. */
static void before_fork(void)
{
	pthread_mutex_lock(&arena.lock);
	is_forking = true;
	clean_all();
}

static void in_parent(void)
{
	is_forking = false;
	pthread_mutex_unlock(&arena.lock);
}

static void in_child(void)
{
	arena.is_child = true;
	arena.least = SIZE_MAX;
	in_parent();
}

/* No memory may be promised that is not there (vm.overcommit_memory 2): a child could have no copy. */
static bool is_overcommit_forbidden(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = 0;

	if (!file)
		return false;
	if (fscanf(file, "%d", &mode) != 1)
		mode = 0;
	fclose(file);
	return mode == 2;
}

/* A size of params.def. The library that the program uses has read it, and complained if it is wrong. */
static uint64_t param(const char *variable)
{
	struct tti_param_parsed parsed = { 0 };
	struct tutti_param_info info;

	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++)
		if (strcmp(info.variable, variable) == 0 &&
		    tti_param_parse(TTI_PARAM_SIZE, "", info.value, &parsed))
			return (uint64_t)parsed.number;
	return 0;
}

/* Address space of the heap; its length, or 0: there is no heap, and the memory is private. */
static uint64_t take_space(void **memory)
{
	/* The other half is for tutti_mem_alloc(). */
	uint64_t nbytes = param("TUTTI_SHM_HEAP") / 2 / ALIGN * ALIGN;

	while (nbytes >= LEAST_BYTES && tutti_mem_alloc(memory, nbytes, NULL) != TUTTI_OK)
		nbytes = nbytes / 2 / ALIGN * ALIGN;
	if (*memory && !madvise(*memory, UNIT, MADV_REMOVE) &&
	    tutti_mem_copy_on_fork(*memory) == TUTTI_OK)
		return nbytes;
	if (*memory)
		(void)!tutti_mem_free(*memory, NULL);
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	void *memory = NULL;
	uint64_t nbytes;
	uintptr_t base;

	arena.least = param("TUTTI_SHARED_MALLOC_LEAST");
	(void)malloc_usable_size(NULL);
	if (!arena.least || is_overcommit_forbidden())
		return;
	nbytes = take_space(&memory);
	if (!nbytes)
		return;
	base = ((uintptr_t)memory + ALIGN - 1) / ALIGN * ALIGN;
	arena.nbytes = ((uintptr_t)memory + nbytes - base) / ALIGN * ALIGN;
	if (mprotect(memory, nbytes, PROT_NONE) || pthread_atfork(before_fork, in_parent, in_child))
		return;
	tti_runs_init(&arena.runs, (uint32_t)(arena.nbytes / UNIT));
	atomic_store_explicit(&arena.base, base, memory_order_release);
}
