/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_FORCED_H
#define TTI_COLL_FORCED_H

/* Forced algorithms: what TUTTI_ALGO says. Entries stand between semicolons:
 *
 *     all_reduce:ring,tree       only these, in order of preference
 *     broadcast:^binomial,chain  all but these
 *     all_reduce@64K-1M:ring     for vectors of 64 KiB to 1 MiB; either end may be missing
 *     ring                       every collective that has one of these
 *
 * An entry for a collective goes before an entry for all; two entries may not be for one size.
 * A name is the name of an algorithm of the library or of a file, or one of the words that
 * underscores join in it if no other name has that word: tree for double_tree. All entries are
 * checked, also those that are not for this call, so that a typing error shows at the first
 * call. */

#include <stdbool.h>
#include <stddef.h>

#include "coll/files/algo_files.h"

/* The entry for one collective and size; it borrows the text. */
struct tti_forced {
	const char *at, *end; /* the list of algorithms, NULL: no entry */
	bool excludes;
	bool for_all; /* it is for all collectives that have one of its names */
};

/* text NULL: no entry. nbytes as tti_choice_input has it. TUTTI_EINVAL names the word and
 * what there is. */
TUTTI_CHECKED tutti_status tti_forced_read(const char *text, tutti_collective coll, size_t nbytes,
					   const struct tti_algo_files *files,
					   struct tti_forced *out);

/* Whether the entry names that algorithm (of that collective), and as which of its list,
 * from 0; -1: not. */
int tti_forced_find(const struct tti_forced *forced, const struct tti_algo_files *files,
		    const struct tti_algorithm *algo);

/* The names of a collective's algorithms that keep an order, for error texts. */
void tti_forced_names(tutti_collective coll, enum tti_order order,
		      const struct tti_algo_files *files, char *buf, size_t size);

#endif
