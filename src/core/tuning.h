/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_TUNING_H
#define TTI_CORE_TUNING_H

/* What choices of algorithms go by, beside what was measured: a tune file, and what the
 * model of plan/tune.h knows of the job. The same on all ranks.
 * Owner: tti_tuning_release(). Threads: any may read. */

#include "tutti/status.h"

struct tti_plan;
struct tti_tune_machine;
struct tti_tune_table;

struct tti_tuning {
	struct tti_tune_table *table;     /* NULL: there is no file                      */
	struct tti_tune_machine *machine; /* NULL: one host, where nothing is predicted  */
};

/* Takes the table (may be NULL), in any case. `plan` may be NULL. ranks_a_core: on the
 * machine where they are most, 1 and less: no rank waits for a core. */
TUTTI_CHECKED tutti_status tti_tuning_of(struct tti_tune_table *table, const struct tti_plan *plan,
					 double ranks_a_core, struct tti_tuning *out);
void tti_tuning_release(struct tti_tuning *tuning);

#endif
