/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/connect/connect.h"

#include <math.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* Where channels of several kinds overlap by chance in less than this share, the
 * stretch is left out: it would cost a channel. */
#define LEAST_SHARE 0.0005
#define STEP_GBPS   1e-5

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "channels over all nodes: out of memory");
}

static double round_down(double gbps)
{
	return floor(gbps / STEP_GBPS + 0.02) * STEP_GBPS;
}

/* -- Stretches --------------------------------------------------------------------- */

static double least_total(const struct tti_connect *connect)
{
	double least = INFINITY;

	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		least = fmin(least, connect->kinds[kind].search->total_gbps);
	return least;
}

/* Take the channel before at[] of each kind. */
static tutti_status push_stretch(const struct tti_connect *connect, const uint32_t *at, double gbps,
				 struct tti_stretch *out)
{
	uint32_t *channel = tti_arena_alloc(connect->arena, connect->nkinds * sizeof(*channel));

	if (!channel)
		return no_memory();
	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		channel[kind] = at[kind] - 1;
	*out = (struct tti_stretch){ round_down(gbps), channel };
	return TUTTI_OK;
}

/* Where one ends in any kind, a new one begins. */
static tutti_status side_by_side(const struct tti_connect *connect, struct tti_stretch *out,
				 uint32_t *n_out)
{
	const double total = least_total(connect);
	uint32_t *at = tti_arena_alloc(connect->arena, connect->nkinds * sizeof(*at));
	double *left = tti_arena_alloc(connect->arena, connect->nkinds * sizeof(*left));
	double begin = 0;

	*n_out = 0;
	if (!at || !left)
		return no_memory();
	while (begin < total * (1 - 1e-9)) {
		double gbps = total - begin;

		for (uint32_t kind = 0; kind < connect->nkinds; kind++) {
			const struct tti_local *search = connect->kinds[kind].search;

			if (left[kind] <= STEP_GBPS / 2 && at[kind] < search->nchannels)
				left[kind] += (double)search->channels[at[kind]++].bw_gbps;
			gbps = fmin(gbps, left[kind]);
		}
		if (gbps <= 0)
			break;
		for (uint32_t kind = 0; kind < connect->nkinds; kind++)
			left[kind] -= gbps;
		begin += gbps;
		if (connect->nkinds == 1 || gbps >= LEAST_SHARE * total)
			TTI_TRY(push_stretch(connect, at, gbps, &out[(*n_out)++]));
	}
	return TUTTI_OK;
}

/* The first of every kind, the second of every kind ... */
static tutti_status one_by_one(const struct tti_connect *connect, uint32_t most,
			       struct tti_stretch *out, uint32_t *n_out)
{
	uint32_t *at = tti_arena_alloc(connect->arena, connect->nkinds * sizeof(*at));
	uint32_t n = most;

	if (!at)
		return no_memory();
	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		if (connect->kinds[kind].search->nchannels < n)
			n = connect->kinds[kind].search->nchannels;
	for (uint32_t i = 0; i < n; i++) {
		double gbps = INFINITY;

		for (uint32_t kind = 0; kind < connect->nkinds; kind++) {
			at[kind] = i + 1;
			gbps = fmin(gbps, (double)connect->kinds[kind].search->channels[i].bw_gbps);
		}
		TTI_TRY(push_stretch(connect, at, gbps, &out[i]));
	}
	*n_out = n;
	return TUTTI_OK;
}

static struct tti_score score_of(const struct tti_stretch *stretches, uint32_t n)
{
	struct tti_score score = { .nchannels = n };

	for (uint32_t i = 0; i < n; i++)
		score.gbps += stretches[i].gbps;
	return score;
}

tutti_status tti_stretches(const struct tti_connect *connect, uint32_t most,
			   struct tti_stretch **out, uint32_t *n_out)
{
	const double least = least_total(connect) * (1 - TTI_SCORE_WORTH);
	struct tti_stretch *other;
	struct tti_score a, b;
	uint32_t room = 1, n = 0;

	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		room += connect->kinds[kind].search->nchannels;
	*out = tti_arena_alloc(connect->arena, room * sizeof(**out));
	other = tti_arena_alloc(connect->arena, room * sizeof(*other));
	if (!*out || !other)
		return no_memory();
	TTI_TRY(side_by_side(connect, *out, n_out));
	if (connect->nkinds == 1)
		return TUTTI_OK;
	TTI_TRY(one_by_one(connect, most, other, &n));
	a = score_of(*out, *n_out);
	b = score_of(other, n);
	if (*n_out > most || tti_score_better(&b, &a, least)) {
		*out = other;
		*n_out = n;
	}
	return TUTTI_OK;
}

