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

/* Called by all ranks of a communicator, in the same order. They fail with TUTTI_EINVAL for
 * arguments that are wrong by themselves (nothing was sent then), TUTTI_EUSAGE while a
 * nonblocking init is under way, and with what ends the communicator: TUTTI_EPEER,
 * TUTTI_EMISMATCH, TUTTI_ETIMEOUT and their like.
 *
 * In place: pass the same address as send and receive buffer (all_gather, and the
 * root of a gather: send == recv + rank * count; reduce_scatter, and the root of a
 * scatter: recv == send + rank * count). Any other overlap is TUTTI_EINVAL. A
 * count of 0 only orders. Buffers need no alignment but that of their type. */

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

/* recv[r * count + i] = rank r's send[i], i < count, on every rank. `count` is of one rank:
 * recv holds as many times that as there are ranks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* recv[i] = op over all ranks of send[rank * count + i], i < count, `rank` being the own.
 * `count` is of one rank: send holds as many times that as there are ranks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter(const void *send, void *recv,
							  size_t count, tutti_type type,
							  tutti_op op, tutti_comm_t comm,
							  tutti_stream_t stream);

/* recv[r * count + i] = rank r's send[rank * count + i], i < count, on every rank, `rank` being
 * the own. `count` is what goes from one rank to one other. In place: recv == send. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_to_all(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* recv[r * count + i] = rank r's send[i], i < count, on `root`; recv is not looked at on
 * the other ranks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_gather(const void *send, void *recv, size_t count,
						  tutti_type type, int root, tutti_comm_t comm,
						  tutti_stream_t stream);

/* recv[i] = root's send[rank * count + i], i < count, on every rank; send is looked at on the
 * root only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_scatter(const void *send, void *recv, size_t count,
						   tutti_type type, int root, tutti_comm_t comm,
						   tutti_stream_t stream);

/* The same with a count for each rank (size_t[nranks], in elements; 0 is fine) and a
 * displacement: where its elements begin in the buffer, in elements. The library reads the
 * arrays before it returns.
 *
 * What one rank sends to another is as much as the other expects of it: where each knows its
 * own counts only, a pair that differs is TUTTI_EMISMATCH on all ranks. In place: as above,
 * with the rank's displacement; all_to_all_v in place has the same counts and displacements
 * both ways. */

/* recv[recv_displs[r] + i] = rank r's send[its send_displs[rank] + i], i < recv_counts[r], which
 * is rank r's send_counts[rank]. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_to_all_v(const void *send, const size_t *send_counts,
							const size_t *send_displs, void *recv,
							const size_t *recv_counts,
							const size_t *recv_displs, tutti_type type,
							tutti_comm_t comm, tutti_stream_t stream);

/* recv[displs[r] + i] = rank r's send[i], i < counts[r], on `root`; recv, counts and displs
 * are not looked at on the other ranks. `count` is this rank's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_gather_v(const void *send, size_t count, void *recv,
						    const size_t *counts, const size_t *displs,
						    tutti_type type, int root, tutti_comm_t comm,
						    tutti_stream_t stream);

/* recv[i] = root's send[displs[rank] + i], i < counts[rank], on every rank; send, counts and
 * displs are looked at on the root only. `count` is this rank's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_scatter_v(const void *send, const size_t *counts,
						     const size_t *displs, void *recv, size_t count,
						     tutti_type type, int root, tutti_comm_t comm,
						     tutti_stream_t stream);

/* recv[displs[r] + i] = rank r's send[i], i < counts[r], on every rank. All ranks pass the
 * same counts; displacements may differ. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather_v(const void *send, void *recv,
							const size_t *counts, const size_t *displs,
							tutti_type type, tutti_comm_t comm,
							tutti_stream_t stream);

/* recv[i] = op over all ranks of send[c + i], i < counts[rank], c being the sum of the counts
 * of the ranks before. All ranks pass the same counts. In place: recv == send + c. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter_v(const void *send, void *recv,
							    const size_t *counts, tutti_type type,
							    tutti_op op, tutti_comm_t comm,
							    tutti_stream_t stream);

/* Wait for each other: it is done on no rank before all ranks have called it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_barrier(tutti_comm_t comm, tutti_stream_t stream);

/* One side of a handoff: which ranks, and what each of them holds. */
typedef struct tutti_side {
	const int *ranks; /* [n], each once, in any order */
	int n;
	/* 0: every rank holds the whole vector. 1: ranks[i] holds part i alone, and its
	 * buffer is that part: see tutti_part(). */
	int sharded;
} tutti_side;

