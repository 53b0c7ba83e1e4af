/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/roll.h"
#include "util/error.h"
#include "util/mem.h"

/* The ranks of one machine, and the cores that they share. */
struct machine {
	uint64_t cpus[TTI_BITSET_WORDS(CPU_SETSIZE)];
	int nranks;
	int quota; /* less than they may run on; 0: none */
};

static tutti_status find_machines(const struct tti_roll *roll, int *first)
{
	uint64_t *key = tti_calloc((size_t)roll->n, sizeof(*key));
	tutti_status st;

	if (!key)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", roll->n);
	for (int rank = 0; rank < roll->n; rank++)
		key[rank] = roll->info[rank].machine;
	st = tti_first_of(key, roll->n, first);
	tti_free(key);
	return st;
}

/* Each rank may be bound to cores of its own, so it is all of their cores together that
 * count; where a quota lets a rank use less than it may run on, its ranks share that. */
static void add_rank(struct machine *machine, const struct tti_rank_info *info)
{
	machine->nranks++;
	for (size_t i = 0; i < TTI_BITSET_WORDS(CPU_SETSIZE); i++)
		machine->cpus[i] |= info->cpus[i];
	if (info->ncpus < info->allowed)
		machine->quota = info->ncpus;
}

static struct tti_crowd crowd_of(const struct machine *machine, int ncpus)
{
	const int ncores = (int)tti_bitset_count(machine->cpus, CPU_SETSIZE);

	return (struct tti_crowd){ .nranks = machine->nranks,
				   .ncores = machine->quota ? machine->quota
					     : ncores       ? ncores
							    : ncpus };
}

tutti_status tti_crowds_count(const struct tti_roll *roll, struct tti_crowd *out)
{
	const size_t n = (size_t)roll->n;
	int *first = tti_calloc(n, sizeof(*first));
	uint32_t *number = tti_calloc(n, sizeof(*number)), nmachines = 0;
	struct machine *machines = NULL;
	tutti_status st = first && number ? find_machines(roll, first) : TUTTI_ENOMEM;

	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		number[rank] = first[rank] == (int)rank ? nmachines++ : number[first[rank]];
	if (st == TUTTI_OK) {
		machines = tti_calloc(nmachines, sizeof(*machines));
		st = machines ? TUTTI_OK : TUTTI_ENOMEM;
	}
	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		add_rank(&machines[number[rank]], &roll->info[rank]);
	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		out[rank] = crowd_of(&machines[number[rank]], roll->info[rank].ncpus);
	tti_free(machines);
	tti_free(number);
	tti_free(first);
	return st == TUTTI_ENOMEM ? tti_fail(st, "%d ranks: out of memory", roll->n) : st;
}