/* -- Rings ------------------------------------------------------------------------- */

/* Which channel of its kind the node at a place runs in a stretch: every second node
 * goes the other way round in a plan of mirrored pairs. */
static const struct tti_channel *channel_at(const struct tti_connect *connect, uint32_t place,
					    const struct tti_stretch *stretch)
{
	const uint32_t kind = connect->kind_of[connect->position[place]];
	const struct tti_local *search = connect->kinds[kind].search;
	uint32_t channel = stretch->channel[kind];

	if (search->cross_nic == TTI_CROSS_MIRROR && search->pattern == TTI_PATTERN_RING &&
	    place % 2 == 1 && (channel ^ 1) < search->nchannels)
		channel ^= 1;
	return &search->channels[channel];
}

static void note_types(struct tti_plan_channel *out, const struct tti_channel *channel)
{
	if (channel->type_intra > out->type_intra)
		out->type_intra = channel->type_intra;
	if (channel->type_inter > out->type_inter)
		out->type_inter = channel->type_inter;
}

static tutti_status start_channel(const struct tti_connect *connect, double gbps, uint32_t nranks,
				  bool tree, struct tti_plan_channel *out)
{
	const struct tti_plan_job *job = connect->job;

	*out = (struct tti_plan_channel){ .bw_gbps = (float)gbps, .nranks = nranks };
	out->ranks = tti_arena_alloc(connect->arena, nranks * sizeof(*out->ranks));
	if (tree)
		out->parent = tti_arena_alloc(connect->arena, job->nranks * sizeof(*out->parent));
	if (job->nnodes > 1)
		out->ends = tti_arena_alloc(connect->arena, job->nnodes * sizeof(*out->ends));
	if (!out->ranks || (tree && !out->parent) || (job->nnodes > 1 && !out->ends))
		return no_memory();
	return TUTTI_OK;
}

static void note_end(struct tti_plan_channel *out, uint32_t node, const struct tti_channel *channel)
{
	if (out->ends)
		out->ends[node] = (struct tti_plan_end){ (int32_t)channel->net_in,
							 (int32_t)channel->net_out };
	note_types(out, channel);
}

/* Hops over NICs inside a node, of a job of one. */
static tutti_status note_ways(const struct tti_connect *connect, struct tti_plan_channel *out,
			      uint32_t node, const struct tti_channel *channel)
{
	const struct tti_job_node *this = &connect->job->nodes[node];

	if (!channel->way)
		return TUTTI_OK;
	out->ways = tti_arena_alloc(connect->arena, connect->job->nranks * sizeof(*out->ways));
	if (!out->ways)
		return no_memory();
	for (uint32_t i = 0; i < this->nranks; i++)
		out->ways[this->ranks[i]] =
			(struct tti_plan_end){ .in = (int32_t)channel->way[i].in,
					       .out = (int32_t)channel->way[i].out };
	return TUTTI_OK;
}

static tutti_status ring(const struct tti_connect *connect, const struct tti_stretch *stretch,
			 struct tti_plan_channel *out)
{
	uint32_t count = 0;

	TTI_TRY(start_channel(connect, stretch->gbps, connect->job->nranks, false, out));
	for (uint32_t place = 0; place < connect->job->nnodes; place++) {
		const uint32_t node = connect->position[place];
		const struct tti_channel *channel = channel_at(connect, place, stretch);

		for (uint32_t i = 0; i < connect->job->nodes[node].nranks; i++)
			out->ranks[count++] = connect->job->nodes[node].ranks[channel->order[i]];
		note_end(out, node, channel);
		TTI_TRY(note_ways(connect, out, node, channel));
	}
	return TUTTI_OK;
}

static tutti_status make_room(const struct tti_connect *connect, struct tti_plan_pattern *pattern,
			      uint32_t n)
{
	pattern->channels = tti_arena_alloc(connect->arena, n * sizeof(*pattern->channels) + 1);
	return pattern->channels ? TUTTI_OK : no_memory();
}

/* Into how many equal parts stretch `i` of n is cut, so that there are `least`: the first, which
 * carry most, into one more than the others. */
static uint32_t parts_of(uint32_t i, uint32_t n, uint32_t least)
{
	return n >= least ? 1 : least / n + (i < least % n);
}

/* The most stretches, each of which goes into `pair` channels. */
static uint32_t most_stretches(const struct tti_connect *connect, uint32_t pair)
{
	uint32_t most = connect->max_channels / pair;

	if (connect->max_channels)
		return most > 0 ? most : 1;
	most = TTI_MOST_CHANNELS / pair;
	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		if (connect->kinds[kind].search->nchannels > most)
			most = connect->kinds[kind].search->nchannels;
	return most;
}

