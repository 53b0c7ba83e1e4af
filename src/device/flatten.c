/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/flatten.h"

#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* An operation of a stage is so many blocks of data behind those of the stage before it, as the
 * engine has it: ranks with a device and ranks without one run one call. */
#define STAGE_SKEW 2

#define ALIGNED 16

struct flattening {
	const struct tti_compiled *from;
	struct tti_dev_program to;
	int32_t *number; /* [nopers]: of the operation that an operation becomes part of */
	int32_t *sender; /* [nchunks]: 1 + the operation that sends its input; 0: none */
	uint8_t *copies; /* [nopers]: it sends an input, which is copied to the output as well */
	uint8_t *live;   /* [nchunks]: places, as bits, whose value is read later on */
	size_t nbytes;
};

static int32_t most(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/* Whether an operation receives what the next one sends on, and that waits for nothing else. */
static bool joins_next(const struct tti_compiled *from, int32_t index)
{
	const struct tti_operation *op = &from->oper[index], *next = op + 1;

	/* Of a list of sends and receives each goes as soon as it can. */
	if (from->is_memory || from->coll == TUTTI_SEND_RECV || op->then != index + 1)
		return false;
	return op->nin > 0 && op->nout == 0 && next->nin == 0 && next->chunk == op->chunk &&
	       next->stage == op->stage && next->from == op->to && next->to == TTI_PLACE_NONE &&
	       next->scratch == op->scratch;
}

/* Whether an operation copies an input to the output. It waits for nobody. */
static bool is_copy(const struct tti_operation *op)
{
	return !op->sync && op->from == TTI_PLACE_INPUT && op->to == TTI_PLACE_OUTPUT &&
	       op->nin + op->nout + op->nget + op->nput == 0;
}

/* The operation that sends what operation `index` copies, and so may copy it in the same pass; -1. A
 * program that has messages copies only chunks that have had no value but their input (coll/compile). */
static int32_t sender_of(struct flattening *f, int32_t index)
{
	const struct tti_operation *op = &f->from->oper[index];
	int32_t *sender = &f->sender[op->chunk];

	/* Of a list of sends and receives each chunk goes when it can. */
	if (f->from->coll == TUTTI_SEND_RECV)
		return -1;
	if (!*sender && op->from == TTI_PLACE_INPUT && op->nin == 0 && op->nout > 0 &&
	    op->nout < TTI_DEV_OPERANDS_MAX)
		*sender = index + 1;
	return is_copy(op) ? *sender - 1 : -1;
}

static void number_all(struct flattening *f)
{
	const struct tti_compiled *from = f->from;

	for (int32_t i = 0; i < from->nopers; i++) {
		const int32_t sender = sender_of(f, i);

		if (sender >= 0) {
			f->number[i] = f->number[sender];
			f->copies[sender] = 1;
			continue;
		}
		f->number[i] = f->to.noperations++;
		if (joins_next(from, i)) {
			f->number[i + 1] = f->number[i];
			i++;
		}
	}
}

static int32_t sources_of(const struct tti_operation *op)
{
	return op->nin + op->nget + (op->from != TTI_PLACE_NONE);
}

static int32_t results_of(const struct tti_operation *op)
{
	return op->nout + op->nput + (op->to != TTI_PLACE_NONE);
}

static void count_operands(struct flattening *f)
{
	const struct tti_operation *op = f->from->oper;

	for (int32_t i = 0; i < f->from->nopers; i++) {
		int32_t n = results_of(&op[i]) + f->copies[i];

		if (joins_next(f->from, i))
			n += op[i + 1].nout;
		f->to.noperands = most(f->to.noperands, most(n, sources_of(&op[i])));
	}
}

/* -- Where arrays lie ------------------------------------------------------------------------ */

static uint32_t array(struct flattening *f, int32_t count, size_t size)
{
	const size_t at = f->nbytes;

	f->nbytes += ((size_t)count * size + ALIGNED - 1) / ALIGNED * ALIGNED;
	return (uint32_t)at;
}

static int32_t count_messages(const struct tti_compiled *from)
{
	int32_t n = 0;

	for (int32_t i = 0; i < from->nopers; i++)
		n = most(n, most(from->oper[i].in + from->oper[i].nin,
				 from->oper[i].out + from->oper[i].nout));
	return n;
}

static int32_t count_peers(const struct tti_compiled *from)
{
	int32_t n = 0;

	for (int32_t i = 0; i < from->nopers; i++)
		n = most(n, most(from->oper[i].get + from->oper[i].nget,
				 from->oper[i].put + from->oper[i].nput));
	return n;
}

static int32_t count_preds(const struct tti_compiled *from)
{
	int32_t n = 0;

	for (int32_t i = 0; i < from->nopers; i++)
		n += from->oper[i].npred;
	return n;
}

static void lay_out(struct flattening *f)
{
	const struct tti_compiled *from = f->from;
	struct tti_dev_program *to = &f->to;

	f->nbytes = (sizeof(*to) + ALIGNED - 1) / ALIGNED * ALIGNED;
	to->operations = array(f, to->noperations, sizeof(struct tti_dev_operation));
	to->queue_of = array(f, count_messages(from), sizeof(int32_t));
	to->lane_of = array(f, from->nqueues, sizeof(int32_t));
	to->peer_of = array(f, from->is_memory ? count_peers(from) : 0, sizeof(int32_t));
	if (from->coll == TUTTI_SEND_RECV) {
		to->queues = array(f, from->nqueues, sizeof(struct tti_queue));
		to->queued = array(f, count_messages(from), sizeof(int32_t));
		to->pred_of = array(f, from->nopers + 1, sizeof(int32_t));
		to->pred = array(f, count_preds(from), sizeof(int32_t));
		to->local = array(f, from->nlocal, sizeof(int32_t));
		to->nlocal = from->nlocal;
	}
}

static void *at(struct tti_dev_program *program, uint32_t offset)
{
	return (char *)program + offset;
}

/* -- What they hold -------------------------------------------------------------------------- */

static struct tti_dev_operation operation_of(const struct flattening *f, int32_t index)
{
	const struct tti_compiled *from = f->from;
	const struct tti_operation *op = &from->oper[index];
	const struct tti_operation *sender = joins_next(from, index) ? op + 1 : op;

	return (struct tti_dev_operation){
		.chunk = op->chunk,
		.in = op->in,
		.out = sender->out,
		.scratch = op->scratch,
		.get = op->get,
		.put = op->put,
		.nin = op->nin,
		.nout = sender->nout,
		.nget = op->nget,
		.nput = op->nput,
		.local_at = op->local_at,
		.from = op->from,
		.to = f->copies[index] ? TTI_PLACE_OUTPUT : op->to,
		.final = op->final,
		.stage = op->stage,
		.sync = op->sync,
	};
}

static void put_operations(const struct flattening *f, struct tti_dev_operation *out)
{
	/* Of those that become one, the first says what it is. */
	for (int32_t i = f->from->nopers; i-- > 0;)
		out[f->number[i]] = operation_of(f, i);
}

/* From the last operation to the first: a value that is sent on, or put into outputs of peers, in the
 * pass that makes it, and is read by no later operation before it is written anew, need not be in memory.
 * Of a memory program peers may read what is not in scratch. */
static void drop_unread(struct flattening *f, struct tti_dev_operation *op)
{
	memset(f->live, 1 << TTI_PLACE_OUTPUT, (size_t)f->from->nchunks);
	for (int32_t i = f->to.noperations; i-- > 0;) {
		uint8_t *live = &f->live[op[i].sync ? 0 : op[i].chunk];
		const uint8_t to = (uint8_t)(1u << op[i].to), from = (uint8_t)(1u << op[i].from);

		if (op[i].sync)
			continue;
		op[i].is_dropped =
			!(*live & to) && (op[i].nput > 0 ? op[i].to == TTI_PLACE_SCRATCH
							 : op[i].nin > 0 && op[i].nout > 0);
		*live = (uint8_t)((*live & ~to) | from);
	}
}

/* A memory program needs room for what it writes there. Of others the halves of an operation may run
 * apart, and then write what is dropped here. */
static int32_t count_scratch(const struct flattening *f, const struct tti_dev_operation *op)
{
	int32_t n = 0;

	if (!f->from->is_memory)
		return f->from->nscratch;
	for (int32_t i = 0; i < f->to.noperations; i++)
		if (op[i].to == TTI_PLACE_SCRATCH && !op[i].is_dropped)
			n = most(n, op[i].scratch + 1);
	return n;
}

/* Arrays of nothing may be NULL. */
static void put(void *to, const int32_t *from, int32_t count)
{
	if (count > 0)
		memcpy(to, from, (size_t)count * sizeof(*from));
}

static void put_queues(const struct flattening *f, struct tti_dev_program *out)
{
	const struct tti_compiled *from = f->from;
	int32_t *lane_of = at(out, out->lane_of);

	for (int32_t i = 0; i < from->nqueues; i++)
		lane_of[i] = 2 * from->queue[i].peer + (from->queue[i].is_send != 0);
	put(at(out, out->queue_of), from->queue_of, count_messages(from));
	if (from->is_memory)
		put(at(out, out->peer_of), from->peer_of, count_peers(from));
}

/* Of a list of sends and receives, whose operations keep their numbers. */
static void put_order(const struct flattening *f, struct tti_dev_program *out)
{
	const struct tti_compiled *from = f->from;
	int32_t *pred_of = at(out, out->pred_of), *pred = at(out, out->pred), first = 0;
	struct tti_queue *queue = at(out, out->queues);

	for (int32_t i = 0; i < from->nqueues; i++) {
		queue[i] = from->queue[i];
		put((int32_t *)at(out, out->queued) + queue[i].first, from->queued + queue[i].first,
		    queue[i].n);
	}
	put(at(out, out->local), from->local, from->nlocal);
	for (int32_t i = 0; i < from->nopers; i++) {
		pred_of[i] = first;
		first += from->oper[i].npred;
	}
	pred_of[from->nopers] = first;
	for (int32_t i = from->nopers; i-- > 0;)
		for (int32_t k = 0; k < from->oper[i].nsucc; k++) {
			const int32_t to = from->succs[from->oper[i].succ + k];

			/* From the end of the list of each on, and its end is where the next begins. */
			pred[--pred_of[to + 1]] = i;
		}
	/* Each end has moved to the beginning of the list that it ended. */
	memmove(pred_of, pred_of + 1, (size_t)from->nopers * sizeof(*pred_of));
	pred_of[from->nopers] = first;
}

static void fill(struct flattening *f, struct tti_dev_program *out)
{
	*out = f->to;
	put_operations(f, at(out, out->operations));
	drop_unread(f, at(out, out->operations));
	out->nscratch = count_scratch(f, at(out, out->operations));
	put_queues(f, out);
	if (f->from->coll == TUTTI_SEND_RECV)
		put_order(f, out);
}

static tutti_status check(const struct flattening *f)
{
	if (f->to.noperands > TTI_DEV_OPERANDS_MAX)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"program %s of rank %d has an operation with %d operands, and a "
				"block of a GPU has room for %d: choose another algorithm "
				"(TUTTI_ALGO)",
				f->from->algorithm, f->from->rank, f->to.noperands,
				TTI_DEV_OPERANDS_MAX);
	if (f->nbytes > UINT32_MAX)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"program %s of rank %d has %d operations, %zu bytes for a GPU, and "
				"may have 4 GiB: choose another algorithm (TUTTI_ALGO)",
				f->from->algorithm, f->from->rank, f->to.noperations, f->nbytes);
	return TUTTI_OK;
}

