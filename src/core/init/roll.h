/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_ROLL_H
#define TTI_CORE_ROLL_H

/* The roll call: what every rank tells of itself before anything else, and whether all
 * fit together. Ranks with other settings would choose differently, ranks of one machine
 * that see it otherwise would plan differently: both are an error on all ranks here, with
 * the first difference, and not a hang later.
 *
 * Owner: tti_roll_release(). Threads: one at a time. */

#include <sched.h>

#include <stdbool.h>
#include <stdint.h>

#include "boot/boot.h"
#include "util/bitset.h"

/* A file that a variable names; hash 0: none does. */
struct tti_file_print {
	uint64_t hash, nbytes;
};

/* On the wire: fixed width. */
struct tti_rank_info {
	uint32_t version;
	int32_t ncpus;    /* that the rank may use at a time         */
	int32_t allowed;  /* that it may run on: more, under a quota */
	int32_t nnuma;    /* NUMA nodes with cores; 0: not known     */
	uint64_t machine; /* of the boot id: whose cores they share  */
	uint64_t host;    /* machine and TUTTI_HOST_ID               */
	uint64_t place;   /* what sees one topology: host, network namespace, directory */
	uint64_t cpus[TTI_BITSET_WORDS(CPU_SETSIZE)];          /* allowed, which */
	uint64_t transport, algo, slice, shm_slots, tcp_slots; /* settings       */
	uint64_t registered_least;                             /* setting              */
	uint64_t levels;                                       /* what routes go by, a byte each */
	uint64_t sysfs_root;
	uint64_t tune;       /* of TUTTI_TUNE_FILE; 0: none */
	uint64_t measured;   /* of the tune file of this machine; 0: none, or another is named */
	uint64_t algo_files; /* of the user's algorithms; 0: none */
	struct tti_file_print topo_file, plan_file;
	int32_t check;        /* TUTTI_CHECK                           */
	int32_t dumps;        /* the topology in use is to be written  */
	int32_t reproducible; /* all reductions              */
	int32_t encrypt;      /* what goes over TCP          */
	int32_t reach;        /* TUTTI_REACH                 */
	int32_t status;       /* what its own inputs are worth         */
};

struct tti_algo_files;
struct tti_tune_table;

struct tti_roll {
	struct tti_boot *boot;
	int rank, n;
	struct tti_rank_info *info; /* [n]; once digested, at rank 0 alone */
	/* What remains of it at the others. */
	uint64_t *place; /* [n]                                          */
	bool asks;       /* somebody names a topology or a plan, or has several NUMA nodes */
	bool dumps, has_plan_file;
	char *topo_text, *plan_text; /* of its own files; NULL: none */
	struct tti_tune_table *tune; /* the same                   */
	struct tti_algo_files *algo_files;
};

/* Gather and check. TUTTI_EINVAL: other settings, a file that cannot be read; TUTTI_EPLAN:
 * other topologies or plans. The same on all ranks. */
TUTTI_CHECKED tutti_status tti_roll_call(struct tti_boot *boot, const char *transports,
					 const char *algo, bool reproducible, bool encrypt,
					 struct tti_roll *out);
/* Keep what the rest of init needs: 1,000 ranks of one process would hold 300 KB each. */
TUTTI_CHECKED tutti_status tti_roll_digest(struct tti_roll *roll);
void tti_roll_release(struct tti_roll *roll);

/* The end of all ranks by what one found: that is `failed_rank`, whose status and error text
 * the others get. All call it. */
TUTTI_CHECKED tutti_status tti_fail_together(struct tti_boot *boot, int failed_rank,
					     tutti_status status);

/* first_out[rank]: the lowest rank with that key; 0 is nobody else's. */
TUTTI_CHECKED tutti_status tti_first_of(const uint64_t *key, int n, int *first_out);

/* -- crowd.c ---------------------------------------------------------------------- */

/* The ranks on a machine, and the cores that they have together. */
struct tti_crowd {
	int nranks, ncores;
};
/* out[rank]: of its machine. */
TUTTI_CHECKED tutti_status tti_crowds_count(const struct tti_roll *roll, struct tti_crowd *out);

/* -- differ.c -------------------------------------------------------------------- */

/* What differs between two texts that should be one, in words; A is the first. */
struct tti_texts {
	const char *a, *b;
	size_t a_bytes, b_bytes;
};
void tti_differ_topology(const struct tti_texts *texts, char *why, size_t size);
void tti_differ_plan(const struct tti_texts *texts, char *why, size_t size);

#endif
