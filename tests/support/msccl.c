/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/msccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/strbuf.h"

/* A file under construction: thread blocks by rank, which are made as they are named. */
struct step {
	const char *type;
	char srcbuf, dstbuf;
	int srcoff, dstoff, cnt, depid, deps;
	bool hasdep;
};

#define STEPS_MAX 512
#define TBS_MAX   80

struct tb {
	int send, recv, chan, nsteps;
	struct step step[STEPS_MAX];
};

struct gpu {
	int ntbs, scratch;
	struct tb *tb[TBS_MAX];
};

struct file {
	const struct msccl_spec *spec;
	struct gpu *gpu;
	int nchunks;
};

/* Where a step was put, for those that depend on it. */
struct at {
	int tb, step;
};

static const struct at nothing = { -1, -1 };

/* The thread block that talks to these peers over this channel. */
static int tb_of(struct file *file, int rank, int send, int recv, int chan)
{
	struct gpu *gpu = &file->gpu[rank];
	struct tb *tb;
	int t = 0;

	while (t < gpu->ntbs &&
	       (gpu->tb[t]->send != send || gpu->tb[t]->recv != recv || gpu->tb[t]->chan != chan))
		t++;
	if (t < gpu->ntbs)
		return t;
	tb = calloc(1, sizeof(*tb));
	if (!tb || t == TBS_MAX)
		abort();
	*tb = (struct tb){ .send = send, .recv = recv, .chan = chan };
	gpu->tb[gpu->ntbs++] = tb;
	return t;
}

/* src and dst as "i3". */
static struct at put(struct file *file, int rank, int t, const char *type, const char *src,
		     const char *dst, int cnt, struct at dep)
{
	struct gpu *gpu = &file->gpu[rank];
	struct tb *tb = gpu->tb[t];
	const struct step step = { type, src[0], dst[0],   atoi(src + 1), atoi(dst + 1),
				   cnt,  dep.tb, dep.step, false };

	if (tb->nsteps == STEPS_MAX)
		abort();
	tb->step[tb->nsteps] = step;
	if (dep.tb >= 0)
		gpu->tb[dep.tb]->step[dep.step].hasdep = true;
	if (dst[0] == 's' && step.dstoff + cnt > gpu->scratch && strcmp(type, "s") != 0)
		gpu->scratch = step.dstoff + cnt;
	return (struct at){ t, tb->nsteps++ };
}

struct name {
	char text[16];
};

static struct name at(char buf, int off)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%c%d", buf, off);
	return name;
}

static struct at step(struct file *file, int rank, int t, const char *type, struct name src,
		      struct name dst, int cnt, struct at dep)
{
	return put(file, rank, t, type, src.text, dst.text, cnt, dep);
}

static int wrap(int rank, int n)
{
	return (rank % n + n) % n;
}

/* -- Rings ------------------------------------------------------------------------- */

static void ring_all_reduce(struct file *file, int rank, int n, int chan, int nchan)
{
	const int t = tb_of(file, rank, wrap(rank + 1, n), wrap(rank - 1, n), chan);

	for (int i = 0; i < 2 * n - 1; i++) {
		const struct name c = at('i', wrap(rank - i, n) * nchan + chan);

		step(file, rank, t,
		     i == 0          ? "s"
		     : i < n - 1     ? "rrs"
		     : i == n - 1    ? "rrcs"
		     : i < 2 * n - 2 ? "rcs"
				     : "r",
		     c, c, 1, nothing);
	}
}

static void ring_all_gather(struct file *file, int rank, int n, int chan, int nchan)
{
	const int t = tb_of(file, rank, wrap(rank + 1, n), wrap(rank - 1, n), chan);

	if (!file->spec->in_place)
		step(file, rank, tb_of(file, rank, -1, -1, 0), "cpy", at('i', chan),
		     at('o', rank * nchan + chan), 1, nothing);
	for (int i = 0; i < n; i++) {
		const struct name c = at('o', wrap(rank - i, n) * nchan + chan);

		step(file, rank, t,
		     i == 0      ? "s"
		     : i < n - 1 ? "rcs"
				 : "r",
		     i ? c : at('i', chan), c, 1, nothing);
	}
}

static void ring_reduce_scatter(struct file *file, int rank, int n, int chan, int nchan)
{
	const int t = tb_of(file, rank, wrap(rank + 1, n), wrap(rank - 1, n), chan);

	for (int i = 0; i < n; i++) {
		const struct name c = at('i', wrap(rank - 1 - i, n) * nchan + chan);

		step(file, rank, t,
		     i == 0      ? "s"
		     : i < n - 1 ? "rrs"
				 : "rrc",
		     c, i < n - 1 ? c : at('o', chan), 1, nothing);
	}
}

