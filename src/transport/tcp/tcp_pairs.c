/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_pairs.h"

#include <string.h>

#define NICS TTI_TCP_NICS_MOST
#define NONE 0xff

/* A NIC of less than this part of the fastest one's speed adds nothing that pays. */
#define TOO_SLOW 16

/* -- Ways -------------------------------------------------------------------- */

static bool same_bits(const struct tti_addr *a, const struct tti_addr *b, unsigned bits)
{
	const unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(a->ip, b->ip, bytes) != 0)
		return false;
	return !rest || !((a->ip[bytes] ^ b->ip[bytes]) >> (8 - rest));
}

static unsigned width(const struct tti_addr *addr)
{
	return addr->family == 4 ? 32 : 128;
}

static uint8_t kind_of(const struct tti_tcp_card *mine, size_t from,
		       const struct tti_tcp_card *theirs, size_t to, tti_tcp_leaves *leaves,
		       void *context)
{
	const struct tti_addr *a = &mine->addr[from], *b = &theirs->addr[to];

	if (a->family != b->family || !a->scope != !b->scope || same_bits(a, b, width(a)))
		return TTI_TCP_WAY_NONE;
	if (a->scope)
		return TTI_TCP_WAY_LINK;
	if (same_bits(a, b, mine->prefix[from]) && same_bits(a, b, theirs->prefix[to]))
		return TTI_TCP_WAY_NETWORK;
	return leaves(context, a, b, mine->nic[mine->nic_of[from]].is.index) ? TTI_TCP_WAY_ROUTE
									     : TTI_TCP_WAY_NONE;
}

/* The best way from NIC i to NIC k. */
static struct tti_tcp_way best_way(const struct tti_tcp_card *mine, size_t i,
				   const struct tti_tcp_card *theirs, size_t k,
				   tti_tcp_leaves *leaves, void *context)
{
	struct tti_tcp_way best = { 0 };

	for (size_t from = 0; from < mine->naddrs; from++) {
		if (mine->nic_of[from] != i)
			continue;
		for (size_t to = 0; to < theirs->naddrs; to++) {
			uint8_t kind;

			if (theirs->nic_of[to] != k)
				continue;
			kind = kind_of(mine, from, theirs, to, leaves, context);
			if (kind && (!best.kind || kind < best.kind))
				best = (struct tti_tcp_way){ kind, (uint8_t)from, (uint8_t)to };
			if (best.kind == TTI_TCP_WAY_NETWORK)
				return best;
		}
	}
	return best;
}

static bool is_plain(const struct tti_tcp_nic *a, const struct tti_tcp_nic *b)
{
	return a->is.kind == TTI_IFACE_NIC && b->is.kind == TTI_IFACE_NIC;
}

/* The speed that both claim, 0: unknown. */
static uint32_t mbps(const struct tti_tcp_nic *a, const struct tti_tcp_nic *b)
{
	return a->is.mbps < b->is.mbps ? a->is.mbps : b->is.mbps;
}

static void drop_useless(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			 struct tti_tcp_ways *ways)
{
	bool plain = false, beyond = false;
	uint32_t most = 0;

	for (size_t i = 0; i < mine->nnics; i++)
		for (size_t k = 0; k < theirs->nnics; k++) {
			const uint8_t kind = ways->at[i][k].kind;

			if (!kind || !is_plain(&mine->nic[i], &theirs->nic[k]))
				continue;
			plain = true;
			beyond |= kind < TTI_TCP_WAY_LINK;
			if (mbps(&mine->nic[i], &theirs->nic[k]) > most)
				most = mbps(&mine->nic[i], &theirs->nic[k]);
		}
	for (size_t i = 0; i < mine->nnics; i++)
		for (size_t k = 0; k < theirs->nnics; k++) {
			const uint32_t claim = mbps(&mine->nic[i], &theirs->nic[k]);

			if ((plain && !is_plain(&mine->nic[i], &theirs->nic[k])) ||
			    (beyond && ways->at[i][k].kind == TTI_TCP_WAY_LINK) ||
			    (claim && claim < most / TOO_SLOW))
				ways->at[i][k].kind = TTI_TCP_WAY_NONE;
		}
}

