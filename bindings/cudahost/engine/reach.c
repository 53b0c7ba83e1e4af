/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/reach.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* What is read while it is changed may be of two ranges: `version` says so, and it is read again
 * (Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012). */
struct range {
	_Atomic uintptr_t from, to; /* of the addresses */
	_Atomic uintptr_t shift;    /* what leads from there to where the bytes are */
};

/* One that has become too small stays for those who read it. They double, so all that were before
 * have less room than the last. */
struct list {
	struct list *before;
	size_t room;
	struct range at[]; /* by address */
};

static struct list *_Atomic list;
static _Atomic size_t nranges;
static _Atomic uint64_t version; /* odd: it is being changed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- Changes, under the lock --------------------------------------------------------------- */

/* Stores that follow are seen with an odd version. */
static void begin_change(void)
{
	atomic_store_explicit(&version, atomic_load_explicit(&version, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void end_change(void)
{
	atomic_store_explicit(&version, atomic_load_explicit(&version, memory_order_relaxed) + 1,
			      memory_order_release);
}

static void set(_Atomic uintptr_t *to, uintptr_t value)
{
	atomic_store_explicit(to, value, memory_order_release);
}

static uintptr_t get(const _Atomic uintptr_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static void copy(struct range *to, const struct range *from)
{
	set(&to->from, get(&from->from));
	set(&to->to, get(&from->to));
	set(&to->shift, get(&from->shift));
}

/* NULL: no memory. */
static struct list *grow(struct list *old, size_t n)
{
	const size_t room = old ? 2 * old->room : 64;
	struct list *all;

	if (old && n < old->room)
		return old;
	all = calloc(1, sizeof(*all) + room * sizeof(all->at[0]));
	if (!all)
		return NULL;
	all->before = old;
	all->room = room;
	for (size_t i = 0; i < n; i++)
		copy(&all->at[i], &old->at[i]);
	return all;
}

bool tti_cuda_reach_add(const char *address, size_t nbytes, char *reach)
{
	const uintptr_t from = (uintptr_t)address;
	struct list *all;
	size_t n;

	pthread_mutex_lock(&lock);
	n = atomic_load_explicit(&nranges, memory_order_relaxed);
	all = grow(atomic_load_explicit(&list, memory_order_relaxed), n);
	if (all) {
		size_t at = n;

		begin_change();
		atomic_store_explicit(&list, all, memory_order_release);
		for (; at > 0 && get(&all->at[at - 1].from) > from; at--)
			copy(&all->at[at], &all->at[at - 1]);
		set(&all->at[at].from, from);
		set(&all->at[at].to, from + nbytes);
		set(&all->at[at].shift, (uintptr_t)reach - from);
		atomic_store_explicit(&nranges, n + 1, memory_order_release);
		end_change();
	}
	pthread_mutex_unlock(&lock);
	return all;
}

void tti_cuda_reach_remove(const char *address)
{
	struct list *all;
	size_t n, at = 0;

	pthread_mutex_lock(&lock);
	all = atomic_load_explicit(&list, memory_order_relaxed);
	n = atomic_load_explicit(&nranges, memory_order_relaxed);
	while (at < n && get(&all->at[at].from) != (uintptr_t)address)
		at++;
	if (at < n) {
		begin_change();
		for (; at + 1 < n; at++)
			copy(&all->at[at], &all->at[at + 1]);
		atomic_store_explicit(&nranges, n - 1, memory_order_release);
		end_change();
	}
	pthread_mutex_unlock(&lock);
}

/* -- Lookups ------------------------------------------------------------------------------- */

/* What it finds counts if nothing has changed. */
static uintptr_t search(uintptr_t address)
{
	const struct list *all = atomic_load_explicit(&list, memory_order_acquire);
	size_t from = 0, to = atomic_load_explicit(&nranges, memory_order_acquire);

	if (!all || to > all->room)
		return 0;
	while (from < to) { /* the last that does not begin behind it is in [from - 1, to - 1] */
		const size_t middle = (from + to) / 2;

		if (get(&all->at[middle].from) <= address)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from || address >= get(&all->at[from - 1].to))
		return 0;
	return address + get(&all->at[from - 1].shift);
}

char *tti_cuda_reach_find(const char *address)
{
	for (;;) {
		const uint64_t before = atomic_load_explicit(&version, memory_order_acquire);
		const uintptr_t found = search((uintptr_t)address);

		/* All loads of search() are acquire, so that this one comes behind them. */
		if (!(before & 1) && atomic_load_explicit(&version, memory_order_relaxed) == before)
			return (char *)found;
	}
}
