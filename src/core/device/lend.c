/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/lend.h"

#include <stdio.h>
#include <string.h>

#include "boot/watch/requests.h"
#include "core/comm.h"
#include "core/device/device.h"
#include "core/device/flight.h"
#include "core/device/heap.h"
#include "core/device/open.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/span.h"

/* Of the mail of a communicator. */
#define CONTEXT UINT64_C(0x6c656e64206d656d)
/* How long a rank that ends waits for peers that do not answer, which may have stopped. */
#define END_MS  10000

enum what { MAP = 1, UNMAP };

struct ask {
	uint64_t number; /* of what the asking rank has lent */
	uint32_t what;
	uint32_t pad;
	struct tti_gpu_name name;
};

struct answer {
	uint64_t at;
	int32_t status;
	char why[TTI_ANSWER_BYTES - 12];
};

_Static_assert(sizeof(struct ask) <= TTI_REQUEST_BYTES, "a request has room");
_Static_assert(sizeof(struct answer) <= TTI_ANSWER_BYTES, "an answer has room");

struct lent {
	struct tti_lent base; /* first */
	uint64_t number;
	struct tti_gpu_memory *memory; /* NULL: it cannot be shared */
	struct tti_gpu_memory **here;  /* [n]: for peers of this process; NULL for others */
	bool is_told;                  /* peers in other processes may have mapped it */
	bool is_reached;               /* by all */
};

/* What a peer in another process has lent, mapped here. */
struct borrowed {
	int peer;
	uint64_t number;
	struct tti_gpu_memory *memory;
};

struct tti_lending {
	struct tti_comm *comm;
	struct tti_requests *requests; /* NULL: all ranks are of this process */
	pthread_mutex_t lock;          /* of what is lent: only one thread at a time asks */
	TTI_VEC(struct lent *) lent;
	uint64_t number;
	TTI_VEC(struct borrowed) borrowed; /* of the thread that serves */
	struct tti_lending *next;          /* of the process */
};

