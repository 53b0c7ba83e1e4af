/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/handoff.h"

#include "coll/handoff_hosts.h"
#include "util/error.h"

/* Each chunk goes down a tree of its own: from a rank that holds it to one rank of each
 * host that needs it, the host's server for this chunk, and from there to all others of
 * the host. All ranks emit their steps chunk by chunk, what comes in before what goes
 * out; so whoever waits, waits for somebody who is at the same chunk nearer to its root, or
 * at an earlier one. */

struct view {
	const struct tti_handoff *handoff;
	const struct tti_handoff_pairs *pairs;
	struct tti_handoff_hosts hosts;
	/* Which pairs are a host's: npairs[h] from first_pair[h] on. */
	int32_t *first_pair, *npairs;
	bool whole; /* both sides */
};

static void close_view(struct view *v)
{
	tti_handoff_hosts_release(&v->hosts);
}

static tutti_status open_view(const struct tti_handoff *handoff,
			      const struct tti_handoff_pairs *pairs, struct view *out)
{
	struct view v = { .handoff = handoff,
			  .pairs = pairs,
			  .whole = !tti_handoff_is_cut(&handoff->from) &&
				   !tti_handoff_is_cut(&handoff->to) };
	size_t nbytes;

	TTI_TRY(tti_handoff_pairs_check(handoff, pairs));
	TTI_TRY(tti_handoff_hosts_find(handoff, &v.hosts));
	nbytes = (size_t)v.hosts.nhosts * sizeof(int32_t);
	v.first_pair = tti_arena_alloc(&v.hosts.arena, nbytes);
	v.npairs = tti_arena_alloc(&v.hosts.arena, nbytes);
	if (!v.first_pair || !v.npairs) {
		close_view(&v);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", handoff->n);
	}
	for (size_t i = 0; i < pairs->list.n; i++) {
		const int32_t host = v.hosts.of[pairs->list.at[i].to];

		if (v.npairs[host]++ == 0)
			v.first_pair[host] = (int32_t)i;
	}
	*out = v;
	return TUTTI_OK;
}

/* -- Who has it, who shall have it ---------------------------------------------------- */

static bool is_on(const struct tti_handoff_members *members, int32_t part, int32_t rank)
{
	return members->place[rank] >= 0 && (part < 0 || members->place[rank] == part);
}

static bool holds(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t rank)
{
	return is_on(&v->hosts.from, chunk->source, rank);
}

static bool wants(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t rank)
{
	return is_on(&v->hosts.to, chunk->dest, rank);
}

/* A rank of the host that holds the chunk, another one for each `turn`; -1: none. */
static int32_t holder_on(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t host,
			 int32_t turn)
{
	const int32_t count = tti_handoff_count(&v->hosts.from, host);
	int32_t owner;

	if (chunk->source < 0)
		return count ? tti_handoff_ranks(&v->hosts.from, host)[turn % count] : -1;
	owner = v->handoff->from.ranks[chunk->source];
	return v->hosts.of[owner] == host ? owner : -1;
}

/* -- Between hosts ---------------------------------------------------------------------- */

/* The pair that brings a stripe to its host. */
static const struct tti_handoff_pair *pair_of(const struct view *v,
					      const struct tti_handoff_chunk *chunk, int32_t host)
{
	const struct tti_handoff_pair *pair = &v->pairs->list.at[v->first_pair[host]];
	uint64_t sum = 0, until = 0;

	for (int32_t i = 0; i < v->npairs[host]; i++)
		sum += pair[i].share;
	/* The last one that begins where the chunk does, or before. */
	while ((until + pair->share) * chunk->den <= chunk->num * sum) {
		until += pair->share;
		pair++;
	}
	return pair;
}

/* Who lets a chunk in that a single rank has: the ranks of its pairs in turn, or all. */
static int32_t door(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t host)
{
	if (v->npairs[host])
		return v->pairs->list.at[v->first_pair[host] + chunk->source % v->npairs[host]].to;
	return tti_handoff_ranks(&v->hosts.to_doors,
				 host)[chunk->source % tti_handoff_count(&v->hosts.to_doors, host)];
}

/* The rank of a receiving host that gives the chunk to all others of it. */
static int32_t server_of(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
			 int32_t host)
{
	const int32_t holder = holder_on(v, chunk, host, index);

	if (holder >= 0)
		return holder;
	return v->whole ? pair_of(v, chunk, host)->to : door(v, chunk, host);
}

/* Who sends the chunk to the server of a host without a holder. What one rank has goes
 * round the receiving hosts, from the one after its own on: as many such chunks do
 * from hosts of their own, every host sends as often as it receives. */
static int32_t feeder_of(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
			 int32_t host)
{
	const int32_t nreceiving = v->hosts.nreceiving;
	int32_t owner, home, first, before;

	if (v->whole)
		return pair_of(v, chunk, host)->from;
	owner = v->handoff->from.ranks[chunk->source];
	home = v->hosts.of[owner];
	first = home < nreceiving ? (home + 1) % nreceiving : 0;
	before = (host + nreceiving - 1) % nreceiving;
	return host == first ? owner : server_of(v, chunk, index, before);
}

