/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_COLLECTIVES_H
#define TUTTI_COLLECTIVES_H

/* Calls that move data between ranks. Part of tutti.h, which is what to include and which says what
 * holds for all calls: order, threads, streams, errors. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Collectives --------------------------------------------------------- */

/* All ranks of a communicator call a collective, in the same order. It fails with TUTTI_EINVAL if
 * an argument is wrong by itself (then nothing was sent), with TUTTI_EUSAGE while a nonblocking
 * init is under way, and with what ends the communicator: TUTTI_EPEER, TUTTI_EMISMATCH,
 * TUTTI_ETIMEOUT and their like.
 *
 * In place: pass the same address as send and receive buffer. In all_gather, and on the root of a
 * gather, send is recv + rank * count; in reduce_scatter, and on the root of a scatter, recv is
 * send + rank * count. Any other overlap is TUTTI_EINVAL. A call with count 0 moves nothing, but
 * keeps its place in the order. Buffers need no alignment but that of their type. */

/* Combine the vectors of all ranks, and give every rank the result. recv[i] = op over all ranks of
 * send[i], i < count. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_reduce(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_op op,
						      tutti_comm_t comm, tutti_stream_t stream);

/* Combine the vectors of all ranks on `root`. recv[i] = op over all ranks of send[i], i < count.
 * The other ranks' recv is ignored. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce(const void *send, void *recv, size_t count,
						  tutti_type type, tutti_op op, int root,
						  tutti_comm_t comm, tutti_stream_t stream);

/* Give every rank the vector of `root`. recv[i] = root's send[i], i < count. The other ranks' send
 * is ignored. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_broadcast(const void *send, void *recv, size_t count,
						     tutti_type type, int root, tutti_comm_t comm,
						     tutti_stream_t stream);

/* Give every rank the vectors of all ranks, one behind the other. recv[r * count + i] = rank r's
 * send[i], i < count. `count` is that of one rank: recv holds `count` elements for each rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* Combine the vectors of all ranks, and give each rank its part of the result. recv[i] = op over
 * all ranks of send[rank * count + i], i < count, where `rank` is the calling one. `count` is that
 * of one rank: send holds `count` elements for each rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter(const void *send, void *recv,
							  size_t count, tutti_type type,
							  tutti_op op, tutti_comm_t comm,
							  tutti_stream_t stream);

/* Send a part of the vector to each rank, and receive one from each. recv[r * count + i] = rank r's
 * send[rank * count + i], i < count, where `rank` is the calling one. `count` is what one rank
 * sends to one other. In place: recv == send. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_to_all(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* Collect the vectors of all ranks on `root`, one behind the other. recv[r * count + i] = rank r's
 * send[i], i < count. The other ranks' recv is ignored. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_gather(const void *send, void *recv, size_t count,
						  tutti_type type, int root, tutti_comm_t comm,
						  tutti_stream_t stream);

/* Give each rank its part of the vector of `root`. recv[i] = root's send[rank * count + i], i <
 * count. The other ranks' send is ignored. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_scatter(const void *send, void *recv, size_t count,
						   tutti_type type, int root, tutti_comm_t comm,
						   tutti_stream_t stream);

/* The same with a count for each rank (size_t[nranks], in elements; 0 is fine) and a displacement:
 * where the elements of that rank begin in the buffer, in elements. The library reads the arrays
 * before it returns.
 *
 * What one rank sends to another must be as much as the other expects. Where a rank knows its own
 * counts only, two that differ are TUTTI_EMISMATCH on all ranks. In place: as above, with the
 * rank's displacement. all_to_all_v in place has the same counts and displacements for both
 * directions. */

/* Send a part of any length to each rank, and receive one from each. recv[recv_displs[r] + i] =
 * rank r's send[its send_displs[rank] + i], i < recv_counts[r], which is rank r's
 * send_counts[rank]. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_to_all_v(const void *send, const size_t *send_counts,
							const size_t *send_displs, void *recv,
							const size_t *recv_counts,
							const size_t *recv_displs, tutti_type type,
							tutti_comm_t comm, tutti_stream_t stream);

/* Collect vectors of any lengths on `root`. recv[displs[r] + i] = rank r's send[i], i < counts[r].
 * The other ranks' recv, counts and displs are ignored. `count` is this rank's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_gather_v(const void *send, size_t count, void *recv,
						    const size_t *counts, const size_t *displs,
						    tutti_type type, int root, tutti_comm_t comm,
						    tutti_stream_t stream);

/* Give each rank its part, of any length, of the vector of `root`. recv[i] = root's
 * send[displs[rank] + i], i < counts[rank]. The other ranks' send, counts and displs are ignored.
 * `count` is this rank's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_scatter_v(const void *send, const size_t *counts,
						     const size_t *displs, void *recv, size_t count,
						     tutti_type type, int root, tutti_comm_t comm,
						     tutti_stream_t stream);

/* Give every rank the vectors, of any lengths, of all ranks. recv[displs[r] + i] = rank r's
 * send[i], i < counts[r]. All ranks pass the same counts; displacements may differ. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather_v(const void *send, void *recv,
							const size_t *counts, const size_t *displs,
							tutti_type type, tutti_comm_t comm,
							tutti_stream_t stream);

/* Combine the vectors of all ranks, and give each rank its part, of any length, of the result:
 * recv[i] = op over all ranks of send[c + i], i < counts[rank], where c is the sum of the counts of
 * the ranks before. All ranks pass the same counts. In place: recv == send + c. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter_v(const void *send, void *recv,
							    const size_t *counts, tutti_type type,
							    tutti_op op, tutti_comm_t comm,
							    tutti_stream_t stream);

/* Wait until all ranks have called it: it is done on no rank before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_barrier(tutti_comm_t comm, tutti_stream_t stream);

/* One side of a handoff: which ranks, and what each of them holds. */
typedef struct tutti_side {
	const int *ranks; /* [n], each once, in any order */
	int n;
	/* 0: every rank holds the whole vector. 1: ranks[i] holds only part i, and its buffer is
	 * that part: see tutti_part(). */
	int sharded;
} tutti_side;