/* Of all communicators of the process. */
static struct {
	pthread_mutex_t lock;
	struct tti_lending *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- What peers lend ---------------------------------------------------------------------- */

static struct borrowed *find_borrowed(struct tti_lending *lending, int peer, uint64_t number)
{
	for (size_t i = 0; i < lending->borrowed.n; i++)
		if (lending->borrowed.at[i].peer == peer &&
		    lending->borrowed.at[i].number == number)
			return &lending->borrowed.at[i];
	return NULL;
}

static tutti_status map(struct tti_lending *lending, int peer, const struct ask *ask, uint64_t *at)
{
	struct borrowed borrowed = { .peer = peer, .number = ask->number };

	TTI_TRY(tti_gpu_memory_import(lending->comm->device->gpu, &ask->name, &borrowed.memory));
	*at = borrowed.memory->at;
	if (tti_vec_push(&lending->borrowed, borrowed))
		return TUTTI_OK;
	tti_gpu_memory_free(borrowed.memory);
	return tti_fail(TUTTI_ENOMEM, "memory that rank %d lends: out of memory", peer);
}

static void unmap(struct tti_lending *lending, int peer, uint64_t number)
{
	struct borrowed *borrowed = find_borrowed(lending, peer, number);

	if (!borrowed)
		return;
	tti_gpu_memory_free(borrowed->memory);
	*borrowed = lending->borrowed.at[--lending->borrowed.n];
}

static void serve(void *self, int from, const uint8_t request[TTI_REQUEST_BYTES],
		  uint8_t answer[TTI_ANSWER_BYTES])
{
	struct tti_lending *lending = self;
	struct answer said = { .status = TUTTI_OK };
	struct ask ask;

	memcpy(&ask, request, sizeof(ask));
	if (ask.what == MAP)
		said.status = (int32_t)map(lending, from, &ask, &said.at);
	else
		unmap(lending, from, ask.number);
	if (said.status != TUTTI_OK)
		(void)snprintf(said.why, sizeof(said.why), "%s", tti_error_text());
	memcpy(answer, &said, sizeof(said));
}

/* -- Peers of other processes ------------------------------------------------------------- */

/* Ask all of them. at[n]: where each has mapped it, if that was asked. */
static tutti_status ask_others(struct tti_lending *lending, const struct ask *ask,
			       int64_t timeout_ms, uint64_t *at)
{
	const struct tti_comm *comm = lending->comm;
	struct tti_errand *asked = tti_calloc((size_t)comm->n, sizeof(*asked));
	tutti_status st = TUTTI_OK;
	int n = 0;

	if (!asked)
		return tti_fail(TUTTI_ENOMEM, "memory for %d ranks: out of memory", comm->n);
	for (int peer = 0; peer < comm->n; peer++)
		if (comm->device->peers[peer].is_elsewhere) {
			asked[n].peer = peer;
			memcpy(asked[n++].data, ask, sizeof(*ask));
		}
	tti_requests_ask(lending->requests, asked, n, timeout_ms);
	for (int i = 0; i < n; i++) {
		struct answer said;

		memcpy(&said, asked[i].answer, sizeof(said));
		if (asked[i].status == TUTTI_OK && said.status == TUTTI_OK) {
			at[asked[i].peer] = said.at;
			continue;
		}
		said.why[sizeof(said.why) - 1] = '\0';
		st = tti_fail_quiet(asked[i].status == TUTTI_OK ? (tutti_status)said.status
								: asked[i].status,
				    "rank %d: %s", asked[i].peer,
				    asked[i].status == TUTTI_OK ? said.why
				    : asked[i].status == TUTTI_ETIMEOUT
					    ? "it does not answer"
					    : "it has left, or the communicator has failed");
	}
	tti_free(asked);
	return st;
}

static bool has_others(const struct tti_comm *comm)
{
	for (int peer = 0; peer < comm->n; peer++)
		if (comm->device->peers[peer].is_elsewhere)
			return true;
	return false;
}

/* -- Peers of this process ---------------------------------------------------------------- */

static tutti_status lend_here(struct tti_comm *comm, struct lent *lent,
			      const struct tti_gpu_name *name, uint64_t *at)
{
	for (int peer = 0; peer < comm->n; peer++) {
		struct tti_gpu *gpu;
		tutti_status st;

		at[peer] = at[peer] ? at[peer] : lent->base.base;
		if (peer == comm->rank || comm->device->peers[peer].is_elsewhere)
			continue;
		TTI_TRY(tti_gpu_open(comm->devices->fact[peer].ordinal, &gpu));
		st = tti_gpu_memory_import(gpu, name, &lent->here[peer]);
		tti_gpu_close(gpu);
		if (st != TUTTI_OK)
			return st;
	}
	return TUTTI_OK;
}

/* -- One allocation ------------------------------------------------------------------------- */

/* Peers unmap it, and all of it is freed here. The lock is held. */
static void free_lent(struct tti_lending *lending, struct lent *lent, int64_t timeout_ms)
{
	struct tti_comm *comm = lending->comm;
	const struct ask ask = { .number = lent->number, .what = UNMAP };
	uint64_t *unused = tti_calloc((size_t)comm->n, sizeof(*unused));

	if (lent->is_told && unused &&
	    ask_others(lending, &ask, timeout_ms, unused) == TUTTI_ETIMEOUT)
		tti_log(TTI_LOG_WARN, TTI_CORE,
			"rank %d takes %zu bytes at 0x%llx back, which may still be mapped: %s",
			comm->rank, lent->base.nbytes, (unsigned long long)lent->base.base,
			tti_error_text());
	tti_free(unused);
	for (int peer = 0; lent->here && peer < comm->n; peer++)
		tti_gpu_memory_free(lent->here[peer]);
	tti_gpu_memory_free(lent->memory);
	if (lent->base.table && !tti_vec_push(&comm->device->tables, lent->base.table))
		tti_log(TTI_LOG_WARN, TTI_CORE,
			"rank %d: out of memory, so %zu bytes of its GPU are not freed", comm->rank,
			(size_t)comm->n * sizeof(uint64_t));
	tti_free(lent->here);
	tti_free(lent);
}

/* Let all peers reach it. The lock is held. */
static tutti_status let_reach(struct tti_lending *lending, struct lent *lent, uint64_t *at)
{
	struct tti_comm *comm = lending->comm;
	struct ask ask = { .number = lent->number, .what = MAP };
	const size_t nbytes = (size_t)comm->n * sizeof(*at);

	if (lending->requests && !tti_gpu_memory_is_for_processes(lent->memory))
		return tti_fail_quiet(
			TUTTI_EUNSUPPORTED,
			"what cudaMalloc() gave is mapped and unmapped by other "
			"processes only once no kernel of theirs runs, which may wait "
			"for this rank: take memory of tutti_mem_alloc(), or set "
			"TUTTI_CUDA_SHARE=ipc");
	TTI_TRY(tti_gpu_memory_export(lent->memory, &ask.name));
	if (lending->requests) {
		lent->is_told = true;
		TTI_TRY(ask_others(lending, &ask, 0, at));
	}
	TTI_TRY(lend_here(comm, lent, &ask.name, at));
	if (comm->device->tables.n > 0)
		lent->base.table = comm->device->tables.at[--comm->device->tables.n];
	else
		TTI_TRY(tti_device_alloc(comm->device, nbytes, &lent->base.table));
	return tti_device_write(comm->device, lent->base.table, at, nbytes);
}

/* Once an allocation: that it is not reached is remembered, too. The lock is held. */
static tutti_status make_lent(struct tti_lending *lending, uint64_t buffer, struct lent **out)
{
	struct tti_comm *comm = lending->comm;
	struct lent *lent = tti_zalloc(sizeof(*lent));
	uint64_t *at = tti_calloc((size_t)comm->n, sizeof(*at));
	tutti_status st;

	if (lent)
		lent->here = tti_calloc((size_t)comm->n, sizeof(*lent->here));
	if (!lent || !at || !lent->here || !tti_vec_grow(&lending->lent)) {
		if (lent)
			tti_free(lent->here);
		tti_free(lent);
		tti_free(at);
		return tti_fail(TUTTI_ENOMEM, "memory for %d ranks: out of memory", comm->n);
	}
	lent->number = ++lending->number;
	lent->base.base = buffer;
	lent->base.nbytes = 1;
	st = tti_gpu_memory_wrap(comm->device->gpu, buffer, &lent->memory);
	if (st == TUTTI_OK) {
		lent->base.base = lent->memory->at;
		lent->base.nbytes = lent->memory->nbytes;
		st = let_reach(lending, lent, at);
	}
	lent->is_reached = st == TUTTI_OK;
	if (st != TUTTI_OK)
		tti_log(st == TUTTI_EUNSUPPORTED ? TTI_LOG_INFO : TTI_LOG_WARN, TTI_CORE,
			"registered memory at 0x%llx of rank %d, %zu bytes, is not reached by all "
			"ranks, so calls on it go by slots: %s",
			(unsigned long long)lent->base.base, comm->rank, lent->base.nbytes,
			tti_error_text());
	tti_free(at);
	lending->lent.at[lending->lent.n++] = lent;
	*out = lent;
	return TUTTI_OK;
}

/* -- Calls ---------------------------------------------------------------------------------- */

static bool is_registered(struct tti_comm *comm, uint64_t buffer, size_t nbytes)
{
	bool found = false;

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < comm->memory.regs.n && !found; i++) {
		const struct tutti_reg *reg = comm->memory.regs.at[i];

		found = tti_span_covers((uintptr_t)reg->memory, reg->nbytes, buffer, nbytes);
	}
	pthread_mutex_unlock(&comm->lock);
	return found || tti_device_heap_has(buffer, nbytes);
}

