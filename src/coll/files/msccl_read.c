/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads <algo>, <gpu> and <tb>, and checks of each what can be checked without the others. */
#include "coll/files/msccl_file.h"

#include <string.h>

#include "coll/files/msccl.h"
#include "util/error.h"
#include "util/mem.h"

void tti_msccl_release(struct tti_msccl *m)
{
	tti_xml_free(m->doc);
	tti_free(m->gpu);
	tti_vec_release(&m->tbs);
	tti_vec_release(&m->steps);
	memset(m, 0, sizeof(*m));
}

/* -- Places ------------------------------------------------------------------------ */

enum tti_holder tti_msccl_holder(const struct tti_msccl *m, uint8_t buf)
{
	const struct tti_collective *what = tti_collective_get(m->coll);

	return buf == TTI_MSCCL_INPUT ? what->input : what->output;
}

/* Each rank has room for twice the vector, and its scratch. */
int32_t tti_msccl_place(const struct tti_msccl *m, int rank, uint8_t buf, int32_t off)
{
	const int32_t base = m->gpu[rank].places, own = rank * (m->nchunks / m->n);

	if (buf == TTI_MSCCL_SCRATCH)
		return base + 2 * m->nchunks + off;
	if (!m->in_place)
		return base + (buf == TTI_MSCCL_OUTPUT ? m->nchunks : 0) + off;
	if (tti_msccl_holder(m, buf) == TTI_HOLDER_OWNER)
		off += own;
	return base + off;
}

/* -- <algo> ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	tutti_collective coll;
} collectives[] = {
	{ "allreduce", TUTTI_ALL_REDUCE },         { "allgather", TUTTI_ALL_GATHER },
	{ "reducescatter", TUTTI_REDUCE_SCATTER }, { "reduce_scatter", TUTTI_REDUCE_SCATTER },
	{ "broadcast", TUTTI_BROADCAST },          { "reduce", TUTTI_REDUCE },
	{ "alltoall", TUTTI_ALL_TO_ALL },
};
#define NCOLLECTIVES (sizeof(collectives) / sizeof(collectives[0]))

static tutti_status read_collective(struct tti_msccl *m)
{
	const char *names[NCOLLECTIVES];
	int which = 0;

	for (size_t i = 0; i < NCOLLECTIVES; i++)
		names[i] = collectives[i].name;
	TTI_TRY(tti_msccl_word(m, m->doc->root, "coll", names, NCOLLECTIVES, &which));
	m->coll = collectives[which].coll;
	return TUTTI_OK;
}

static bool is_name(const char *text)
{
	const size_t len = text ? strlen(text) : 0;

	if (len < 1 || len >= sizeof(((struct tti_msccl_head *)NULL)->name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= 'A' && text[i] <= 'Z') &&
		    !(text[i] >= '0' && text[i] <= '9') && !strchr("_-.", text[i]))
			return false;
	return true;
}

/* minBytes and maxBytes. A maximum that is 0 or absent means that there is no limit. */
static tutti_status read_sizes(struct tti_msccl *m)
{
	const struct tti_xml *node = m->doc->root;
	int64_t min, max;

	TTI_TRY(tti_xml_int(m->doc, node, "minBytes", 0, INT64_MAX, 0, &min));
	TTI_TRY(tti_xml_int(m->doc, node, "maxBytes", 0, INT64_MAX, 0, &max));
	if (max > 0 && max < min)
		return tti_xml_fail(m->doc, node, "maxBytes %lld is less than minBytes %lld",
				    (long long)max, (long long)min);
	m->min_bytes = (size_t)min;
	m->max_bytes = max > 0 ? (size_t)max : SIZE_MAX;
	return TUTTI_OK;
}

static tutti_status read_place(struct tti_msccl *m)
{
	const struct tti_xml *node = m->doc->root;
	int64_t in, out;

	TTI_TRY(tti_xml_int(m->doc, node, "inplace", 0, 1, 0, &in));
	TTI_TRY(tti_xml_int(m->doc, node, "outofplace", 0, 1, !in, &out));
	if (!in && !out)
		return tti_xml_fail(m->doc, node,
				    "inplace and outofplace are both 0: it is for no call");
	/* A file for both kinds of call must not rely on input and output being one memory. */
	m->in_place = !out;
	return TUTTI_OK;
}