void tti_tcp_ways_find(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs, int only,
		       tti_tcp_leaves *leaves, void *context, struct tti_tcp_ways *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < mine->nnics; i++) {
		if ((only >= 0 && i != (size_t)only) || mine->nic[i].is.kind == TTI_IFACE_LOOPBACK)
			continue;
		for (size_t k = 0; k < theirs->nnics; k++) {
			if (theirs->nic[k].is.kind != TTI_IFACE_LOOPBACK)
				out->at[i][k] = best_way(mine, i, theirs, k, leaves, context);
		}
	}
	drop_useless(mine, theirs, out);
}

/* -- Pairs ------------------------------------------------------------------- */

struct pairing {
	const struct tti_tcp_card *mine, *theirs;
	const struct tti_tcp_ways *ways;
	uint8_t partner[NICS];               /* of theirs: which of mine, or NONE */
	bool fixed[NICS];                    /* of theirs: that one stays         */
	bool paired[NICS];                   /* of mine                           */
	size_t mine_n[NICS], theirs_n[NICS]; /* in so many pairs           */
};

/* How unlike two NICs are. */
static unsigned unlike(const struct pairing *p, size_t i, size_t k)
{
	const struct tti_iface *a = &p->mine->nic[i].is, *b = &p->theirs->nic[k].is;
	unsigned octaves = 0;

	if (a->mbps && b->mbps) {
		uint32_t fast = a->mbps > b->mbps ? a->mbps : b->mbps;
		const uint32_t slow = a->mbps < b->mbps ? a->mbps : b->mbps;

		for (; fast > slow; fast /= 2)
			octaves++;
	}
	return octaves * 4 + (strcmp(a->name, b->name) ? 2 : 0) + (i != k);
}

/* The partner that NIC i wants most of those not yet tried; NONE: there is none. */
static size_t favourite(const struct pairing *p, size_t i, int worst, const bool *tried)
{
	size_t best = NONE;

	for (size_t k = 0; k < p->theirs->nnics; k++) {
		const int kind = p->ways->at[i][k].kind;

		if (!kind || kind > worst || tried[k])
			continue;
		if (best == NONE || unlike(p, i, k) < unlike(p, i, best))
			best = k;
	}
	return best;
}

/* Find a partner for NIC i, moving others to another one if need be. `tried` keeps the
 * recursion from going in circles, so it is at most as deep as there are NICs. */
static bool pair_up(struct pairing *p, size_t i, int worst, bool *tried)
{
	for (;;) {
		const size_t k = favourite(p, i, worst, tried);

		if (k == NONE)
			return false;
		tried[k] = true;
		if (p->fixed[k])
			continue;
		if (p->partner[k] != NONE && !pair_up(p, p->partner[k], worst, tried))
			continue;
		p->partner[k] = (uint8_t)i;
		return true;
	}
}

/* Whether one more pair of `other` does less harm at NIC `a` than at `best`. */
static bool is_better(const struct pairing *p, bool mine, size_t a, size_t other, size_t best)
{
	const struct tti_tcp_way *way_a = mine ? &p->ways->at[a][other] : &p->ways->at[other][a];
	const struct tti_tcp_way *way_b =
		mine ? &p->ways->at[best][other] : &p->ways->at[other][best];
	const size_t load_a = mine ? p->mine_n[a] : p->theirs_n[a];
	const size_t load_b = mine ? p->mine_n[best] : p->theirs_n[best];

	if (way_a->kind != way_b->kind)
		return way_a->kind < way_b->kind;
	if (load_a != load_b)
		return load_a < load_b;
	return mine ? unlike(p, a, other) < unlike(p, best, other)
		    : unlike(p, other, a) < unlike(p, other, best);
}

