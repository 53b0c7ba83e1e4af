/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Ordered: reduces from the left in the order of ranks, ((r0 op r1) op r2) ..., whoever
 * sits where. Ranks that follow each other by number and are of one group (a host) are a
 * run; the runs are a chain. With three hosts of two ranks each, in order:
 *
 *     run 0           run 1                  run 2
 *     0 1 reduced ──▶ (0 1), 2, 3 reduced ──▶ (0 1 2 3), 4, 5 reduced: complete
 *
 * What comes from the run before and what the members of a run hold is one n-ary
 * reduction, whose sources stand in the order of ranks (compile.h): all that come from
 * before are lower ones. As in a hierarchy each member takes one stripe of the data through
 * its run, or several in a run smaller than the largest; and all_reduce goes back along the
 * chain.
 *
 * If ranks are numbered host by host, N bytes go into each host and out of it once for a
 * reduction, twice for all_reduce, as few as a chain can; if they are dealt out to hosts in
 * turn, every rank is a run of its own. One run is what "direct" does. */

/* A later stage (program.h) is two blocks behind: so many blocks may be on their way along
 * the chain and back before the first is to be given to all inside. */
#define MOST_STAGES 4

struct run {
	int first, size;
};

struct line {
	const struct tti_program *prog;
	struct run run, before, after, last; /* of the rank, its neighbours: size 0, none */
	int nruns, stripes, parts;
	bool by_rank; /* chunks belong to ranks */
};

/* One chunk at most of each stripe: of all_reduce and reduce those of one part. Where
 * chunks belong to ranks, those of the ranks of one run, of which a stripe has several if
 * there are fewer stripes. */
struct row {
	struct run owners;
	int layer, part;
};

static bool together(const struct tti_program *prog, int a, int b)
{
	const struct tti_shape *shape = prog->shape;

	return !shape || !shape->ngroups || shape->group_of[a] == shape->group_of[b];
}

static struct run run_from(const struct tti_program *prog, int first)
{
	struct run run = { first, first < prog->n };

	while (first + run.size < prog->n && together(prog, first, first + run.size))
		run.size++;
	return run;
}

static struct line look(struct tti_program *prog, bool by_rank)
{
	struct line line = { .prog = prog, .parts = prog->split.parts, .by_rank = by_rank };
	struct run run = { 0, 0 };

	for (int first = 0; first < prog->n; first += run.size) {
		const struct run before = run;

		run = run_from(prog, first);
		line.nruns++;
		if (run.size > line.stripes)
			line.stripes = run.size;
		if (prog->rank < first || prog->rank >= first + run.size)
			continue;
		line.before = before;
		line.run = run;
		line.after = run_from(prog, first + run.size);
	}
	line.last = run;
	if (prog->split.stripes > 0 && prog->split.stripes < line.stripes)
		line.stripes = prog->split.stripes;
	prog->nchunks = (by_rank ? prog->n : line.stripes) * line.parts;
	return line;
}

/* The member of a run that a stripe goes through. */
static int server(const struct run *run, int stripe)
{
	return run->first + stripe % run->size;
}

/* -1: the row has none of that stripe. */
static int chunk_of(const struct line *line, const struct row *row, int stripe)
{
	const int index = stripe + row->layer * line->stripes;

	if (!line->by_rank)
		return stripe * line->parts + row->part;
	return index < row->owners.size ? (row->owners.first + index) * line->parts + row->part
					: -1;
}

/* What came from the run before and what each member holds, in one reduction; on to the
 * next run. */
static void reduce_stripe(struct tti_program *prog, const struct line *line, int chunk, int stripe)
{
	const int end = line->run.first + line->run.size;
	const int last = end - 1 == prog->rank ? end - 2 : end - 1;
	const bool ends_here = line->after.size == 0;

	if (line->before.size > 0)
		tti_recv_reduce(prog, chunk, server(&line->before, stripe),
				ends_here && line->run.size == 1);
	for (int peer = line->run.first; peer < end; peer++)
		if (peer != prog->rank)
			tti_recv_reduce(prog, chunk, peer, ends_here && peer == last);
	if (!ends_here)
		tti_send(prog, chunk, server(&line->after, stripe));
}