/* Tell where part `index` of `n` parts of a vector of `count` elements begins, in *first, and how
 * many elements it has, in *part_count. The first count % n parts have one element more. Any
 * thread. */
TUTTI_API void tutti_part(size_t count, int n, int index, size_t *first, size_t *part_count);

/* Hand a vector of `count` elements from the ranks of `from` to the ranks of `to`. On either side
 * each rank holds the whole vector, or its part of it (tutti_side.sharded). The vector goes over as
 * many NICs as there are between the sides: each byte enters each node once and is spread inside.
 *
 * All ranks of the communicator call it with the same sides. Ranks on neither side pass NULL
 * buffers and are done at once. In the first call with given sides they take part, too, as one rank
 * plans the handoff for all, or get TUTTI_EPLAN. The library reads `send` on ranks of `from` and
 * writes `recv` on ranks of `to`. The buffers of a rank on both sides may overlap only where the
 * same elements lie at the same place. With TUTTI_CHECK=1 the ranks first compare sources that
 * should be equal: TUTTI_EMISMATCH on all ranks names one that differs. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_handoff(const void *send, void *recv, size_t count,
						   tutti_type type, const tutti_side *from,
						   const tutti_side *to, tutti_comm_t comm,
						   tutti_stream_t stream);

/* -- Two ranks, groups --------------------------------------------------- */

/* Send to one peer, which receives. Messages between two ranks match in the order of the calls;
 * count and type are the same on both sides. A send may return before the receive has started, or
 * wait for it: rely on neither, and put calls that need each other into one group. A rank may send
 * to itself only in a group that also receives it (else TUTTI_EUSAGE). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send(const void *send, size_t count, tutti_type type,
						int peer, tutti_comm_t comm, tutti_stream_t stream);

/* Receive from one peer what it sends by tutti_send(), whose rules hold here as well. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_recv(void *recv, size_t count, tutti_type type, int peer,
						tutti_comm_t comm, tutti_stream_t stream);

/* Send `send_count` elements to rank `to` and receive `recv_count` from rank `from` at once. It is
 * a group of the two, so it cannot deadlock against another rank that does the same. A rank of -1:
 * no send, or no receive. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send_recv(const void *send, size_t send_count, int to,
						     void *recv, size_t recv_count, int from,
						     tutti_type type, tutti_comm_t comm,
						     tutti_stream_t stream);

/* Begin a group. Until its end, calls of this thread are only queued; inits, splits and shrinks
 * return at once. Groups nest; only the outermost end runs anything.
 *
 * A group has an order of its own. For each communicator and stream, first all sends and receives
 * run at the same time, so that their order in the group cannot deadlock. Then the collectives run
 * in the order of the calls, wherever sends and receives were among them: they see what was
 * received. (What a collective gives can only be sent in a later group.) Different communicators
 * run at the same time. If a communicator has calls on several streams, those that are launched in
 * streams of CUDA (tutti_stream_wrap()) come first, those of the NULL stream last, and in each of
 * these kinds streams are in the order of their first calls. These sequences must match on all
 * ranks, as they must without groups. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_start(void);

/* End a group. The outermost end runs what the group holds, in the order that tutti_group_start()
 * tells. When it returns, calls on the NULL stream are done, and communicators that the group was
 * to make are made; calls on streams are done at their turn there. A call that fails inside the
 * group is reported by the call and again here; then nothing of the group runs. TUTTI_EUSAGE: there
 * is no group, or the sends to and the receives from the own rank are not equally many. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_end(void);

/* End the outermost group without running its calls, and predict in *us how many microseconds they
 * would take, from when the last rank has made them. Communicators that the group was to make are
 * made. The prediction is by the model of `tutti tune --table` (LogGP, with the constants of the
 * tuning file in force), for the algorithms that the calls would take. It assumes that data goes by
 * messages, that the sends and receives of one communicator and stream run at the same time, and
 * all else one after the other. It asks no other rank, so the others need not call it; the numbers
 * of later calls are as if these had not been made. TUTTI_EINVAL: us is NULL. TUTTI_EUSAGE: there
 * is no group, or more than one (these two leave it open), or the sends to and the receives from
 * the own rank are not equally many. TUTTI_EUNSUPPORTED: an algorithm of the user's, or one that
 * the model does not have. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_simulate_end(double *us);

#ifdef __cplusplus
}
#endif

#endif