static tutti_status read_algo(struct tti_msccl *m)
{
	static const char *const protocols[] = { "Simple", "LL", "LL128" };
	const struct tti_xml *node = m->doc->root;
	int64_t root;
	int proto = 0;

	if (!tti_xml_is(node, "algo"))
		return tti_xml_fail(m->doc, node, "an algorithm begins with <algo>");
	TTI_TRY(tti_msccl_children(m, node, "gpu"));
	m->name = tti_xml_get(node, "name");
	if (!is_name(m->name))
		return tti_xml_fail(m->doc, node,
				    "name must be 1 to 63 letters, digits, or of _ - .");
	TTI_TRY(tti_msccl_word(m, node, "proto", protocols, 3, &proto));
	TTI_TRY(read_collective(m));
	TTI_TRY(tti_msccl_number(m, node, "ngpus", 1, TTI_MSCCL_RANKS_MAX, &m->n));
	TTI_TRY(tti_msccl_number(m, node, "nchannels", 1, TTI_MSCCL_CHUNKS_MAX, &m->nchannels));
	TTI_TRY(tti_msccl_number(m, node, "nchunksperloop", 1, TTI_MSCCL_CHUNKS_MAX, &m->nchunks));
	TTI_TRY(tti_xml_int(m->doc, node, "root", 0, m->n - 1, 0, &root));
	m->root = (int32_t)root;
	if ((tti_collective_is_by_rank(m->coll) || tti_collective_is_by_pair(m->coll)) &&
	    m->nchunks % m->n != 0)
		return tti_xml_fail(m->doc, node,
				    "nchunksperloop %d of %s must be a multiple of ngpus %d",
				    m->nchunks, tutti_collective_name(m->coll), m->n);
	m->nvalues = tti_collective_is_by_pair(m->coll) ? m->n * m->nchunks : m->nchunks;
	if ((int64_t)m->n * m->nvalues > TTI_MSCCL_PLACES_MAX)
		return tti_xml_fail(m->doc, node,
				    "%d ranks of %d chunks: at most %d in all are possible", m->n,
				    m->nvalues, TTI_MSCCL_PLACES_MAX);
	TTI_TRY(read_place(m));
	return read_sizes(m);
}

/* -- <gpu>, <tb> ------------------------------------------------------------------- */

static int32_t chunks_of(const struct tti_msccl *m, int rank, uint8_t buf)
{
	switch (tti_msccl_holder(m, buf)) {
	case TTI_HOLDER_ROOT:
		return rank == m->root || m->in_place ? m->nchunks : 0;
	case TTI_HOLDER_OWNER:
		return m->nchunks / m->n;
	case TTI_HOLDER_ALL:
	case TTI_HOLDER_PAIR:
	case TTI_HOLDER_STATED:
		break;
	}
	return m->nchunks;
}

/* Check the number of chunks of the input or the output; where both are one memory it may be 0. */
static tutti_status check_chunks(const struct tti_msccl *m, const struct tti_msccl_gpu *gpu,
				 int rank)
{
	const int32_t want[] = { chunks_of(m, rank, TTI_MSCCL_INPUT),
				 chunks_of(m, rank, TTI_MSCCL_OUTPUT) };
	static const char *const names[] = { "i_chunks", "o_chunks" };

	for (int buf = 0; buf < 2; buf++)
		if (gpu->chunks[buf] != want[buf] && gpu->chunks[buf] != 0)
			return tti_xml_fail(m->doc, gpu->node,
					    "%s is %d, but %s of %d ranks in %d "
					    "chunks has %d there",
					    names[buf], gpu->chunks[buf],
					    tutti_collective_name(m->coll), m->n, m->nchunks,
					    want[buf]);
	for (int buf = 0; buf < 2 && !m->in_place; buf++)
		if (gpu->chunks[buf] != want[buf])
			return tti_xml_fail(m->doc, gpu->node,
					    "%s is 0, but must be %d as outofplace is 1",
					    names[buf], want[buf]);
	return TUTTI_OK;
}

