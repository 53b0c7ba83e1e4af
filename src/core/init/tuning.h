/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_TUNING_H
#define TTI_CORE_INIT_TUNING_H

/* By what algorithms are chosen: a tune file, the user's algorithms, and what the model of
 * plan/tune/tune.h knows of the job. The same on all ranks.
 *
 * Owner: tti_tuning_release(). Threads: any may read. */

#include "tutti/status.h"

struct tti_algo_files;
struct tti_plan;
struct tti_shape;
struct tti_tune_machine;
struct tti_tune_table;

struct tti_tuning {
	struct tti_tune_table *table;     /* NULL: there is no file                      */
	struct tti_tune_machine *machine; /* NULL: one host, where nothing is predicted  */
	struct tti_algo_files *files;     /* the user's algorithms; NULL: there are none  */
	double ranks_a_core;              /* where they are most; 1 and less: each has a core */
};

/* Takes the table and the files (may be NULL), in any case. `plan` may be NULL. */
TUTTI_CHECKED tutti_status tti_tuning_of(struct tti_tune_table *table, struct tti_algo_files *files,
					 const struct tti_plan *plan, double ranks_a_core,
					 struct tti_tuning *out);
/* For some of the ranks; `shape`: how they lie over several hosts, NULL: one host. The table and
 * the files stay those of `of`: take them out before tti_tuning_release(). */
TUTTI_CHECKED tutti_status tti_tuning_derive(const struct tti_tuning *of,
					     const struct tti_shape *shape, struct tti_tuning *out);
void tti_tuning_release(struct tti_tuning *tuning);

/* What the model knows of n ranks on so many hosts, even if nothing is chosen by it. */
struct tti_tune_machine tti_tuning_machine(const struct tti_tuning *tuning, int n, int nhosts);

#endif