/* As many stripes at a time as the run has members, so that each has one of them. */
static void reduce_row(struct tti_program *prog, const struct line *line, const struct row *row)
{
	const int size = line->run.size, index = prog->rank - line->run.first;

	for (int base = 0; base < line->stripes; base += size) {
		const int own = base + index;

		for (int i = 1; i < size; i++) {
			const int stripe = base + (index + i) % size;

			if (stripe < line->stripes && chunk_of(line, row, stripe) >= 0)
				tti_send(prog, chunk_of(line, row, stripe),
					 server(&line->run, stripe));
		}
		if (own < line->stripes && chunk_of(line, row, own) >= 0)
			reduce_stripe(prog, line, chunk_of(line, row, own), own);
	}
}

static void reduce_all(struct tti_program *prog, const struct line *line)
{
	for (int part = 0; part < line->parts; part++)
		reduce_row(prog, line, &(struct row){ .part = part });
}

/* The way back: the chunks of own stripes from the run after to the one before. */
static void pass_back(struct tti_program *prog, const struct line *line)
{
	for (int part = 0; part < line->parts; part++)
		for (int stripe = prog->rank - line->run.first; stripe < line->stripes;
		     stripe += line->run.size) {
			const int chunk = chunk_of(line, &(struct row){ .part = part }, stripe);

			if (line->after.size > 0)
				tti_recv(prog, chunk, server(&line->after, stripe));
			if (line->before.size > 0)
				tti_send(prog, chunk, server(&line->before, stripe));
		}
}

/* And to all of the run. */
static void give_inside(struct tti_program *prog, const struct line *line, int part, int base)
{
	const int size = line->run.size, index = prog->rank - line->run.first;
	const struct row row = { .part = part };

	for (int i = 1; i < size && base + index < line->stripes; i++)
		tti_send(prog, chunk_of(line, &row, base + index),
			 line->run.first + (index + i) % size);
	for (int i = size - 1; i > 0; i--) {
		const int stripe = base + (index + i) % size;

		if (stripe < line->stripes)
			tti_recv(prog, chunk_of(line, &row, stripe), server(&line->run, stripe));
	}
}

void tti_ordered_all_reduce(struct tti_program *prog)
{
	const struct line line = look(prog, false);

	reduce_all(prog, &line);
	prog->stage += line.nruns - 1 < MOST_STAGES ? line.nruns - 1 : MOST_STAGES;
	pass_back(prog, &line);
	for (int part = 0; part < line.parts; part++)
		for (int base = 0; base < line.stripes; base += line.run.size)
			give_inside(prog, &line, part, base);
}

/* From who has completed a chunk to who shall have it. */
static void take_home(struct tti_program *prog, int chunk, int from, int to)
{
	if (from == to)
		return;
	if (prog->rank == from)
		tti_send(prog, chunk, to);
	if (prog->rank == to)
		tti_recv(prog, chunk, from);
}

void tti_ordered_reduce(struct tti_program *prog)
{
	const struct line line = look(prog, false);

	reduce_all(prog, &line);
	prog->stage++;
	for (int chunk = 0; chunk < prog->nchunks; chunk++)
		take_home(prog, chunk, server(&line.last, chunk / line.parts), prog->root);
}

static void reduce_owned(struct tti_program *prog, const struct line *line, struct run owners)
{
	for (int layer = 0; layer * line->stripes < owners.size; layer++)
		for (int part = 0; part < line->parts; part++)
			reduce_row(prog, line, &(struct row){ owners, layer, part });
}

static void take_owned_home(struct tti_program *prog, const struct line *line, struct run owners)
{
	for (int index = 0; index < owners.size; index++)
		for (int part = 0; part < line->parts; part++)
			take_home(prog, (owners.first + index) * line->parts + part,
				  server(&line->last, index % line->stripes), owners.first + index);
}

void tti_ordered_reduce_scatter(struct tti_program *prog)
{
	const struct line line = look(prog, true);
	struct run owners = run_from(prog, 0);

	for (; owners.size > 0; owners = run_from(prog, owners.first + owners.size))
		reduce_owned(prog, &line, owners);
	prog->stage++;
	for (owners = run_from(prog, 0); owners.size > 0;
	     owners = run_from(prog, owners.first + owners.size))
		take_owned_home(prog, &line, owners);
}
