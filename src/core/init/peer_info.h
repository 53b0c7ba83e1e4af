/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_PEER_INFO_H
#define TTI_CORE_INIT_PEER_INFO_H

/* Peer info: each rank describes itself to all others before anything else, and all check that they
 * fit together. Ranks with other settings would choose other algorithms, ranks of one machine with
 * another topology would make another plan. Here both are an error on all ranks, which names the
 * first difference; later they would be a hang.
 *
 * Owner: tti_peers_release(). Threads: one at a time. */

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
struct tti_peer_info {
	uint32_t version;
	int32_t ncpus;    /* that the rank may use at a time         */
	int32_t allowed;  /* that it may run on: more, under a quota */
	int32_t nnuma;    /* NUMA nodes with cores; 0: not known     */
	uint64_t machine; /* hash of the boot id: ranks with it share cores */
	uint64_t host;    /* machine and TUTTI_HOST_ID               */
	uint64_t place;   /* ranks with it see one topology: host, network namespace, directory */
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
	int32_t device;       /* a GPU, or enum tti_device_wish */
	int32_t status;       /* of reading its own inputs */
};

struct tti_algo_files;
struct tti_tune_table;

struct tti_peers {
	struct tti_boot *boot;
	int rank, n;
	struct tti_peer_info *info; /* [n]; after tti_peers_digest() at rank 0 only */
	/* What the other ranks keep. */
	uint64_t *place; /* [n]                                          */
	bool asks;       /* a rank names a topology or a plan, or has several NUMA nodes */
	bool dumps, has_plan_file;
	char *topo_text, *plan_text; /* of its own files; NULL: none */
	struct tti_tune_table *tune; /* the same                   */
	struct tti_algo_files *algo_files;
};

/* The settings of a communicator that all ranks must have alike. */
struct tti_peer_settings {
	const char *transports, *algo;
	bool reproducible, encrypt;
	int device; /* config.device, of this rank alone */
};

/* Gather and check. TUTTI_EINVAL: settings differ, or a file cannot be read. TUTTI_EPLAN:
 * topologies or plans differ. The same status on all ranks. */
TUTTI_CHECKED tutti_status tti_peers_exchange(struct tti_boot *boot,
					      const struct tti_peer_settings *settings,
					      struct tti_peers *out);
/* Keep only what the rest of init needs: the info of 1,000 ranks takes 300 KB at each. */
TUTTI_CHECKED tutti_status tti_peers_digest(struct tti_peers *peers);
void tti_peers_release(struct tti_peers *peers);

/* All ranks fail by what `failed_rank` found: the others get its status and error text. All call
 * it. */
TUTTI_CHECKED tutti_status tti_peers_fail(struct tti_boot *boot, int failed_rank,
					  tutti_status status);

/* first_out[rank]: the lowest rank with the same key. A rank with key 0 is alone. */
TUTTI_CHECKED tutti_status tti_peers_group(const uint64_t *key, int n, int *first_out);

#endif
