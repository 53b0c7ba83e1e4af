/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/tuning.h"

#include "plan/tune.h"
#include "util/error.h"
#include "util/mem.h"

tutti_status tti_tuning_of(struct tti_tune_table *table, const struct tti_plan *plan,
			   double ranks_a_core, struct tti_tuning *out)
{
	struct tti_tune_machine *machine = NULL;

	if (plan && plan->nnodes > 1) {
		machine = tti_alloc(sizeof(*machine));
		if (!machine) {
			tti_tune_table_free(table);
			return tti_fail(TUTTI_ENOMEM, "what is known of %u ranks: out of memory",
					plan->nranks);
		}
		*machine = tti_tune_machine_of_plan(plan);
		machine->cores = ranks_a_core > 1 ? machine->most / ranks_a_core : 0;
	}
	*out = (struct tti_tuning){ table, machine };
	return TUTTI_OK;
}

void tti_tuning_release(struct tti_tuning *tuning)
{
	tti_tune_table_free(tuning->table);
	tti_free(tuning->machine);
	*tuning = (struct tti_tuning){ NULL, NULL };
}