static void rings(struct file *file)
{
	const struct msccl_spec *spec = file->spec;

	file->nchunks = spec->n * spec->channels;
	for (int rank = 0; rank < spec->n; rank++)
		for (int chan = 0; chan < spec->channels; chan++) {
			if (spec->coll == TUTTI_ALL_REDUCE)
				ring_all_reduce(file, rank, spec->n, chan, spec->channels);
			else if (spec->coll == TUTTI_ALL_GATHER)
				ring_all_gather(file, rank, spec->n, chan, spec->channels);
			else
				ring_reduce_scatter(file, rank, spec->n, chan, spec->channels);
		}
}

/* -- Through scratch --------------------------------------------------------------- */

/* Of the n ranks from base on each reduces `part` chunks; returned: its last step. */
static struct at collect(struct file *file, int rank, int base, int n, int part)
{
	const char out = file->spec->in_place ? 'i' : 'o';
	const int me = rank - base;
	struct at end = nothing, got[64];
	int local;

	for (int p = 0, k = 0; p < n; p++) {
		int t;

		if (p == me)
			continue;
		t = tb_of(file, rank, base + p, base + p, 0);
		step(file, rank, t, "s", at('i', p * part), at('s', 0), part, nothing);
		got[p] = step(file, rank, t, "r", at('i', me * part), at('s', k++ * part), part,
			      nothing);
	}
	local = tb_of(file, rank, -1, -1, 0);
	if (out == 'o')
		end = step(file, rank, local, "cpy", at('i', me * part), at('o', me * part), part,
			   nothing);
	for (int p = 0, k = 0; p < n; p++)
		if (p != me)
			end = step(file, rank, local, "re", at('s', k++ * part), at(out, me * part),
				   part, got[p]);
	return end;
}

/* And gives them to all, when `ready` is done. */
static void spread(struct file *file, int rank, int base, int n, int part, struct at ready)
{
	const char out = file->spec->in_place ? 'i' : 'o';
	const int me = rank - base;

	for (int p = 0; p < n; p++) {
		const struct name mine = at(out, me * part), theirs = at(out, p * part);
		int t;

		if (p == me)
			continue;
		t = tb_of(file, rank, base + p, base + p, 0);
		step(file, rank, t, "s", mine, mine, part, ready);
		step(file, rank, t, "r", theirs, theirs, part, nothing);
	}
}

static void pairs(struct file *file)
{
	const int n = file->spec->n, part = file->spec->channels;

	file->nchunks = n * part;
	for (int rank = 0; rank < n; rank++)
		spread(file, rank, 0, n, part, collect(file, rank, 0, n, part));
}

static void exchange(struct file *file)
{
	const int n = file->spec->n, c = file->spec->channels;
	const char out = file->spec->in_place ? 'i' : 'o';

	file->nchunks = c;
	for (int rank = 0; rank < n; rank++) {
		struct at got[64], sent[64];
		int local;

		for (int p = 0, k = 0; p < n; p++) {
			int t;

			if (p == rank)
				continue;
			t = tb_of(file, rank, p, p, 0);
			sent[p] = step(file, rank, t, "s", at('i', 0), at('s', 0), c, nothing);
			got[p] = step(file, rank, t, "r", at('i', 0), at('s', k++ * c), c, nothing);
		}
		local = tb_of(file, rank, -1, -1, 0);
		/* In place nothing may be added before all have it. */
		for (int p = 0; p < n && out == 'i'; p++)
			if (p != rank)
				step(file, rank, local, "nop", at('i', 0), at('i', 0), 0, sent[p]);
		for (int i = 0; i < c && out == 'o'; i++)
			step(file, rank, local, "cpy", at('i', i), at('o', i), 1, nothing);
		for (int p = 0, k = 0; p < n; p++)
			if (p != rank)
				step(file, rank, local, "re", at('s', k++ * c), at(out, 0), c,
				     got[p]);
	}
}

/* all_to_all: each part straight to where it goes. */
static void all_to_all(struct file *file)
{
	const int n = file->spec->n, c = file->spec->channels;

	file->nchunks = n * c;
	for (int rank = 0; rank < n; rank++) {
		for (int p = 0; p < n; p++) {
			const struct name to = at('i', p * c), from = at('o', p * c);
			const int t = p == rank ? tb_of(file, rank, -1, -1, 0)
						: tb_of(file, rank, p, p, 0);

			if (p == rank) {
				step(file, rank, t, "cpy", to, from, c, nothing);
				continue;
			}
			step(file, rank, t, "s", to, at('o', rank * c), c, nothing);
			step(file, rank, t, "r", to, from, c, nothing);
		}
	}
}