/* The NIC, of mine or of theirs, that `other` is paired with in addition. */
static size_t least_loaded(const struct pairing *p, bool mine, size_t other)
{
	const size_t n = mine ? p->mine->nnics : p->theirs->nnics;
	size_t best = NONE;

	for (size_t a = 0; a < n; a++) {
		if (!(mine ? p->ways->at[a][other].kind : p->ways->at[other][a].kind))
			continue;
		if (best == NONE || is_better(p, mine, a, other, best))
			best = a;
	}
	return best;
}

static void count(struct pairing *p, size_t i, size_t k)
{
	p->mine_n[i]++;
	p->theirs_n[k]++;
}

static size_t add(struct pairing *p, struct tti_tcp_pair *pair, size_t n, size_t most, size_t i,
		  size_t k)
{
	if (n == most)
		return n;
	pair[n] = (struct tti_tcp_pair){ (uint8_t)i, (uint8_t)k };
	count(p, i, k);
	return n + 1;
}

/* Pair the two NICs without a partner that are most alike. */
static bool pair_alike(struct pairing *p, const uint8_t *order, int worst)
{
	size_t mine = NONE, theirs = NONE;

	for (size_t at = 0; at < p->mine->nnics; at++) {
		const size_t i = order[at];

		for (size_t k = 0; k < p->theirs->nnics && !p->paired[i]; k++) {
			const int kind = p->ways->at[i][k].kind;

			if (!kind || kind > worst || p->partner[k] != NONE)
				continue;
			if (mine != NONE && unlike(p, i, k) >= unlike(p, mine, theirs))
				continue;
			mine = i;
			theirs = k;
		}
	}
	if (mine == NONE)
		return false;
	p->paired[mine] = true;
	p->partner[theirs] = (uint8_t)mine;
	return true;
}

/* Pair one to one, in the same network first. No NIC stays without a partner for the sake of a
 * better pair. */
static void match(struct pairing *p, const uint8_t *order)
{
	for (int worst = TTI_TCP_WAY_NETWORK; worst <= TTI_TCP_WAY_LINK; worst++) {
		while (pair_alike(p, order, worst))
			;
		for (size_t at = 0; at < p->mine->nnics; at++) {
			bool tried[NICS] = { false };

			if (p->paired[order[at]])
				continue;
			p->paired[order[at]] = pair_up(p, order[at], worst, tried);
		}
	}
}

static size_t put_matched(struct pairing *p, const uint8_t *order, struct tti_tcp_pair *pair,
			  size_t n, size_t most)
{
	for (size_t at = 0; at < p->mine->nnics; at++) {
		for (size_t k = 0; k < p->theirs->nnics; k++) {
			if (p->partner[k] == order[at] && !p->fixed[k])
				n = add(p, pair, n, most, order[at], k);
		}
	}
	return n;
}

size_t tti_tcp_pairs_add(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			 const struct tti_tcp_ways *ways, const uint8_t *order,
			 struct tti_tcp_pair *pair, size_t n, size_t most)
{
	struct pairing p = { .mine = mine, .theirs = theirs, .ways = ways };

	memset(p.partner, NONE, sizeof(p.partner));
	for (size_t i = 0; i < n; i++) {
		p.partner[pair[i].theirs] = pair[i].mine;
		p.fixed[pair[i].theirs] = true;
		p.paired[pair[i].mine] = true;
		count(&p, pair[i].mine, pair[i].theirs);
	}
	match(&p, order);
	n = put_matched(&p, order, pair, n, most);
	for (size_t at = 0; at < mine->nnics; at++) {
		const size_t i = order[at], k = p.mine_n[i] ? NONE : least_loaded(&p, false, i);

		if (k != NONE)
			n = add(&p, pair, n, most, i, k);
	}
	for (size_t k = 0; k < theirs->nnics; k++) {
		const size_t i = p.theirs_n[k] ? NONE : least_loaded(&p, true, k);

		if (i != NONE)
			n = add(&p, pair, n, most, i, k);
	}
	return n;
}
