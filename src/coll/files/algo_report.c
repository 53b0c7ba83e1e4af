/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on a file with an algorithm: `tutti show --check`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll/files/algo_files.h"
#include "plan/tune/tune.h"
#include "tutti/algo_file.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

/* -- Bytes ------------------------------------------------------------------------- */

/* The bytes of a chunk of a vector; the last chunk may be shorter. */
static size_t chunk_bytes(const struct tti_program *prog, size_t nbytes)
{
	const size_t nchunks =
		(size_t)(tti_collective_is_by_pair(prog->coll) ? prog->nchunks / prog->n
							       : prog->nchunks);

	return (nbytes + nchunks - 1) / nchunks;
}

/* What goes from one rank to another, whoever moves it. */
static void count_steps(const struct tti_program *prog, size_t chunk, uint64_t *link)
{
	const size_t n = (size_t)prog->n, rank = (size_t)prog->rank;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const enum tti_step_kind kind = prog->steps.at[i].kind;
		const size_t peer = (size_t)prog->steps.at[i].peer;

		if (kind == TTI_SEND || kind == TTI_PUT)
			link[rank * n + peer] += chunk;
		else if (kind == TTI_GET || kind == TTI_GET_REDUCE)
			link[peer * n + rank] += chunk;
	}
}

static void count_links(const struct tti_algo_file *file, size_t nbytes, uint64_t *link,
			struct tutti_algo_report *out)
{
	const size_t n = (size_t)file->n, chunk = chunk_bytes(file->prog, nbytes);

	for (size_t rank = 0; rank < n; rank++) {
		const struct tti_program *prog = &file->prog[rank];

		out->steps += prog->steps.n;
		if (prog->steps.n > out->most_steps)
			out->most_steps = prog->steps.n;
		count_steps(prog, chunk, link);
	}
	for (size_t rank = 0; rank < n; rank++) {
		uint64_t sent = 0;
		int peers = 0;

		for (size_t peer = 0; peer < n; peer++) {
			const uint64_t bytes = link[rank * n + peer];

			sent += bytes;
			peers += bytes > 0;
			if (bytes > out->most_link_bytes)
				out->most_link_bytes = bytes;
		}
		out->links += peers;
		if (sent > out->most_sent_bytes)
			out->most_sent_bytes = sent;
	}
}

/* -- Time -------------------------------------------------------------------------- */

/* When messages of a link arrive, and how many were taken. */
struct wire {
	TTI_VEC(double) at;
	size_t taken;
};

struct run {
	const struct tti_algo_file *file;
	struct wire *wire;      /* [n * n]               */
	double *now;            /* [n], microseconds     */
	size_t *next;           /* [n]: steps done       */
	double line, put, take; /* of one message        */
	double read, write;     /* of a chunk in memory of a peer */
};

/* One step of a rank; *done: it could be done. false: out of memory. */
static bool run_step(struct run *run, size_t rank, const struct tti_step *step, bool *done)
{
	const size_t n = (size_t)run->file->n, peer = (size_t)step->peer;
	const bool is_notify = step->kind == TTI_NOTIFY, is_wait = step->kind == TTI_WAIT;
	struct wire *in = &run->wire[peer * n + rank], *out = &run->wire[rank * n + peer];
	double *now = &run->now[rank];

	*done = true;
	switch (step->kind) {
	case TTI_SEND:
	case TTI_NOTIFY:
		*now += is_notify ? 0 : run->put;
		return tti_vec_push(&out->at, *now + run->line);
	case TTI_RECV:
	case TTI_RECV_REDUCE:
	case TTI_WAIT:
		*done = in->taken < in->at.n;
		if (*done)
			*now = fmax(*now, in->at.at[in->taken++]) + (is_wait ? 0 : run->take);
		return true;
	case TTI_GET:
	case TTI_GET_REDUCE:
		*now += run->read;
		return true;
	case TTI_PUT:
		*now += run->write;
		return true;
	case TTI_COPY:
	case TTI_STEP_KINDS:
		break;
	}
	return true;
}

