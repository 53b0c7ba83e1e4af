/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/handoff.h"
#include "coll/handoff_hosts.h"
#include "util/error.h"
#include "util/mem.h"

/* Pairs of who sits beside NICs, and what any pairs must be. */

void tti_handoff_pairs_release(struct tti_handoff_pairs *pairs)
{
	tti_vec_release(&pairs->list);
}

static bool is_whole(const struct tti_handoff *handoff)
{
	return !tti_handoff_is_cut(&handoff->from) && !tti_handoff_is_cut(&handoff->to);
}

/* -- Pairing ------------------------------------------------------------------------ */

struct pairing {
	const struct tti_handoff_hosts *hosts;
	struct tti_handoff_pairs *out;
	int32_t *remote; /* hosts to be sent to */
	int32_t nremote;
};

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static bool add(struct pairing *p, int32_t from, int32_t to)
{
	const struct tti_handoff_pair pair = { .from = from, .to = to, .share = 1 };

	return tti_vec_push(&p->out->list, pair);
}

/* A host at the head of its chain, from sources turn[next ...]; how many, -1: no memory. */
static int32_t pair_with_sources(struct pairing *p, int32_t host, int32_t next)
{
	const struct tti_handoff_members *to = &p->hosts->to_doors;
	const int32_t count =
		least(least(p->hosts->nturns, tti_handoff_count(to, host)), TTI_HANDOFF_PAIRS_MOST);

	for (int32_t i = 0; i < count; i++)
		if (!add(p, p->hosts->turn[(next + i) % p->hosts->nturns],
			 tti_handoff_ranks(to, host)[i]))
			return -1;
	return count;
}

static bool pair_with_host(struct pairing *p, int32_t before, int32_t host)
{
	const struct tti_handoff_members *to = &p->hosts->to_doors;
	const int32_t count =
		least(least(tti_handoff_count(to, before), tti_handoff_count(to, host)),
		      TTI_HANDOFF_PAIRS_MOST);

	for (int32_t i = 0; i < count; i++)
		if (!add(p, tti_handoff_ranks(to, before)[i], tti_handoff_ranks(to, host)[i]))
			return false;
	return true;
}

static bool make_chains(struct pairing *p, int32_t nsource_hosts)
{
	const int32_t nchains = least(nsource_hosts, p->nremote);
	int32_t next = 0;

	for (int32_t chain = 0; chain < nchains; chain++) {
		const int32_t begin = (int32_t)((int64_t)p->nremote * chain / nchains);
		const int32_t end = (int32_t)((int64_t)p->nremote * (chain + 1) / nchains);
		const int32_t count = pair_with_sources(p, p->remote[begin], next);

		if (count < 0)
			return false;
		next += count;
		for (int32_t i = begin + 1; i < end; i++)
			if (!pair_with_host(p, p->remote[i - 1], p->remote[i]))
				return false;
	}
	return true;
}

/* Those that have the data double with every round: the hosts of sources, then the others
 * in order. */
static bool make_tree(struct pairing *p, int32_t nsource_hosts)
{
	int32_t have = nsource_hosts;

	for (int32_t i = 0; i < p->nremote; i++) {
		const int32_t at = nsource_hosts + i;
		int32_t parent;

		if (at == 2 * have)
			have *= 2;
		parent = at - have;
		if (!add(p,
			 parent < nsource_hosts
				 ? p->hosts->turn[parent]
				 : *tti_handoff_ranks(&p->hosts->to_doors,
						      p->remote[parent - nsource_hosts]),
			 *tti_handoff_ranks(&p->hosts->to_doors, p->remote[i])))
			return false;
	}
	return true;
}

static bool pair_up(struct pairing *p, bool is_short)
{
	const struct tti_handoff_hosts *hosts = p->hosts;
	int32_t nsource_hosts = 0;

	p->remote = tti_calloc((size_t)hosts->nreceiving, sizeof(*p->remote));
	if (!p->remote)
		return false;
	for (int32_t host = 0; host < hosts->nhosts; host++) {
		nsource_hosts += tti_handoff_count(&hosts->from, host) > 0;
		if (tti_handoff_is_remote(hosts, host))
			p->remote[p->nremote++] = host;
	}
	return is_short ? make_tree(p, nsource_hosts) : make_chains(p, nsource_hosts);
}

