/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses are streams, events, graphs and the like that live, so that one that was
 * destroyed is an error and not a crash: until its memory is used for another of the kind.
 *
 * Threads: each table has a lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/held.h"
#include "engine/internal.h"

/* Tables, so that threads seldom meet. */
#define NTABLES 16

/* Open addressing with linear probing; at most half of the places are taken. */
static struct table {
	pthread_mutex_t lock;
	uintptr_t *place; /* EMPTY, or what key() gave */
	size_t room, n;   /* room: a power of 2, or 0 */
} tables[NTABLES] = {
#define LOCK                                      \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}
	LOCK, LOCK, LOCK, LOCK, LOCK, LOCK, LOCK, LOCK,
	LOCK, LOCK, LOCK, LOCK, LOCK, LOCK, LOCK, LOCK,
#undef LOCK
};

#define EMPTY 0

static const char *const names[] = {
	[TTI_CUDA_HANDLE_STREAM] = "stream",         [TTI_CUDA_HANDLE_EVENT] = "event",
	[TTI_CUDA_HANDLE_GRAPH] = "graph",           [TTI_CUDA_HANDLE_NODE] = "node of a graph",
	[TTI_CUDA_HANDLE_EXEC] = "executable graph",
};

/* Objects come from malloc(), so the low 3 bits are free for the kind. The complement is kept, so
 * that an object that leaks is not found by way of this table. */
static uintptr_t key(enum tti_cuda_handle kind, const void *object)
{
	return ~((uintptr_t)object | (uintptr_t)kind);
}

/* What is not is no object, and its low bits would be taken for a kind. */
static bool is_aligned(const void *object)
{
	return object && (uintptr_t)object % 8 == 0;
}

static size_t hash(uintptr_t id)
{
	return (size_t)(((uint64_t)id * 0x9e3779b97f4a7c15u) >> 20);
}

static struct table *table_of(uintptr_t id)
{
	return &tables[hash(id) % NTABLES];
}

/* Where it is, or the empty place where it would be. The table has an empty place. */
static size_t find(const struct table *table, uintptr_t id)
{
	size_t at = hash(id) / NTABLES & (table->room - 1);

	while (table->place[at] != EMPTY && table->place[at] != id)
		at = (at + 1) & (table->room - 1);
	return at;
}

static bool grow(struct table *table)
{
	struct table wide = { .room = table->room ? 2 * table->room : 64 };

	wide.place = calloc(wide.room, sizeof(*wide.place));
	if (!wide.place)
		return false;
	for (size_t at = 0; at < table->room; at++)
		if (table->place[at] != EMPTY)
			wide.place[find(&wide, table->place[at])] = table->place[at];
	free(table->place);
	table->place = wide.place;
	table->room = wide.room;
	return true;
}

static void count(enum tti_cuda_handle kind, int by)
{
	static const enum tti_cuda_held_kind held[] = {
		[TTI_CUDA_HANDLE_STREAM] = TTI_CUDA_HELD_streams,
		[TTI_CUDA_HANDLE_EVENT] = TTI_CUDA_HELD_events,
		[TTI_CUDA_HANDLE_GRAPH] = TTI_CUDA_HELD_graphs,
		[TTI_CUDA_HANDLE_EXEC] = TTI_CUDA_HELD_execs,
	};

	if (kind != TTI_CUDA_HANDLE_NODE) /* they come and go with graphs */
		tti_cuda_held_add(held[kind], by);
}

int tti_cuda_handle_add(enum tti_cuda_handle kind, const void *object)
{
	const uintptr_t id = key(kind, object);
	struct table *table = table_of(id);
	bool fits;

	pthread_mutex_lock(&table->lock);
	fits = 2 * (table->n + 1) <= table->room || grow(table);
	if (fits) {
		table->place[find(table, id)] = id;
		table->n++;
	}
	pthread_mutex_unlock(&table->lock);
	if (fits) {
		count(kind, 1);
		return 0;
	}
	return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu places for a new %s",
			     2 * table->room, names[kind]);
}

/* Whatever follows without a gap may have been put behind it. */
static void take_out(struct table *table, size_t at)
{
	size_t next = at;

	table->place[at] = EMPTY;
	table->n--;
	for (;;) {
		uintptr_t id;

		next = (next + 1) & (table->room - 1);
		id = table->place[next];
		if (id == EMPTY)
			return;
		table->place[next] = EMPTY;
		table->place[find(table, id)] = id;
	}
}

bool tti_cuda_handle_remove(enum tti_cuda_handle kind, const void *object)
{
	const uintptr_t id = key(kind, object);
	struct table *table = table_of(id);
	bool is_there = false;

	pthread_mutex_lock(&table->lock);
	if (is_aligned(object) && table->room) {
		const size_t at = find(table, id);

		is_there = table->place[at] == id;
		if (is_there)
			take_out(table, at);
	}
	pthread_mutex_unlock(&table->lock);
	if (is_there)
		count(kind, -1);
	return is_there;
}

int tti_cuda_handle_check(enum tti_cuda_handle kind, const void *object, const char *what)
{
	const uintptr_t id = key(kind, object);
	struct table *table = table_of(id);
	const int error = tti_cuda_begin();
	bool is_there;

	if (error)
		return error;
	pthread_mutex_lock(&table->lock);
	is_there = is_aligned(object) && table->room && table->place[find(table, id)] == id;
	pthread_mutex_unlock(&table->lock);
	if (is_there)
		return 0;
	return tti_cuda_fail(
		kind == TTI_CUDA_HANDLE_STREAM || kind == TTI_CUDA_HANDLE_EVENT ? TTI_CUDA_EHANDLE
										: TTI_CUDA_EINVAL,
		"%s: %p is no %s: it was destroyed, or never made; create one and keep "
		"it until nothing uses it",
		what, object, names[kind]);
}
