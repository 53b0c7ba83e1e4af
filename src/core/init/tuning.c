/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/tuning.h"

#include "coll/files/algo_files.h"
#include "coll/shape.h"
#include "plan/tune/tune.h"
#include "util/error.h"
#include "util/mem.h"

tutti_status tti_tuning_of(struct tti_tune_table *table, struct tti_algo_files *files,
			   const struct tti_plan *plan, double ranks_a_core, struct tti_tuning *out)
{
	struct tti_tune_machine *machine = NULL;

	if (plan && plan->nnodes > 1) {
		machine = tti_alloc(sizeof(*machine));
		if (!machine) {
			tti_tune_table_free(table);
			tti_algo_files_free(files);
			return tti_fail(TUTTI_ENOMEM, "what is known of %u ranks: out of memory",
					plan->nranks);
		}
		*machine = tti_tune_machine_of_plan(plan);
		machine->cores = ranks_a_core > 1 ? machine->most / ranks_a_core : 0;
	}
	*out = (struct tti_tuning){ table, machine, files, ranks_a_core };
	return TUTTI_OK;
}

static void count_nodes(const struct tti_shape *shape, struct tti_tune_machine *machine)
{
	machine->n = shape->n;
	machine->nnodes = shape->ngroups;
	machine->most = 0;
	machine->least = shape->n;
	for (uint32_t group = 0; group < shape->ngroups; group++) {
		const uint32_t size = shape->group_size[group];

		machine->most = size > machine->most ? size : machine->most;
		machine->least = size < machine->least ? size : machine->least;
	}
	if (machine->stripes > machine->most)
		machine->stripes = machine->most;
}

tutti_status tti_tuning_derive(const struct tti_tuning *of, const struct tti_shape *shape,
			       struct tti_tuning *out)
{
	*out = (struct tti_tuning){ of->table, NULL, of->files, of->ranks_a_core };
	if (!of->machine || !shape)
		return TUTTI_OK;
	out->machine = tti_alloc(sizeof(*out->machine));
	if (!out->machine)
		return tti_fail(TUTTI_ENOMEM, "what is known of %u ranks: out of memory", shape->n);
	*out->machine = *of->machine;
	count_nodes(shape, out->machine);
	return TUTTI_OK;
}

void tti_tuning_release(struct tti_tuning *tuning)
{
	tti_tune_table_free(tuning->table);
	tti_free(tuning->machine);
	tti_algo_files_free(tuning->files);
	*tuning = (struct tti_tuning){ 0 };
}

struct tti_tune_machine tti_tuning_machine(const struct tti_tuning *tuning, int n, int nhosts)
{
	const uint32_t ranks = (uint32_t)n, hosts = (uint32_t)nhosts;
	struct tti_tune_machine machine = tti_tune_machine_of_groups(
		ranks, hosts, (ranks + hosts - 1) / hosts, ranks / hosts);

	if (tuning->machine && tuning->machine->nnodes == hosts)
		machine = *tuning->machine;
	else if (tuning->ranks_a_core > 1)
		machine.cores = machine.most / tuning->ranks_a_core;
	return machine;
}
