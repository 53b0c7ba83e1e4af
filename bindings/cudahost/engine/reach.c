/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/reach.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/device.h"

/* What is read while it is changed may be of two ranges: `version` says so, and it is read again
 * (Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012). */
struct range {
	_Atomic uintptr_t from, to; /* of the addresses */
	_Atomic uintptr_t shift;    /* what leads from there to where the bytes are */
	_Atomic uint64_t devices;
	_Atomic int owner; /* the complement: is_plain */
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

/* Release and acquire, so that what is read of a range comes between the reads of its version. */
#define SET(to, value) atomic_store_explicit(&(to), value, memory_order_release)
#define GET(from)      atomic_load_explicit(&(from), memory_order_acquire)

static void copy(struct range *to, const struct range *from)
{
	SET(to->from, GET(from->from));
	SET(to->to, GET(from->to));
	SET(to->shift, GET(from->shift));
	SET(to->devices, GET(from->devices));
	SET(to->owner, GET(from->owner));
}

static void set(struct range *to, const struct tti_cuda_reach_range *from)
{
	SET(to->from, (uintptr_t)from->address);
	SET(to->to, (uintptr_t)from->address + from->nbytes);
	SET(to->shift, (uintptr_t)from->reach - (uintptr_t)from->address);
	SET(to->devices, from->devices);
	SET(to->owner, from->is_plain ? ~from->owner : from->owner);
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

int tti_cuda_reach_add(const struct tti_cuda_reach_range *range)
{
	struct list *all;
	size_t n;

	if (range->reach == range->address)
		return 0;
	pthread_mutex_lock(&lock);
	n = atomic_load_explicit(&nranges, memory_order_relaxed);
	all = grow(atomic_load_explicit(&list, memory_order_relaxed), n);
	if (all) {
		size_t at = n;

		begin_change();
		SET(list, all);
		for (; at > 0 && GET(all->at[at - 1].from) > (uintptr_t)range->address; at--)
			copy(&all->at[at], &all->at[at - 1]);
		set(&all->at[at], range);
		SET(nranges, n + 1);
		end_change();
	}
	pthread_mutex_unlock(&lock);
	return all ? 0 : tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
}

/* n: there is none. */
static size_t find(const struct list *all, size_t n, const char *address)
{
	size_t at = 0;

	while (at < n && GET(all->at[at].from) != (uintptr_t)address)
		at++;
	return at;
}

void tti_cuda_reach_allow(const char *address, uint64_t devices)
{
	struct list *all;
	size_t n, at;

	pthread_mutex_lock(&lock);
	all = atomic_load_explicit(&list, memory_order_relaxed);
	n = atomic_load_explicit(&nranges, memory_order_relaxed);
	at = find(all, n, address);
	if (at < n) {
		begin_change();
		SET(all->at[at].devices, devices);
		end_change();
	}
	pthread_mutex_unlock(&lock);
}

void tti_cuda_reach_remove(const char *address)
{
	struct list *all;
	size_t n, at;

	pthread_mutex_lock(&lock);
	all = atomic_load_explicit(&list, memory_order_relaxed);
	n = atomic_load_explicit(&nranges, memory_order_relaxed);
	at = find(all, n, address);
	if (at < n) {
		begin_change();
		for (; at + 1 < n; at++)
			copy(&all->at[at], &all->at[at + 1]);
		SET(nranges, n - 1);
		end_change();
	}
	pthread_mutex_unlock(&lock);
}

/* -- Lookups ------------------------------------------------------------------------------- */

/* What it finds counts if nothing has changed. */
static void search(uintptr_t address, struct tti_cuda_reached *out)
{
	const struct list *all = GET(list);
	size_t from = 0, to = GET(nranges);
	const struct range *range;
	int owner;

	*out = (struct tti_cuda_reached){ .at = NULL };
	if (!all || to > all->room)
		return;
	while (from < to) { /* the last that does not begin behind it is in [from - 1, to - 1] */
		const size_t middle = (from + to) / 2;

		if (GET(all->at[middle].from) <= address)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from || address >= GET(all->at[from - 1].to))
		return;
	range = &all->at[from - 1];
	owner = GET(range->owner);
	*out = (struct tti_cuda_reached){
		.at = (char *)(address + GET(range->shift)),
		.owner = owner < 0 ? ~owner : owner,
		.is_plain = owner < 0,
		.devices = GET(range->devices),
	};
}

bool tti_cuda_reach_find(const char *address, struct tti_cuda_reached *out)
{
	for (;;) {
		const uint64_t before = GET(version);

		search((uintptr_t)address, out);
		/* All loads of search() are acquire, so that this one comes behind them. */
		if (!(before & 1) && atomic_load_explicit(&version, memory_order_relaxed) == before)
			return out->at;
	}
}