static void halving(struct file *file)
{
	const int n = file->spec->n;

	file->nchunks = n;
	for (int rank = 0; rank < n; rank++) {
		const int local = tb_of(file, rank, -1, -1, 0);
		struct at ready = nothing;
		int first = 0;

		for (int half = n / 2; half; half /= 2) {
			const int peer = rank ^ half, t = tb_of(file, rank, peer, peer, 0);
			const int keep = first + (rank & half ? half : 0);
			const int give = first + (rank & half ? 0 : half);
			struct at got;

			step(file, rank, t, "s", at('i', give), at('s', 0), half, ready);
			got = step(file, rank, t, "r", at('i', keep), at('s', n - 2 * half), half,
				   nothing);
			ready = step(file, rank, local, "re", at('s', n - 2 * half), at('i', keep),
				     half, got);
			first = keep;
		}
		for (int half = 1; half < n; half *= 2) {
			const int peer = rank ^ half, t = tb_of(file, rank, peer, peer, 0);
			const int theirs = first ^ half;

			step(file, rank, t, "s", at('i', first), at('i', first), half, ready);
			ready = step(file, rank, t, "r", at('i', theirs), at('i', theirs), half,
				     nothing);
			first &= ~half;
		}
	}
}

/* Pairs in the group, a ring of each part over the groups, and pairs again. */
static void hierarchical(struct file *file)
{
	const int n = file->spec->n, g = file->spec->group, groups = n / g;

	file->nchunks = n;
	for (int rank = 0; rank < n; rank++) {
		const int base = rank / g * g, me = rank - base, group = rank / g;
		struct at ready = collect(file, rank, base, g, groups);
		const int t = groups > 1
				      ? tb_of(file, rank, wrap(rank + g, n), wrap(rank - g, n), 1)
				      : -1;

		for (int i = 0; i < 2 * groups - 1 && groups > 1; i++) {
			const struct name c = at('i', me * groups + wrap(group - i, groups));

			ready = step(file, rank, t,
				     i == 0               ? "s"
				     : i < groups - 1     ? "rrs"
				     : i == groups - 1    ? "rrcs"
				     : i < 2 * groups - 2 ? "rcs"
							  : "r",
				     c, c, 1, i ? nothing : ready);
		}
		spread(file, rank, base, g, groups, ready);
	}
}

/* -- Chains ------------------------------------------------------------------------ */

static void chain(struct file *file)
{
	const struct msccl_spec *spec = file->spec;
	const int n = spec->n;

	file->nchunks = spec->channels;
	for (int rank = 0; rank < n; rank++) {
		const int place = wrap(rank - spec->root, n);
		const bool down = spec->coll == TUTTI_BROADCAST;
		const bool is_first = place == (down ? 0 : n - 1);
		const bool is_last = place == (down ? n - 1 : 0);
		const int next = is_last ? -1 : wrap(rank + (down ? 1 : -1), n);
		const int prev = is_first ? -1 : wrap(rank - (down ? 1 : -1), n);
		const int t = tb_of(file, rank, next, prev, 0);
		const struct name in = at('i', 0), out = at(spec->in_place ? 'i' : 'o', 0);

		if (is_first && is_last && spec->in_place)
			continue;
		if (is_first && !spec->in_place && (down || is_last))
			step(file, rank, t, "cpy", in, out, spec->channels, nothing);
		if (is_first && !is_last)
			step(file, rank, t, "s", in, in, spec->channels, nothing);
		else if (!is_first)
			step(file, rank, t,
			     down      ? is_last ? "r" : "rcs"
			     : is_last ? "rrc"
				       : "rrs",
			     in, out, spec->channels, nothing);
	}
}

/* -- All of it --------------------------------------------------------------------- */

