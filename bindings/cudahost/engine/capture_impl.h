/* SPDX-License-Identifier: BSD-3-Clause */
/* What captures are made of, for capture.c and capture_rules.c. All is under the lock of graphs,
 * and so are the functions. */
#ifndef TUTTI_CUDAHOST_ENGINE_CAPTURE_IMPL_H
#define TUTTI_CUDAHOST_ENGINE_CAPTURE_IMPL_H

#include "engine/graph_impl.h"

struct tti_cuda_capture_member {
	struct tti_cuda_stream *stream;
	struct tti_cuda_nodes tail; /* with room for one node at least */
};

struct tti_cuda_capture {
	_Atomic uint32_t holds;
	uint64_t id;
	enum tti_cuda_capture_mode mode;
	uint64_t thread;                   /* that began it */
	enum tti_cuda_capture_state state; /* NONE: it has ended */
	char why[200];                     /* it is invalid */
	struct tti_cuda_graph *graph;
	bool owns_graph;
	struct tti_cuda_capture_member **members; /* the first is where it began */
	size_t nmembers, room;
	struct tti_cuda_capture *next;
};

/* All that go on. */
extern struct tti_cuda_capture *tti_cuda_captures;
extern _Atomic int tti_cuda_ncaptures; /* without the lock: those who find none need not take it */

/* Never the same for two threads, as addresses and pthread_self() may be. */
uint64_t tti_cuda_capture_thread(void);

void tti_cuda_capture_let_go(struct tti_cuda_capture *capture);

/* Add what is not there; if that fails, nothing has changed. */
int tti_cuda_capture_add_tail(struct tti_cuda_nodes *tail, struct tti_cuda_node *const *nodes,
			      size_t n);
int tti_cuda_capture_add_member(struct tti_cuda_capture *capture, struct tti_cuda_stream *stream,
				struct tti_cuda_node *const *tail, size_t ntail);
struct tti_cuda_capture_member *tti_cuda_capture_find_member(const struct tti_cuda_capture *capture,
							     const struct tti_cuda_stream *stream);

/* The capture of a stream, if it may take something. NULL with *error: it may not; NULL without:
 * the stream is not captured. */
struct tti_cuda_capture *tti_cuda_capture_active(struct tti_cuda_stream *stream, int *error);

/* The first reason is what its end says. */
void tti_cuda_capture_invalidate(struct tti_cuda_capture *capture, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* ECAPTURED, with the reason. */
int tti_cuda_capture_fail_invalid(const struct tti_cuda_capture *capture);

#endif
