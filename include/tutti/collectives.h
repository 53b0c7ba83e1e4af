/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_COLLECTIVES_H
#define TUTTI_COLLECTIVES_H

/* Calls that move data between ranks. Part of tutti.h, which is what to include and
 * which says what counts for all calls: order, threads, streams, errors. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Collectives --------------------------------------------------------- */

/* In place: pass the same address as send and receive buffer (all_gather: send
 * == recv + rank * count; reduce_scatter: recv == send + rank * count). Any
 * other overlap is TUTTI_EINVAL. A count of 0 only orders. Buffers need no alignment but that of their type. */

/* recv[i] = op over all ranks of send[i], i < count, on every rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_reduce(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_op op,
						      tutti_comm_t comm, tutti_stream_t stream);

/* recv[i] = op over all ranks of send[i] on `root`; recv is not looked at on
 * the other ranks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce(const void *send, void *recv, size_t count,
						  tutti_type type, tutti_op op, int root,
						  tutti_comm_t comm, tutti_stream_t stream);

/* recv[i] = root's send[i] on every rank; send is looked at on the root only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_broadcast(const void *send, void *recv, size_t count,
						     tutti_type type, int root, tutti_comm_t comm,
						     tutti_stream_t stream);

/* recv[r * count + i] = rank r's send[i], i < count, on every rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* recv[i] = op over all ranks of send[rank * count + i], i < count. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter(const void *send, void *recv,
							  size_t count, tutti_type type,
							  tutti_op op, tutti_comm_t comm,
							  tutti_stream_t stream);

/* Returns on no rank before all ranks have called it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_barrier(tutti_comm_t comm, tutti_stream_t stream);

/* -- Two ranks, groups --------------------------------------------------- */

/* Send to and receive from one peer. Messages between two ranks match in the
 * order of the calls; count and type are the same on both sides. A send may
 * return before the receive has started, or wait for it: do not rely on
 * either; put calls that need each other into one group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send(const void *send, size_t count, tutti_type type,
						int peer, tutti_comm_t comm, tutti_stream_t stream);
TUTTI_API TUTTI_CHECKED tutti_status tutti_recv(void *recv, size_t count, tutti_type type, int peer,
						tutti_comm_t comm, tutti_stream_t stream);

/* Between start and end calls only queue; at the outermost end all run, those
 * on different communicators and all sends and receives at the same time, so
 * their order inside the group cannot deadlock. Per thread; nests. A call that
 * fails inside the group is reported by the call and again by the end, and
 * then nothing of the group runs. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_start(void);
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_end(void);

#ifdef __cplusplus
}
#endif

#endif
