/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_PMI_H
#define TTI_BOOT_PMI_H

/* The process management interface: the key-value store that a launcher keeps for the processes of
 * one job. Rank 0 hands the unique id to the other ranks through it, so no variable has to say where
 * the ranks meet. The secret in the id is as safe as the connections of the launcher are.
 *
 * There are three ways to reach such a store:
 * - the wire protocol of PMI-1 over the socket that PMI_FD names, without any library: Hydra (MPICH,
 *   Intel MPI), srun --mpi=pmi2, Flux;
 * - PMIx, whose library is loaded at run time: Open MPI, srun --mpi=pmix, prterun;
 * - libpmi of Slurm, also loaded at run time: srun --mpi=none.
 *
 * Threads: any, one at a time. A launcher counts the processes that have come and not the threads,
 * so the calls come in the same order on all ranks, as all calls of all ranks do. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

/* One exchange: rank 0 puts `value` under `key`, all ranks wait for each other, the others get it. */
struct tti_pmi_call {
	const char *key;
	const char *value; /* without spaces; NULL on all ranks but 0 */
	int rank, nranks;
	int64_t deadline_ns;
	char *out; /* what the others get, with a 0 at its end; not written on rank 0 */
	size_t out_size;
};

/* Bytes of a value that every launcher keeps: PMI-1 has the smallest limit, 1024. */
#define TTI_PMI_VALUE_MOST 1023

/* How long a process waits for the answer to its goodbye. */
#define TTI_PMI_FINISH_MS 5000

/* One of the ways. TUTTI_EUSAGE: this process was not started in that way, or its store is closed already.
 * TUTTI_ETIMEOUT: some rank did not come. The way is not used again then: the next answer of the launcher
 * may belong to the last question, and its library may still wait. */
typedef tutti_status (*tti_pmi_way)(const struct tti_pmi_call *call);

TUTTI_CHECKED tutti_status tti_pmi_wire(const struct tti_pmi_call *call);
/* The process stays in the store until it exits: one that has left and comes again waits in vain for other
 * hosts under Open MPI 5. */
TUTTI_CHECKED tutti_status tti_pmi_x(const struct tti_pmi_call *call);
/* It leaves after each exchange: Slurm ends the others if a process dies that has not. */
TUTTI_CHECKED tutti_status tti_pmi_x_slurm(const struct tti_pmi_call *call);
TUTTI_CHECKED tutti_status tti_pmi_slurm(const struct tti_pmi_call *call);

/* Rank 0 makes an id, and all ranks have it on return; each call makes another one. If rank 0 cannot make
 * one, the others fail with its error. TUTTI_EUSAGE: an earlier call returned TUTTI_ETIMEOUT, or this
 * process is a child of the one that called first. */
TUTTI_CHECKED tutti_status tti_pmi_share_id(tti_pmi_way way, int rank, int nranks,
					    int64_t timeout_ms, tutti_unique_id *out);

#endif
