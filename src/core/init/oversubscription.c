/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/oversubscription.h"

#include "util/error.h"
#include "util/mem.h"

/* The ranks of one machine, and the cores that they share. */
struct machine {
	uint64_t cpus[TTI_BITSET_WORDS(CPU_SETSIZE)];
	int nranks;
	int quota; /* less than they may run on; 0: none */
};

static tutti_status find_machines(const struct tti_peers *peers, int *first)
{
	uint64_t *key = tti_calloc((size_t)peers->n, sizeof(*key));
	tutti_status st;

	if (!key)
		return tti_fail(TUTTI_ENOMEM, "%d ranks: out of memory", peers->n);
	for (int rank = 0; rank < peers->n; rank++)
		key[rank] = peers->info[rank].machine;
	st = tti_peers_group(key, peers->n, first);
	tti_free(key);
	return st;
}

/* Each rank may be bound to cores of its own, so the cores of all ranks count together. If a quota
 * lets a rank use fewer cores than it may run on, the ranks share the quota. */
static void add_rank(struct machine *machine, const struct tti_peer_info *info)
{
	machine->nranks++;
	for (size_t i = 0; i < TTI_BITSET_WORDS(CPU_SETSIZE); i++)
		machine->cpus[i] |= info->cpus[i];
	if (info->ncpus < info->allowed)
		machine->quota = info->ncpus;
}

static struct tti_oversubscription load_of(const struct machine *machine, int ncpus)
{
	const int ncores = (int)tti_bitset_count(machine->cpus, CPU_SETSIZE);

	return (struct tti_oversubscription){ .nranks = machine->nranks,
					      .ncores = machine->quota ? machine->quota
							: ncores       ? ncores
								       : ncpus };
}

tutti_status tti_oversubscription_find(const struct tti_peers *peers,
				       struct tti_oversubscription *out)
{
	const size_t n = (size_t)peers->n;
	int *first = tti_calloc(n, sizeof(*first));
	uint32_t *number = tti_calloc(n, sizeof(*number)), nmachines = 0;
	struct machine *machines = NULL;
	tutti_status st = first && number ? find_machines(peers, first) : TUTTI_ENOMEM;

	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		number[rank] = first[rank] == (int)rank ? nmachines++ : number[first[rank]];
	if (st == TUTTI_OK) {
		machines = tti_calloc(nmachines, sizeof(*machines));
		st = machines ? TUTTI_OK : TUTTI_ENOMEM;
	}
	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		add_rank(&machines[number[rank]], &peers->info[rank]);
	for (size_t rank = 0; rank < n && st == TUTTI_OK; rank++)
		out[rank] = load_of(&machines[number[rank]], peers->info[rank].ncpus);
	tti_free(machines);
	tti_free(number);
	tti_free(first);
	return st == TUTTI_ENOMEM ? tti_fail(st, "%d ranks: out of memory", peers->n) : st;
}