/* Part `index` of `n` of a vector of `count` elements: where it begins, in *first, and how many
 * elements it has, in *part_count. The first count % n parts have one element more. Any
 * thread. */
TUTTI_API void tutti_part(size_t count, int n, int index, size_t *first, size_t *part_count);

/* Hand a vector of `count` elements from the ranks that hold it (the whole on each, or
 * a part each) to those that shall (the whole on each, or a part each), over as many NICs as
 * there are between them: each byte goes once to each node and is spread inside.
 * Called by all ranks of the communicator with the same sides; ranks on neither side
 * pass NULL buffers and are done at once, but for the first call with some sides: that is planned
 * by one rank, and all take part, or get TUTTI_EPLAN. `send` is read on `from`, `recv` written on `to`. A
 * rank on both sides may pass buffers that overlap only where the same elements lie at the
 * same place. With TUTTI_CHECK=1 sources that hold the same are compared first:
 * TUTTI_EMISMATCH on all ranks names one that differs. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_handoff(const void *send, void *recv, size_t count,
						   tutti_type type, const tutti_side *from,
						   const tutti_side *to, tutti_comm_t comm,
						   tutti_stream_t stream);

/* -- Two ranks, groups --------------------------------------------------- */

/* Send to one peer, which receives. Messages between two ranks match in the order of the
 * calls; count and type are the same on both sides. A send may return before the receive has
 * started, or wait for it: do not rely on either; put calls that need each other into one
 * group. To the own rank only in a group that receives it, too (else TUTTI_EUSAGE). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send(const void *send, size_t count, tutti_type type,
						int peer, tutti_comm_t comm, tutti_stream_t stream);

/* Receive from one peer what it sends by tutti_send(): what is said there holds here. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_recv(void *recv, size_t count, tutti_type type, int peer,
						tutti_comm_t comm, tutti_stream_t stream);

/* Send `send_count` elements to `to` and receive `recv_count` from `from` at once: a group of
 * the two, so it cannot deadlock against another rank that does the same. A rank of -1: no
 * send, or no receive. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send_recv(const void *send, size_t send_count, int to,
						     void *recv, size_t recv_count, int from,
						     tutti_type type, tutti_comm_t comm,
						     tutti_stream_t stream);

/* Begin a group: until its end, calls of this thread only queue, and inits, splits and shrinks
 * return at once. Groups nest; only the outermost end runs anything.
 *
 * A group has an order of its own. Of each communicator, first all its sends and receives of
 * one stream run, at the same time, so that their order in the group cannot deadlock; then its
 * collectives on that stream, in the order of the calls, wherever sends and receives were among
 * them: they see what was received. (What a collective gives can only be sent in a later
 * group.) Different communicators run at the same time. Of a communicator that has calls on
 * several streams, those of the NULL stream come last, the others in the order of their first
 * calls. Such sequences must fit on all ranks, as they must without groups. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_start(void);

/* End a group; at the outermost end run what it holds, in the order that
 * tutti_group_start() tells. Calls on the NULL stream are done when it returns, those on
 * streams when they are at their turn there; what was to be made is. A call that fails inside
 * the group is reported by the call and again here, and then nothing of the group runs.
 * TUTTI_EUSAGE: there is no group, or sends to and receives from the own rank are not as
 * many. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_end(void);

/* End the outermost group, running none of its calls: *us becomes how many microseconds they should take,
 * from when the last rank has made them. Communicators that the group was to make are made. It is a
 * prediction by the model of `tutti tune --table` (LogGP, with the constants of the tuning file in force), of
 * the algorithms that the calls would go by: data goes by messages, sends and receives of one communicator
 * and stream at the same time, all else one after the other. No other rank is asked, and nobody has to call
 * it, too; numbers of calls are as if these had not been made.
 * TUTTI_EINVAL: us is NULL; TUTTI_EUSAGE: there is no group, or more than one (these two leave it open), or
 * sends to and receives from the own rank are not as many; TUTTI_EUNSUPPORTED: an algorithm of the user's,
 * or one that there is no model of. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_simulate_end(double *us);

#ifdef __cplusplus
}
#endif

#endif