/* Stretches, cut into parts where more channels are asked for. */
static tutti_status parts(const struct tti_connect *connect, uint32_t pair,
			  struct tti_stretch **out, uint32_t *n_out)
{
	const uint32_t most = most_stretches(connect, pair);
	struct tti_stretch *stretches;
	uint32_t n, least = (connect->min_channels + pair - 1) / pair;

	TTI_TRY(tti_stretches(connect, most, &stretches, &n));
	least = least < most || connect->max_channels == 0 ? least : most;
	*n_out = 0;
	*out = tti_arena_alloc(connect->arena, (n > least ? n : least) * sizeof(**out) + 1);
	if (!*out)
		return no_memory();
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t count = parts_of(i, n, least);
		const double gbps = round_down(stretches[i].gbps / count / pair);

		for (uint32_t k = 0; gbps > 0 && k < count; k++)
			(*out)[(*n_out)++] = (struct tti_stretch){ gbps, stretches[i].channel };
	}
	return TUTTI_OK;
}

tutti_status tti_connect_rings(const struct tti_connect *connect, struct tti_plan_pattern *pattern)
{
	struct tti_stretch *stretches = NULL;
	uint32_t n;

	TTI_TRY(parts(connect, 1, &stretches, &n));
	TTI_TRY(make_room(connect, pattern, n));
	for (uint32_t i = 0; i < n; i++) {
		TTI_TRY(ring(connect, &stretches[i], &pattern->channels[i]));
		pattern->nchannels++;
	}
	pattern->total_gbps = tti_plan_total(pattern);
	return TUTTI_OK;
}

/* -- Trees ------------------------------------------------------------------------- */

/* The top of the tree over the places lo .. lo+len-1, lo even: an odd place as near to
 * the middle as there is, so that both sides begin with an even one, and even places are
 * leaves. UINT32_MAX: there are none. */
static uint32_t top(uint32_t lo, uint32_t len)
{
	if (len <= 1)
		return len ? lo : UINT32_MAX;
	return lo + (((len - 1) / 2) | 1);
}

/* A search tree, here over 6 places:
 *
 *            3
 *          /   \
 *         1     5
 *        / \   /
 *       0   2 4
 */
static struct tti_tree_place binary_tree(uint32_t n, uint32_t place)
{
	uint32_t lo = 0, len = n, here = top(lo, len);
	struct tti_tree_place at = { .parent = UINT32_MAX };

	while (here != place) {
		at.parent = here;
		at.which = place > here;
		if (place < here) {
			len = here - lo;
		} else {
			len -= here + 1 - lo;
			lo = here + 1;
		}
		here = top(lo, len);
	}
	at.child[0] = top(lo, here - lo);
	at.child[1] = top(here + 1, lo + len - here - 1);
	return at;
}

static uint32_t from_second(uint32_t n, uint32_t place)
{
	if (place == UINT32_MAX)
		return place;
	return n % 2 == 0 ? n - 1 - place : (place + 1) % n;
}

static uint32_t to_second(uint32_t n, uint32_t place)
{
	return n % 2 == 0 ? n - 1 - place : (place + n - 1) % n;
}

struct tti_tree_place tti_double_tree(uint32_t n, uint32_t place, bool second)
{
	struct tti_tree_place at = binary_tree(n, second ? to_second(n, place) : place);

	if (second) {
		at.parent = from_second(n, at.parent);
		at.child[0] = from_second(n, at.child[0]);
		at.child[1] = from_second(n, at.child[1]);
	}
	return at;
}

/* Which rank of a node its children at other nodes hang on. */
static uint32_t hook(const struct tti_connect *connect, enum tti_pattern pattern, uint32_t node,
		     const struct tti_channel *channel, uint32_t which)
{
	const uint32_t root = channel->order[0];
	const uint32_t second = channel->second == UINT32_MAX ? root : channel->second;
	uint32_t member = root;

	if (pattern == TTI_PATTERN_SPLIT_TREE ||
	    (pattern == TTI_PATTERN_BALANCED_TREE && which == 0))
		member = second;
	return connect->job->nodes[node].ranks[member];
}

static uint32_t parent_elsewhere(const struct tti_connect *connect, enum tti_pattern pattern,
				 uint32_t place, const struct tti_stretch *stretch, bool second)
{
	struct tti_tree_place at;

	if (pattern == TTI_PATTERN_COLLNET_CHAIN)
		return UINT32_MAX;
	at = tti_double_tree(connect->job->nnodes, place, second);
	if (at.parent == UINT32_MAX)
		return UINT32_MAX;
	return hook(connect, pattern, connect->position[at.parent],
		    channel_at(connect, at.parent, stretch), at.which);
}

