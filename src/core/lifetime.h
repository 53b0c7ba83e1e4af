/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_LIFETIME_H
#define TTI_CORE_LIFETIME_H

/* The beginning and the end of a communicator's memory. A communicator that others were made of
 * (their root) stays as a zombie, of which only the bootstrap works, until the last of them is
 * freed.
 *
 * Threads: one at a time. */

#include "core/comm.h"

/* With its settings, nothing else; NULL: out of memory. */
struct tti_comm *tti_comm_create(int rank, int n, const tutti_config *config);
/* Ends the watch, closes links and ports, frees. Half-built is fine. */
void tti_comm_free(struct tti_comm *comm);
/* `comm` descends from that communicator's root, which stays as long. */
void tti_comm_hold(struct tti_comm *comm, struct tti_comm *relative);

/* Links and ports, when nothing runs any more. */
void tti_comm_close_ports(struct tti_comm *comm);

#endif
