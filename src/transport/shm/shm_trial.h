/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_TRIAL_H
#define TTI_TRANSPORT_SHM_TRIAL_H

/* How the ranks of a domain reach ordinary memory of each other. Each rank tries while it joins
 * whether the kernel lets it copy from others, the leader and one member measure whether that is
 * faster than slots, and the leader decides for all.
 *
 *     leader                                  member
 *     who is a member  ->  segment
 *     tries some others                       tries some others, says what came of it
 *            '-------- both measure, if it is the first on another core ------'
 *     the decision  ->  segment
 *                                             settle(): reads it, once all have joined
 *
 * Owner: all of it lies in the segment. Threads: each field says who writes it. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

struct tti_shm_port;

enum tti_shm_state {
	TTI_SHM_STRANGER, /* not in the domain                   */
	TTI_SHM_MEMBER,   /* it is, and has not tried yet        */
	TTI_SHM_ALLOWED,
	TTI_SHM_REFUSED,
};

/* The trial of one rank, which writes it, except that the leader makes it a member. */
struct tti_shm_trial {
	_Alignas(128) _Atomic uint32_t state; /* enum tti_shm_state */
	int32_t peer, error;                  /* refused: whose memory, and errno */
	/* While it measures: its source; how often it came to a meeting; pieces that it has put
	 * into its slots and taken out of those of the other rank; whether it gives up. */
	uint64_t source;
	int64_t began_ns; /* the copy of this round */
	_Alignas(128) _Atomic uint32_t met, put, taken, gave_up;
	_Atomic int32_t cpu; /* where it was when it tried, and at the last meeting */
};

enum tti_shm_why {
	TTI_SHM_BY_SETTING = 1, /* TUTTI_REACH                                    */
	TTI_SHM_BY_THREADS,     /* all ranks are threads of one process           */
	TTI_SHM_BY_REFUSAL,     /* the kernel does not let all copy from all      */
	TTI_SHM_BY_FIGURES,
	TTI_SHM_UNMEASURED, /* the two ranks did not get their cores in time  */
};

/* The decision for all; the leader writes it. */
struct tti_shm_agreement {
	_Alignas(128) _Atomic uint32_t why; /* enum tti_shm_why, 0: not yet        */
	uint32_t plain;                     /* enum tti_reach                      */
	uint32_t wish;                      /* enum tti_reach_wish                 */
	int32_t rank, peer, error;          /* of the first refusal: who, of whom  */
	struct tti_reach_figures figures;
};

/* At the leader: the members are known (by candidate), itself among them. */
void tti_shm_trial_begin(struct tti_shm_port *port, const bool *is_member);

/* Try to read and to write memory of the ranks 1, 2, 4 ... places to the right. */
void tti_shm_trial_run(struct tti_shm_port *port);

/* At the leader: whether it measures with that member. It takes the first on another core, as two
 * ranks of one core copy one after the other; else the last. */
bool tti_shm_trial_measures(const struct tti_shm_port *port, int index);

/* shm_measure.c. Both ranks call it, the leader keeps the figures. It takes some 1.5 ms, and gives
 * up after TTI_SHM_MEASURE_MS, where others use the cores. */
#define TTI_SHM_MEASURE_MS 20
void tti_shm_measure(struct tti_shm_port *port, int index, bool leads);

/* At the leader, once all members have tried. */
void tti_shm_trial_decide(struct tti_shm_port *port);

/* As transport.h says. */
tutti_status tti_shm_settle(struct tti_port *port);

#endif