/* Parents before children: by depth, counted along the parents. */
static tutti_status order_by_depth(const struct tti_connect *connect, struct tti_plan_channel *out)
{
	const uint32_t n = connect->job->nranks;
	uint32_t *first = tti_calloc(2 * (size_t)n + 1, sizeof(*first));
	uint32_t *next, count = 0;

	if (!first)
		return no_memory();
	next = first + n;
	for (uint32_t i = 0; i < 2 * n; i++)
		first[i] = UINT32_MAX;
	for (uint32_t rank = n; rank-- > 0;)
		if (out->parent[rank] != UINT32_MAX) {
			next[rank] = first[out->parent[rank]];
			first[out->parent[rank]] = rank;
		}
	for (uint32_t rank = 0; rank < n; rank++)
		if (out->parent[rank] == UINT32_MAX)
			out->ranks[count++] = rank;
	for (uint32_t at = 0; at < count; at++)
		for (uint32_t rank = first[out->ranks[at]]; rank != UINT32_MAX; rank = next[rank])
			out->ranks[count++] = rank;
	tti_free(first);
	return count == n ? TUTTI_OK
			  : tti_fail(TUTTI_EINTERNAL, "a tree reaches %u of %u ranks", count, n);
}

static tutti_status tree(const struct tti_connect *connect, enum tti_pattern pattern,
			 const struct tti_stretch *stretch, bool second,
			 struct tti_plan_channel *out)
{
	TTI_TRY(start_channel(connect, stretch->gbps, connect->job->nranks, true, out));
	for (uint32_t place = 0; place < connect->job->nnodes; place++) {
		const uint32_t node = connect->position[place];
		const uint32_t *ranks = connect->job->nodes[node].ranks;
		const struct tti_channel *channel = channel_at(connect, place, stretch);

		for (uint32_t i = 0; i < connect->job->nodes[node].nranks; i++)
			out->parent[ranks[i]] = channel->parent[i] != UINT32_MAX
							? ranks[channel->parent[i]]
							: parent_elsewhere(connect, pattern, place,
									   stretch, second);
		note_end(out, node, channel);
		TTI_TRY(note_ways(connect, out, node, channel));
	}
	return order_by_depth(connect, out);
}

tutti_status tti_connect_trees(const struct tti_connect *connect, struct tti_plan_pattern *pattern)
{
	const uint32_t pair = tti_trees_in_pairs(pattern->pattern, connect->job->nnodes) ? 2 : 1;
	struct tti_stretch *stretches = NULL;
	uint32_t n;

	TTI_TRY(parts(connect, pair, &stretches, &n));
	TTI_TRY(make_room(connect, pattern, n * pair));
	for (uint32_t i = 0; i < n * pair; i++) {
		TTI_TRY(tree(connect, pattern->pattern, &stretches[i / pair],
			     pair == 2 && i % 2 == 1, &pattern->channels[i]));
		pattern->nchannels++;
	}
	pattern->total_gbps = tti_plan_total(pattern);
	return TUTTI_OK;
}

/* -- Heads ------------------------------------------------------------------------- */

/* The k-th head of every node, as many as the node with the fewest has. */
tutti_status tti_connect_heads(const struct tti_connect *connect, struct tti_plan_pattern *pattern)
{
	uint32_t nheads = UINT32_MAX;

	for (uint32_t kind = 0; kind < connect->nkinds; kind++)
		if (connect->kinds[kind].search->nchannels < nheads)
			nheads = connect->kinds[kind].search->nchannels;
	TTI_TRY(make_room(connect, pattern, nheads));
	for (uint32_t head = 0; head < nheads; head++) {
		struct tti_plan_channel *out = &pattern->channels[head];
		double gbps = INFINITY;

		for (uint32_t kind = 0; kind < connect->nkinds; kind++)
			gbps = fmin(gbps,
				    (double)connect->kinds[kind].search->channels[head].bw_gbps);
		TTI_TRY(start_channel(connect, gbps, connect->job->nnodes, false, out));
		for (uint32_t place = 0; place < connect->job->nnodes; place++) {
			const uint32_t node = connect->position[place];
			const struct tti_local *search =
				connect->kinds[connect->kind_of[node]].search;
			const struct tti_channel *channel = &search->channels[head];

			out->ranks[place] = connect->job->nodes[node].ranks[channel->order[0]];
			note_end(out, node, channel);
		}
		pattern->nchannels++;
	}
	pattern->total_gbps = tti_plan_total(pattern);
	return TUTTI_OK;
}
