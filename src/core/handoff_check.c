/* SPDX-License-Identifier: BSD-3-Clause */
#include <sodium.h>
#include <stdio.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/params.h"

/* TUTTI_CHECK: before a handoff from sources that shall hold the same, each of them hashes
 * what it holds, and all ranks gather the hashes. Each finds the same that way, so none
 * need be told. */

bool tti_handoff_wants_check(const struct tti_args *args)
{
	return args->coll == TUTTI_HANDOFF && tti_params()->check && !args->from->sharded &&
	       args->from->n > 1;
}

void tti_handoff_print(const struct tti_args *args, struct tti_print *out)
{
	_Static_assert(sizeof(*out) == crypto_generichash_BYTES_MIN,
		       "a print is a BLAKE2b of 128 bits");
	(void)crypto_generichash((unsigned char *)out, sizeof(*out), args->send,
				 args->count * tutti_type_size(args->type), NULL, 0);
}

static bool same(const struct tti_print *a, const struct tti_print *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

/* The source whose print most have: of several, the first. */
static int reference(const struct tti_args *args, const struct tti_print *prints)
{
	int best = 0, most = 0;

	for (int i = 0; i < args->from->n; i++) {
		int alike = 0;

		for (int k = 0; k < args->from->n; k++)
			alike += same(&prints[args->from->ranks[i]], &prints[args->from->ranks[k]]);
		if (alike > most) {
			most = alike;
			best = i;
		}
		if (2 * most > args->from->n)
			break;
	}
	return args->from->ranks[best];
}

tutti_status tti_handoff_compare(struct tti_comm *comm, const struct tti_args *args,
				 const struct tti_print *prints)
{
	const int usual = reference(args, prints);
	char text[TTI_NEWS_TEXT], sides[TTI_SIDES_TEXT];

	for (int i = 0; i < args->from->n; i++) {
		const int rank = args->from->ranks[i];

		if (same(&prints[rank], &prints[usual]))
			continue;
		tti_sides_format(args->sides, sides, sizeof(sides));
		(void)snprintf(text, sizeof(text),
			       "handoff %s: the sources do not hold the same: rank %d's vector is "
			       "not that of rank %d (TUTTI_CHECK=1): make them equal, or name one "
			       "source",
			       sides, rank, usual);
		tti_comm_lose(comm, TUTTI_EMISMATCH, text);
		return tti_comm_fate(comm);
	}
	return TUTTI_OK;
}
