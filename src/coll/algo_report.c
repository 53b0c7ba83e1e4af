/* SPDX-License-Identifier: BSD-3-Clause */
/* What a file with an algorithm holds: `tutti show --check`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algo_files.h"
#include "plan/tune.h"
#include "tutti/algo_file.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

/* -- Bytes ------------------------------------------------------------------------- */

/* Of a chunk of a vector; the last one may be shorter. */
static size_t chunk_bytes(const struct tti_program *prog, size_t nbytes)
{
	const size_t nchunks =
		(size_t)(tti_collective_is_by_pair(prog->coll) ? prog->nchunks / prog->n
							       : prog->nchunks);

	return (nbytes + nchunks - 1) / nchunks;
}

static void count_links(const struct tti_algo_file *file, size_t nbytes, uint64_t *link,
			struct tutti_algo_report *out)
{
	const size_t n = (size_t)file->n, chunk = chunk_bytes(file->prog, nbytes);

	for (size_t rank = 0; rank < n; rank++) {
		const struct tti_program *prog = &file->prog[rank];
		uint64_t sent = 0;
		int peers = 0;

		out->steps += prog->steps.n;
		if (prog->steps.n > out->most_steps)
			out->most_steps = prog->steps.n;
		for (size_t i = 0; i < prog->steps.n; i++)
			if (prog->steps.at[i].kind == TTI_SEND)
				link[rank * n + (size_t)prog->steps.at[i].peer] += chunk;
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
};

/* The steps of one rank, as far as messages are there. false: out of memory. */
static bool run_rank(struct run *run, size_t rank, bool *moved)
{
	const struct tti_program *prog = &run->file->prog[rank];
	const size_t n = (size_t)run->file->n;

	for (; run->next[rank] < prog->steps.n; run->next[rank]++, *moved = true) {
		const struct tti_step *step = &prog->steps.at[run->next[rank]];
		const size_t peer = (size_t)step->peer;

		if (step->kind == TTI_SEND) {
			run->now[rank] += run->put;
			if (!tti_vec_push(&run->wire[rank * n + peer].at,
					  run->now[rank] + run->line))
				return false;
		} else if (step->kind != TTI_COPY) {
			struct wire *wire = &run->wire[peer * n + rank];

			if (wire->taken == wire->at.n)
				return true;
			run->now[rank] = fmax(run->now[rank], wire->at.at[wire->taken++]);
			run->now[rank] += run->take;
		}
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