static tutti_status read_gpu(struct tti_msccl *m, const struct tti_xml *node, int *id_out)
{
	struct tti_msccl_gpu *gpu;
	int32_t id = 0;

	TTI_TRY(tti_msccl_number(m, node, "id", 0, m->n - 1, &id));
	gpu = &m->gpu[id];
	if (gpu->node)
		return tti_xml_fail(m->doc, node, "gpu %d was on line %u before", id,
				    gpu->node->line);
	gpu->node = node;
	TTI_TRY(tti_msccl_number(m, node, "i_chunks", 0, TTI_MSCCL_CHUNKS_MAX, &gpu->chunks[0]));
	TTI_TRY(tti_msccl_number(m, node, "o_chunks", 0, TTI_MSCCL_CHUNKS_MAX, &gpu->chunks[1]));
	TTI_TRY(tti_msccl_number(m, node, "s_chunks", 0, TTI_MSCCL_CHUNKS_MAX, &gpu->chunks[2]));
	TTI_TRY(check_chunks(m, gpu, id));
	*id_out = id;
	return tti_msccl_children(m, node, "tb");
}

static tutti_status read_tb(struct tti_msccl *m, const struct tti_xml *node, int32_t rank)
{
	struct tti_msccl_tb tb = { .node = node, .gpu = rank, .first = (int32_t)m->steps.n };
	struct tti_msccl_gpu *gpu = &m->gpu[rank];

	TTI_TRY(tti_msccl_number(m, node, "id", 0, TTI_MSCCL_TBS_MAX - 1, &tb.id));
	TTI_TRY(tti_msccl_number(m, node, "send", -1, m->n - 1, &tb.send));
	TTI_TRY(tti_msccl_number(m, node, "recv", -1, m->n - 1, &tb.recv));
	TTI_TRY(tti_msccl_number(m, node, "chan", 0, m->nchannels - 1, &tb.chan));
	if (tb.send == rank || tb.recv == rank)
		return tti_xml_fail(m->doc, node, "tb %d of gpu %d talks to its own gpu", tb.id,
				    rank);
	for (int32_t i = gpu->first; i < gpu->first + gpu->n; i++)
		if (m->tbs.at[i].id == tb.id)
			return tti_xml_fail(m->doc, node, "gpu %d has tb %d on line %u already",
					    rank, tb.id, m->tbs.at[i].node->line);
	if (gpu->n == TTI_MSCCL_TBS_MAX)
		return tti_xml_fail(m->doc, node, "gpu %d has more than %d thread blocks", rank,
				    TTI_MSCCL_TBS_MAX);
	if (!tti_vec_push(&m->tbs, tb))
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", m->doc->source);
	gpu->n++;
	return tti_msccl_children(m, node, "step");
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status read_gpus(struct tti_msccl *m)
{
	m->gpu = tti_calloc((size_t)m->n, sizeof(*m->gpu));
	if (!m->gpu)
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", m->doc->source);
	for (const struct tti_xml *gpu = tti_xml_find(m->doc->root, "gpu", NULL, NULL); gpu;
	     gpu = tti_xml_next(gpu, "gpu")) {
		int rank = 0;

		TTI_TRY(read_gpu(m, gpu, &rank));
		m->gpu[rank].places = (int32_t)m->nplaces;
		m->nplaces +=
			2 * (size_t)m->nchunks + (size_t)m->gpu[rank].chunks[TTI_MSCCL_SCRATCH];
		if (m->nplaces > TTI_MSCCL_PLACES_MAX)
			return tti_xml_fail(m->doc, gpu,
					    "up to here buffers have %zu chunks: at "
					    "most %d are possible",
					    m->nplaces, TTI_MSCCL_PLACES_MAX);
		m->gpu[rank].first = (int32_t)m->tbs.n;
		for (const struct tti_xml *tb = tti_xml_find(gpu, "tb", NULL, NULL); tb;
		     tb = tti_xml_next(tb, "tb")) {
			TTI_TRY(read_tb(m, tb, rank));
			for (const struct tti_xml *step = tti_xml_find(tb, "step", NULL, NULL);
			     step; step = tti_xml_next(step, "step"))
				TTI_TRY(tti_msccl_read_step(m, step, (int32_t)m->tbs.n - 1));
		}
	}
	for (int rank = 0; rank < m->n; rank++)
		if (!m->gpu[rank].node)
			return tti_xml_fail(m->doc, m->doc->root, "gpu %d of ngpus %d is missing",
					    rank, m->n);
	return TUTTI_OK;
}

tutti_status tti_msccl_parse(struct tti_xml_doc *doc, struct tti_msccl *out)
{
	*out = (struct tti_msccl){ .doc = doc };
	TTI_TRY(read_algo(out));
	TTI_TRY(read_gpus(out));
	for (size_t i = 0; i < out->steps.n; i++)
		TTI_TRY(tti_msccl_find_dependency(out, (int32_t)i));
	return TUTTI_OK;
}
