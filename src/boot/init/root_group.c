/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/init/root_group.h"

#include "util/error.h"

int tti_group_of(int nranks, int nroots, int rank)
{
	return rank < 0 || rank >= nranks ? 0 : (int)((int64_t)rank * nroots / nranks);
}

/* The first rank whose root is iroot or later. */
static int first_of(int nranks, int nroots, int iroot)
{
	return (int)(((int64_t)iroot * nranks + nroots - 1) / nroots);
}

struct tti_group tti_group_make(int nranks, int nroots, int iroot)
{
	const int first = first_of(nranks, nroots, iroot);
	const int end = first_of(nranks, nroots, iroot + 1);

	return (struct tti_group){ nranks, nroots, iroot, first, end - first };
}

int tti_group_rank(const struct tti_group *group, int i)
{
	return (group->first + i) % group->nranks;
}

tutti_status tti_checkin_check(const struct tti_wire_checkin *checkin)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n;

	if (checkin->nranks < 1 || checkin->nranks > TTI_BOOT_RANKS_MOST)
		return tti_fail_quiet(TUTTI_EPROTO, "%d ranks", checkin->nranks);
	if (checkin->rank < 0 || checkin->rank >= checkin->nranks)
		return tti_fail_quiet(TUTTI_EPROTO, "rank %d of %d", checkin->rank,
				      checkin->nranks);
	if (checkin->nroots < 1 || checkin->nroots > checkin->nranks || checkin->iroot < 0 ||
	    checkin->iroot >= checkin->nroots || checkin->border < 0 || checkin->border > 1 ||
	    (checkin->border && checkin->nroots == 1))
		return tti_fail_quiet(TUTTI_EPROTO, "root %d of %d", checkin->iroot,
				      checkin->nroots);
	if (checkin->left_ms < 0)
		return tti_fail_quiet(TUTTI_EPROTO, "a deadline of %d ms", checkin->left_ms);

	const struct tti_group group =
		tti_group_make(checkin->nranks, checkin->nroots, checkin->iroot);
	const int seat = checkin->border ? group.size : checkin->rank - group.first;

	if (seat < 0 || (!checkin->border && seat >= group.size) ||
	    tti_group_rank(&group, seat) != checkin->rank)
		return tti_fail_quiet(TUTTI_EPROTO, "rank %d is not root %d's", checkin->rank,
				      checkin->iroot);
	if (checkin->card.addr_bytes > TTI_CARD_ADDRS)
		return tti_fail_quiet(TUTTI_EPROTO, "its addresses do not fit");
	return tti_addrs_unpack(checkin->card.addrs, checkin->card.addr_bytes, checkin->card.port,
				addrs, TTI_IFACE_MOST, &n);
}