/* The steps of one rank, as far as messages are there. false: out of memory. */
static bool run_rank(struct run *run, size_t rank, bool *moved)
{
	const struct tti_program *prog = &run->file->prog[rank];

	while (run->next[rank] < prog->steps.n) {
		bool done;

		if (!run_step(run, rank, &prog->steps.at[run->next[rank]], &done))
			return false;
		if (!done)
			return true;
		run->next[rank]++;
		*moved = true;
	}
	return true;
}

/* All of them; a program that is proven comes to its end. */
static bool run_all(struct run *run, double *us)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (size_t rank = 0; rank < (size_t)run->file->n; rank++)
			if (!run_rank(run, rank, &moved))
				return false;
	}
	for (int rank = 0; rank < run->file->n; rank++)
		*us = fmax(*us, run->now[rank]);
	return true;
}

/* Each rank on a core of its own host memory away from the others, its steps one after the
 * other, every chunk in one piece. */
static tutti_status predict(const struct tti_algo_file *file, size_t nbytes,
			    const struct tti_tune_constants *c, double *us)
{
	const size_t n = (size_t)file->n, chunk = chunk_bytes(file->prog, nbytes);
	const double bytes = (double)chunk, slots = ceil(bytes / c->slot_bytes);
	struct run run = {
		.file = file,
		.wire = tti_calloc(n * n, sizeof(*run.wire)),
		.now = tti_calloc(n, sizeof(*run.now)),
		.next = tti_calloc(n, sizeof(*run.next)),
		.line = c->line_us,
		.put = (bytes > c->inline_bytes ? slots * c->slot_us : 0) +
		       bytes / c->copy_gbps / 1e3,
		.take = bytes / c->cross_gbps / 1e3,
		.read = bytes / c->cross_gbps / 1e3,
		.write = bytes / c->copy_gbps / 1e3,
	};
	bool good = run.wire && run.now && run.next;

	*us = 0;
	good = good && run_all(&run, us);
	*us += c->call_us;
	for (size_t i = 0; run.wire && i < n * n; i++)
		tti_vec_release(&run.wire[i].at);
	tti_free(run.wire);
	tti_free(run.now);
	tti_free(run.next);
	return good ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "time of %s: out of memory", file->path);
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status report(const struct tti_algo_file *file, size_t nbytes, uint64_t *link,
			   struct tutti_algo_report *out)
{
	struct tti_tune_table defaults = tti_tune_defaults(), *tune = NULL;
	tutti_status st = TUTTI_OK;

	*out = (struct tutti_algo_report){ .size = out->size,
					   .collective = file->algo.coll,
					   .nranks = file->n,
					   .root = file->root,
					   .nchunks = file->prog->nchunks,
					   .min_bytes = file->min_bytes,
					   .max_bytes = file->max_bytes };
	memcpy(out->name, file->algo.name, strnlen(file->algo.name, sizeof(out->name) - 1));
	count_links(file, nbytes, link, out);
	if (tti_params()->tune_file)
		st = tti_tune_read_file(tti_params()->tune_file, &tune);
	if (st == TUTTI_OK)
		st = predict(file, nbytes, tune ? &tune->constants : &defaults.constants,
			     &out->predicted_us);
	tti_tune_table_free(tune);
	return st;
}

tutti_status tutti_algo_file_check(const char *text, size_t text_bytes, const char *name,
				   size_t nbytes, struct tutti_algo_report *out,
				   uint64_t **link_bytes_out)
{
	struct tti_algo_file *file;
	uint64_t *link;
	tutti_status st;

	if (!text || !name || !out || !link_bytes_out)
		return tti_fail(TUTTI_EINVAL, "tutti_algo_file_check: text, name, out or "
					      "link_bytes_out is NULL");
	if (out->size < sizeof(*out))
		return tti_fail(TUTTI_EINVAL, "out.size is %zu: begin with TUTTI_ALGO_REPORT_INIT",
				out->size);
	TTI_TRY(tti_algo_file_read(text, text_bytes, name, &file));
	link = calloc((size_t)file->n * (size_t)file->n, sizeof(*link));
	st = link ? report(file, nbytes, link, out)
		  : tti_fail(TUTTI_ENOMEM, "links of %d ranks: out of memory", file->n);
	tti_algo_file_free(file);
	if (st == TUTTI_OK)
		*link_bytes_out = link;
	else
		free(link);
	return st;
}