tutti_status tti_handoff_pair_up(const struct tti_handoff *handoff, bool is_short,
				 struct tti_handoff_pairs *out)
{
	struct tti_handoff_pairs pairs = { 0 };
	struct tti_handoff_hosts hosts;
	struct pairing p = { .hosts = &hosts, .out = &pairs };
	bool done;

	*out = pairs;
	if (!is_whole(handoff))
		return TUTTI_OK;
	TTI_TRY(tti_handoff_hosts_find(handoff, &hosts));
	done = pair_up(&p, is_short);
	tti_free(p.remote);
	tti_handoff_hosts_release(&hosts);
	if (!done) {
		tti_handoff_pairs_release(&pairs);
		return tti_fail(TUTTI_ENOMEM, "pairs of %d ranks: out of memory", handoff->n);
	}
	*out = pairs;
	return TUTTI_OK;
}

/* -- Checking ------------------------------------------------------------------------ */

/* What is wrong with a pair, NULL if nothing; is_served[]: of each host, 1 while its pairs
 * come, 2 when they are over. */
static const char *fault(const struct tti_handoff *handoff, const struct tti_handoff_hosts *hosts,
			 const struct tti_handoff_pair *pair, const uint8_t *served)
{
	if (pair->from < 0 || pair->from >= handoff->n || pair->to < 0 || pair->to >= handoff->n)
		return "no such rank";
	if (hosts->to.place[pair->to] < 0)
		return "the second rank shall get nothing";
	if (pair->share == 0)
		return "a share of 0";
	if (!is_whole(handoff))
		return NULL;
	if (!tti_handoff_is_remote(hosts, hosts->of[pair->to]))
		return "the second rank's host has a source itself";
	if (served[hosts->of[pair->to]] == 2)
		return "the pairs of its host do not stand together";
	if (hosts->from.place[pair->from] >= 0)
		return NULL;
	if (hosts->to.place[pair->from] < 0)
		return "the first rank never has the data";
	return served[hosts->of[pair->from]] == 2 ||
			       !tti_handoff_is_remote(hosts, hosts->of[pair->from])
		       ? NULL
		       : "the host of the first rank is served later";
}

static tutti_status check_list(const struct tti_handoff *handoff,
			       const struct tti_handoff_hosts *hosts,
			       const struct tti_handoff_pairs *pairs, uint8_t *served)
{
	uint32_t count = 0, shares = 0;
	int32_t last = -1;

	for (size_t i = 0; i < pairs->list.n; i++) {
		const struct tti_handoff_pair *pair = &pairs->list.at[i];
		const bool known = pair->to >= 0 && pair->to < handoff->n;
		const int32_t host = known ? hosts->of[pair->to] : -1;
		const char *what;

		if (last >= 0 && host != last)
			served[last] = 2;
		count = host == last ? count + 1 : 1;
		shares = host == last ? shares : 0;
		what = fault(handoff, hosts, pair, served);
		if (what)
			return tti_fail_quiet(TUTTI_EINVAL, "pair %zu (%d to %d): %s", i,
					      pair->from, pair->to, what);
		if (pair->share > TTI_HANDOFF_SHARES_MOST ||
		    (shares += pair->share) > TTI_HANDOFF_SHARES_MOST ||
		    count > TTI_HANDOFF_PAIRS_MOST)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "pair %zu (%d to %d): a host has at most %d pairs "
					      "and %d shares",
					      i, pair->from, pair->to, TTI_HANDOFF_PAIRS_MOST,
					      TTI_HANDOFF_SHARES_MOST);
		served[host] = 1;
		last = host;
	}
	for (int32_t host = 0; host < hosts->nreceiving && is_whole(handoff); host++)
		if (tti_handoff_is_remote(hosts, host) && !served[host])
			return tti_fail_quiet(TUTTI_EINVAL, "nobody sends to the host of rank %d",
					      *tti_handoff_ranks(&hosts->to, host));
	return TUTTI_OK;
}

tutti_status tti_handoff_pairs_check(const struct tti_handoff *handoff,
				     const struct tti_handoff_pairs *pairs)
{
	struct tti_handoff_hosts hosts;
	uint8_t *served;
	tutti_status st;

	TTI_TRY(tti_handoff_hosts_find(handoff, &hosts));
	served = tti_calloc((size_t)hosts.nhosts, sizeof(*served));
	st = served ? check_list(handoff, &hosts, pairs, served)
		    : tti_fail(TUTTI_ENOMEM, "pairs of %d ranks: out of memory", handoff->n);
	tti_free(served);
	tti_handoff_hosts_release(&hosts);
	return st;
}
