/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_SETUP_H
#define TTI_CORE_INIT_SETUP_H

/* Making a communicator once its ranks can talk. Threads: the one that makes it. */

#include <stdint.h>

#include "transport/transport.h"
#include "tutti/tutti.h"

struct tti_boot;
struct tti_comm;
struct tti_maker;

/* Peer info, transports, topologies, plan, engine, watch. `boot` is connected, which began at
 * began_ns, and is taken over. `maker`: NULL, or that of a child, which derives peer info and
 * plan from its root if it has a parent. */
TUTTI_CHECKED tutti_status tti_comm_setup(struct tti_comm *comm, struct tti_boot *boot,
					  const tutti_config *config, const struct tti_maker *maker,
					  int64_t began_ns);

/* How to open a port of a transport for this communicator. */
struct tti_port_config tti_port_config_of(const struct tti_comm *comm,
					  const struct tti_transport *transport);

#endif