static struct lent *find(const struct tti_lending *lending, uint64_t buffer)
{
	for (size_t i = 0; i < lending->lent.n; i++)
		if (tti_span_covers(lending->lent.at[i]->base.base,
				    lending->lent.at[i]->base.nbytes, buffer, 1))
			return lending->lent.at[i];
	return NULL;
}

tutti_status tti_lend(struct tti_comm *comm, uint64_t buffer, size_t nbytes,
		      const struct tti_lent **out)
{
	struct tti_lending *lending = comm->device->lending;
	tutti_status st = TUTTI_OK;
	struct lent *lent;

	*out = NULL;
	if (!lending || !is_registered(comm, buffer, nbytes))
		return TUTTI_OK;
	pthread_mutex_lock(&lending->lock);
	lent = find(lending, buffer);
	if (!lent)
		st = make_lent(lending, buffer, &lent);
	if (st == TUTTI_OK && lent->is_reached &&
	    tti_span_covers(lent->base.base, lent->base.nbytes, buffer, nbytes))
		*out = &lent->base;
	pthread_mutex_unlock(&lending->lock);
	return st;
}

void tti_lent_capture(struct tti_comm *comm, const struct tti_lent *lent)
{
	struct tti_lending *lending = comm->device->lending;

	pthread_mutex_lock(&lending->lock);
	find(lending, lent->base)->base.is_captured = true;
	pthread_mutex_unlock(&lending->lock);
}

