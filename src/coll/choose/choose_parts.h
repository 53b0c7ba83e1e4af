/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHOOSE_PARTS_H
#define TTI_COLL_CHOOSE_PARTS_H

/* Private to the choice (choose.h): choose.c takes an algorithm, choose_time.c finds the algorithm
 * of least predicted time, choose_split.c says how finely it splits the data. */

#include "coll/choose/choose.h"
#include "coll/choose/forced.h"

/* Whether an algorithm can serve the call. */
static inline bool tti_choice_fits(const struct tti_algorithm *algo,
				   const struct tti_choice_input *input)
{
	return tti_algorithm_fits(algo, input->n) && algo->order >= input->order &&
	       (!algo->needs_memory || input->reach != TTI_REACH_SLOTS);
}

/* ... and TUTTI_ALGO does not exclude it. NULL: false. */
static inline bool tti_choice_usable(const struct tti_forced *forced,
				     const struct tti_choice_input *input,
				     const struct tti_algorithm *algo)
{
	return algo && tti_choice_fits(algo, input) &&
	       !(forced->excludes && tti_forced_find(forced, input->files, algo) >= 0);
}

/* -- choose_time.c ----------------------------------------------------------------- */

/* Whether the groups of the shape are the hosts. Ranks that share no memory count as one host
 * each, even on one machine. */
bool tti_choice_knows_hosts(const struct tti_choice_input *input);
/* The algorithm of least predicted time, of equal ones the first in the table; NULL: there is no
 * prediction. */
const struct tti_algorithm *tti_choice_by_time(const struct tti_forced *forced,
					       const struct tti_choice_input *input);
/* The number of stripes in which an algorithm does best; 0: there is no prediction. */
int tti_choice_stripes(const struct tti_choice_input *input, const struct tti_algorithm *algo);

/* -- choose_split.c ------------------------------------------------------------------ */

struct tti_split tti_choice_split(const struct tti_choice_input *input,
				  const struct tti_algorithm *algo);
/* The bytes of a step. slice: TUTTI_SLICE; 0: to be chosen. */
size_t tti_choice_slice(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			struct tti_split split, size_t slice);

#endif