/* -- One rank --------------------------------------------------------------------------- */

/* A part that one rank shall have: from a rank of its own host if one holds it. */
static int32_t source_for(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t rank)
{
	const int32_t near = holder_on(v, chunk, v->hosts.of[rank], chunk->dest);

	if (near >= 0)
		return near;
	if (chunk->source >= 0)
		return v->handoff->from.ranks[chunk->source];
	return v->hosts.turn[chunk->dest % v->hosts.nturns];
}

static int32_t parent_of(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
			 int32_t rank)
{
	const int32_t host = v->hosts.of[rank];
	int32_t server;

	if (!wants(v, chunk, rank) || holds(v, chunk, rank))
		return -1;
	if (chunk->dest >= 0)
		return source_for(v, chunk, rank);
	server = server_of(v, chunk, index, host);
	return server != rank ? server : feeder_of(v, chunk, index, host);
}

/* To other hosts first: that takes longest. */
static void send_on(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
		    struct tti_program *prog)
{
	const int32_t rank = prog->rank, own = v->hosts.of[rank];
	const int32_t count = tti_handoff_count(&v->hosts.to, own);
	const int32_t *members = tti_handoff_ranks(&v->hosts.to, own);
	int32_t next = 0;

	for (int32_t host = 0; host < v->hosts.nreceiving; host++)
		if (host != own && holder_on(v, chunk, host, index) < 0 &&
		    feeder_of(v, chunk, index, host) == rank)
			tti_send(prog, index, server_of(v, chunk, index, host));
	if (own >= v->hosts.nreceiving || server_of(v, chunk, index, own) != rank)
		return;
	while (next < count && members[next] <= rank)
		next++;
	for (int32_t i = 0; i < count; i++) {
		const int32_t peer = members[(next + i) % count];

		if (peer != rank && !holds(v, chunk, peer))
			tti_send(prog, index, peer);
	}
}

static void add_chunk(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
		      struct tti_program *prog)
{
	const bool has = holds(v, chunk, prog->rank), gets = wants(v, chunk, prog->rank);
	const int32_t parent = parent_of(v, chunk, index, prog->rank);
	int32_t dest;

	if (!tti_vec_push(&prog->ends,
			  (uint8_t)((has ? TTI_END_INPUT : 0) | (gets ? TTI_END_OUTPUT : 0))))
		prog->failed = true;
	if (parent >= 0)
		tti_recv(prog, index, parent);
	if (chunk->dest < 0 && (has || gets)) {
		send_on(v, chunk, index, prog);
		return;
	}
	dest = chunk->dest < 0 ? -1 : v->handoff->to.ranks[chunk->dest];
	if (has && dest >= 0 && parent_of(v, chunk, index, dest) == prog->rank)
		tti_send(prog, index, dest);
}

tutti_status tti_handoff_program(const struct tti_handoff *handoff,
				 const struct tti_handoff_pairs *pairs,
				 const struct tti_handoff_chunks *chunks, int rank,
				 struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_HANDOFF,
				    .algorithm = "handoff",
				    .rank = rank,
				    .n = handoff->n,
				    .nchunks = (int)chunks->list.n };
	struct view v;

	TTI_TRY(open_view(handoff, pairs, &v));
	for (size_t i = 0; i < chunks->list.n; i++)
		add_chunk(&v, &chunks->list.at[i], (int32_t)i, &prog);
	close_view(&v);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", handoff->n);
	}
	*out = prog;
	return TUTTI_OK;
}

/* -- Depth ------------------------------------------------------------------------------ */

/* How many hosts a stripe passes until it is at each: hosts stand in order. */
static int longest_chain(const struct view *v, int32_t *depth)
{
	int longest = 0;

	for (size_t i = 0; i < v->pairs->list.n; i++) {
		const struct tti_handoff_pair *pair = &v->pairs->list.at[i];
		const int32_t host = v->hosts.of[pair->to];
		const int32_t via = depth[v->hosts.of[pair->from]] + 1;

		depth[host] = via > depth[host] ? via : depth[host];
		longest = depth[host] > longest ? depth[host] : longest;
	}
	return longest;
}

tutti_status tti_handoff_depth(const struct tti_handoff *handoff,
			       const struct tti_handoff_pairs *pairs, int *out)
{
	struct view v;
	int32_t *depth;

	if (tti_handoff_is_cut(&handoff->to)) {
		*out = 1;
		return TUTTI_OK;
	}
	TTI_TRY(open_view(handoff, pairs, &v));
	depth = tti_arena_alloc(&v.hosts.arena, (size_t)v.hosts.nhosts * sizeof(*depth));
	if (depth)
		*out = 1 + (v.whole ? longest_chain(&v, depth) : v.hosts.nreceiving);
	close_view(&v);
	return depth ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "a handoff: out of memory");
}
