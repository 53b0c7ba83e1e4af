/* SPDX-License-Identifier: BSD-3-Clause */
/* Between hosts: how long each algorithm should take. */
#include "coll/choose/choose_parts.h"
#include "plan/tune/tune.h"
#include "util/measured.h"

bool tti_choice_knows_hosts(const struct tti_choice_input *input)
{
	return input->shape && input->shape->ngroups == (uint32_t)input->nhosts;
}

static struct tti_tune_machine machine_of(const struct tti_choice_input *input)
{
	const uint32_t n = (uint32_t)input->n, nhosts = (uint32_t)input->nhosts;
	struct tti_tune_machine machine =
		tti_tune_machine_of_groups(n, nhosts, (n + nhosts - 1) / nhosts, n / nhosts);

	/* Whatever the plan was made for, these programs move host memory. */
	if (input->machine && input->machine->nnodes == nhosts)
		return *input->machine;
	for (uint32_t group = 0; tti_choice_knows_hosts(input) && group < nhosts; group++) {
		const uint32_t size = input->shape->group_size[group];

		machine.most = group && machine.most > size ? machine.most : size;
		machine.least = group && machine.least < size ? machine.least : size;
	}
	return machine;
}

/* Whether ranks are numbered host by host; where they are dealt out, a chain in their order
 * would go to and fro between hosts. */
static bool host_by_host(const struct tti_choice_input *input)
{
	const struct tti_shape *shape = input->shape;
	uint32_t runs = 1;

	for (uint32_t rank = 1; rank < shape->n; rank++)
		runs += shape->group_of[rank] != shape->group_of[rank - 1];
	return runs == shape->ngroups;
}

/* Whether time can be predicted for where ranks are. */
static bool suits_hosts(const struct tti_choice_input *input, const struct tti_algorithm *algo)
{
	if (!(algo->traits & TTI_TRAIT_GROUPS))
		return true;
	if (algo->traits & TTI_TRAIT_ORDERED)
		return input->order != TTI_ORDER_ANY && tti_choice_knows_hosts(input) &&
		       host_by_host(input);
	return tti_choice_knows_hosts(input);
}

/* The least time of an algorithm, over how many stripes it may go in. Where ranks share
 * cores the fewest that do it in about that time: each that must wake for every message
 * keeps others waiting. false: nothing is predicted. */
static bool predict(const struct tti_choice_input *input, struct tti_tune_machine machine,
		    const struct tti_algorithm *algo, struct tti_tune_time *least, int *stripes)
{
	const struct tti_tune_constants defaults = tti_tune_defaults().constants;
	const uint32_t most = algo->traits & TTI_TRAIT_GROUPS ? machine.most : 1;
	const double worth = input->oversubscribed ? TTI_FEWER_STRIPES : 1;
	enum tti_tune_algo name;
	bool found = false;

	*stripes = 0;
	if (!tti_tune_algo_find(algo->name, &name))
		return false;
	for (uint32_t n = 1; n < 2 * most; n *= 2) {
		struct tti_tune_time time;

		machine.stripes = n < most ? n : most;
		if (!tti_tune_predict(input->tune ? &input->tune->constants : &defaults, &machine,
				      input->coll, name, input->nbytes, &time))
			return false;
		if (found && time.us >= least->us * worth)
			continue;
		*least = time;
		*stripes = (int)machine.stripes;
		found = true;
	}
	return found;
}

const struct tti_algorithm *tti_choice_by_time(const struct tti_forced *forced,
					       const struct tti_choice_input *input)
{
	const struct tti_tune_machine machine = machine_of(input);
	const struct tti_algorithm *algo, *best = NULL;
	struct tti_tune_time time;
	double least = 0;
	int stripes;

	for (int i = 0; (algo = tti_algorithm_at(input->coll, i)); i++) {
		if (!tti_choice_usable(forced, input, algo) || !suits_hosts(input, algo) ||
		    !predict(input, machine, algo, &time, &stripes) || (best && time.us >= least))
			continue;
		best = algo;
		least = time.us;
	}
	return best;
}

int tti_choice_stripes(const struct tti_choice_input *input, const struct tti_algorithm *algo)
{
	struct tti_tune_time time;
	int stripes;

	return predict(input, machine_of(input), algo, &time, &stripes) ? stripes : 0;
}

bool tti_choice_predict(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			struct tti_tune_time *out)
{
	int stripes;

	return predict(input, machine_of(input), algo, out, &stripes);
}