tutti_status tti_dev_flatten(const struct tti_compiled *compiled, struct tti_dev_program **out)
{
	struct flattening f = {
		.from = compiled,
		.to = { .rank = compiled->rank,
			.n = compiled->n,
			.nqueues = compiled->nqueues,
			.nstages = compiled->nstages,
			.skew = STAGE_SKEW,
			.is_memory = compiled->is_memory,
			.is_exchange = compiled->exchange,
			.nopening = compiled->nopening },
		.number = tti_calloc((size_t)compiled->nopers + 1, sizeof(int32_t)),
		.sender = tti_calloc((size_t)compiled->nchunks + 1, sizeof(int32_t)),
		.copies = tti_calloc((size_t)compiled->nopers + 1, sizeof(uint8_t)),
		.live = tti_calloc((size_t)compiled->nchunks + 1, sizeof(uint8_t)),
	};
	struct tti_dev_program *program = NULL;
	tutti_status st = TUTTI_OK;

	if (f.number && f.sender && f.copies && f.live) {
		number_all(&f);
		count_operands(&f);
		lay_out(&f);
		f.to.nbytes = (uint32_t)f.nbytes;
		st = check(&f);
		if (st == TUTTI_OK)
			program = tti_zalloc(f.nbytes);
	}
	if (program)
		fill(&f, program);
	else if (st == TUTTI_OK)
		st = tti_fail(TUTTI_ENOMEM, "program %s of %d operations for a GPU: out of memory",
			      compiled->algorithm, compiled->nopers);
	tti_free(f.number);
	tti_free(f.sender);
	tti_free(f.copies);
	tti_free(f.live);
	*out = program;
	return st;
}

int32_t tti_dev_window(const struct tti_dev_program *program)
{
	/* A block runs in order: while the last stage is at one block of data, the first is at most
	 * so many further. */
	const int32_t ahead = program->skew * (program->nstages - 1);
	int32_t window = 1;

	while (window <= ahead)
		window *= 2;
	return window;
}