/* -- Taking back ---------------------------------------------------------------------------- */

/* Whether any of it is registered still, or in use by a graph. */
static bool is_used(struct tti_comm *comm, const struct lent *lent)
{
	bool found = lent->base.is_captured ||
		     tti_device_heap_overlaps(lent->base.base, lent->base.nbytes);

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < comm->memory.regs.n && !found; i++) {
		const struct tutti_reg *reg = comm->memory.regs.at[i];

		found = tti_spans_overlap((uintptr_t)reg->memory, reg->nbytes, lent->base.base,
					  lent->base.nbytes);
	}
	pthread_mutex_unlock(&comm->lock);
	return found;
}

static void take_back(struct tti_lending *lending, uint64_t memory, size_t nbytes)
{
	size_t kept = 0;

	pthread_mutex_lock(&lending->lock);
	for (size_t i = 0; i < lending->lent.n; i++) {
		struct lent *lent = lending->lent.at[i];

		if (tti_spans_overlap(memory, nbytes, lent->base.base, lent->base.nbytes) &&
		    !is_used(lending->comm, lent))
			free_lent(lending, lent, 0);
		else
			lending->lent.at[kept++] = lent;
	}
	lending->lent.n = kept;
	pthread_mutex_unlock(&lending->lock);
}

void tti_lending_take_back(struct tti_comm *comm, const void *memory, size_t nbytes)
{
	if (comm->device && comm->device->lending)
		take_back(comm->device->lending, (uintptr_t)memory, nbytes);
}

void tti_lending_take_back_everywhere(uint64_t memory, size_t nbytes)
{
	pthread_mutex_lock(&all.lock);
	for (struct tti_lending *lending = all.first; lending; lending = lending->next)
		take_back(lending, memory, nbytes);
	pthread_mutex_unlock(&all.lock);
}

size_t tti_lending_count(const struct tti_comm *comm)
{
	struct tti_lending *lending = comm->device ? comm->device->lending : NULL;
	size_t n = 0;

	if (!lending)
		return 0;
	pthread_mutex_lock(&lending->lock);
	for (size_t i = 0; i < lending->lent.n; i++)
		n += lending->lent.at[i]->is_reached;
	pthread_mutex_unlock(&lending->lock);
	return n;
}

/* -- The communicator ----------------------------------------------------------------------- */

tutti_status tti_lending_begin(struct tti_comm *comm)
{
	struct tti_requests_config config = { .boot = comm->boot,
					      .context = tti_hash_combine(comm->context, CONTEXT),
					      .serve = serve,
					      .stop = &comm->stop };
	struct tti_lending *lending;

	if (!comm->device || !comm->devices->all_mapped || comm->n < 2)
		return TUTTI_OK;
	lending = tti_zalloc(sizeof(*lending));
	if (!lending)
		return tti_fail(TUTTI_ENOMEM, "memory for %d ranks: out of memory", comm->n);
	lending->comm = comm;
	pthread_mutex_init(&lending->lock, NULL);
	comm->device->lending = config.self = lending;
	pthread_mutex_lock(&all.lock);
	lending->next = all.first;
	all.first = lending;
	pthread_mutex_unlock(&all.lock);
	return has_others(comm) ? tti_requests_create(&config, &lending->requests) : TUTTI_OK;
}

static void leave_process(struct tti_lending *lending)
{
	struct tti_lending **at = &all.first;

	pthread_mutex_lock(&all.lock);
	while (*at != lending)
		at = &(*at)->next;
	*at = lending->next;
	pthread_mutex_unlock(&all.lock);
}

void tti_lending_end(struct tti_comm *comm)
{
	struct tti_lending *lending = comm->device ? comm->device->lending : NULL;

	if (!lending)
		return;
	leave_process(lending);
	tti_flights_await(comm);
	for (size_t i = 0; i < lending->lent.n; i++)
		free_lent(lending, lending->lent.at[i], END_MS);
	tti_requests_free(lending->requests);
	for (size_t i = 0; i < lending->borrowed.n; i++)
		tti_gpu_memory_free(lending->borrowed.at[i].memory);
	tti_vec_release(&lending->lent);
	tti_vec_release(&lending->borrowed);
	pthread_mutex_destroy(&lending->lock);
	tti_free(lending);
	comm->device->lending = NULL;
}