bool msccl_exists(const struct msccl_spec *spec)
{
	const bool reduces = spec->coll == TUTTI_ALL_REDUCE;

	switch (spec->kind) {
	case MSCCL_RING:
		return spec->n > 1 &&
		       ((reduces && spec->in_place) || spec->coll == TUTTI_ALL_GATHER ||
			spec->coll == TUTTI_REDUCE_SCATTER);
	case MSCCL_ALL_PAIRS:
		return reduces && spec->n > 1;
	case MSCCL_EXCHANGE:
		return (reduces || (spec->coll == TUTTI_ALL_TO_ALL && !spec->in_place)) &&
		       spec->n > 1;
	case MSCCL_HALVING:
		return reduces && spec->in_place && spec->n > 1 && (spec->n & (spec->n - 1)) == 0;
	case MSCCL_HIERARCHICAL:
		return reduces && spec->in_place && spec->group > 1 && spec->n % spec->group == 0;
	case MSCCL_CHAIN:
		return spec->coll == TUTTI_BROADCAST || spec->coll == TUTTI_REDUCE;
	case MSCCL_KINDS:
		break;
	}
	return false;
}

static void print_tb(struct tti_strbuf *out, const struct tb *tb, int id)
{
	tti_strbuf_addf(out, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", id,
			tb->send, tb->recv, tb->chan);
	for (int s = 0; s < tb->nsteps; s++) {
		const struct step *at = &tb->step[s];

		tti_strbuf_addf(out,
				"      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" "
				"dstbuf=\"%c\" dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" "
				"hasdep=\"%d\"/>\n",
				s, at->type, at->srcbuf, at->srcoff, at->dstbuf, at->dstoff,
				at->cnt, at->depid, at->deps, at->hasdep);
	}
	tti_strbuf_add(out, "    </tb>\n");
}

static void print_gpu(struct tti_strbuf *out, const struct file *file, int rank)
{
	const struct msccl_spec *spec = file->spec;
	const struct gpu *gpu = &file->gpu[rank];
	int in = file->nchunks, result = file->nchunks;

	if (spec->coll == TUTTI_ALL_GATHER)
		in /= spec->n;
	if (spec->coll == TUTTI_REDUCE_SCATTER)
		result /= spec->n;
	if (!spec->in_place && spec->coll == TUTTI_BROADCAST && rank != spec->root)
		in = 0;
	if (!spec->in_place && spec->coll == TUTTI_REDUCE && rank != spec->root)
		result = 0;
	tti_strbuf_addf(out, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n",
			rank, in, result, gpu->scratch);
	for (int t = 0; t < gpu->ntbs; t++)
		print_tb(out, gpu->tb[t], t);
	tti_strbuf_add(out, "  </gpu>\n");
}

static void make(struct file *file)
{
	switch (file->spec->kind) {
	case MSCCL_RING:
		rings(file);
		break;
	case MSCCL_ALL_PAIRS:
		pairs(file);
		break;
	case MSCCL_EXCHANGE:
		if (file->spec->coll == TUTTI_ALL_TO_ALL)
			all_to_all(file);
		else
			exchange(file);
		break;
	case MSCCL_HALVING:
		halving(file);
		break;
	case MSCCL_HIERARCHICAL:
		hierarchical(file);
		break;
	case MSCCL_CHAIN:
	case MSCCL_KINDS:
		chain(file);
		break;
	}
}

char *msccl_text(const struct msccl_spec *spec)
{
	static const char *const kinds[] = { "ring",    "all_pairs",    "exchange",
					     "halving", "hierarchical", "chain" };
	static const char *const colls[TUTTI_COLLECTIVE_COUNT] = {
		[TUTTI_ALL_REDUCE] = "allreduce",
		[TUTTI_ALL_GATHER] = "allgather",
		[TUTTI_REDUCE_SCATTER] = "reducescatter",
		[TUTTI_BROADCAST] = "broadcast",
		[TUTTI_REDUCE] = "reduce",
		[TUTTI_ALL_TO_ALL] = "alltoall",
	};
	struct file file = { spec, calloc((size_t)spec->n, sizeof(struct gpu)), 0 };
	struct tti_strbuf out = { 0 };

	if (!file.gpu)
		abort();
	make(&file);
	tti_strbuf_addf(&out,
			"<algo name=\"my_%s\" proto=\"Simple\" nchannels=\"%d\" "
			"nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"%s\" inplace=\"%d\" "
			"outofplace=\"%d\" minBytes=\"%lld\" maxBytes=\"%lld\" root=\"%d\">\n",
			kinds[spec->kind], spec->channels + 1, file.nchunks, spec->n,
			colls[spec->coll], spec->in_place, !spec->in_place, spec->min_bytes,
			spec->max_bytes, spec->root);
	for (int rank = 0; rank < spec->n; rank++) {
		print_gpu(&out, &file, rank);
		for (int t = 0; t < file.gpu[rank].ntbs; t++)
			free(file.gpu[rank].tb[t]);
	}
	tti_strbuf_add(&out, "</algo>\n");
	free(file.gpu);
	return tti_strbuf_take(&out);
}
