/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MSCCL_FILE_H
#define TTI_COLL_MSCCL_FILE_H

/* Private to the reader of MSCCL's files (msccl.h):
 *
 *     elements ──msccl_read.c, msccl_step.c──▶ steps of thread blocks, each alone in range
 *              ──msccl_order.c─▶ one order of all that happens, messages paired
 *              ──msccl_emit.c──▶ programs of ranks
 *
 * Ranks are called gpu in these files, so messages call them that. */

#include <stdbool.h>
#include <stdint.h>

#include "coll/program.h"
#include "topo/tree/xml.h"

enum tti_msccl_type {
	TTI_MSCCL_NOP,
	TTI_MSCCL_S,    /* send src                                  */
	TTI_MSCCL_R,    /* receive into dst                          */
	TTI_MSCCL_RCS,  /* receive into dst, and send it             */
	TTI_MSCCL_RRC,  /* dst = src op what is received             */
	TTI_MSCCL_RRS,  /* send src op what is received              */
	TTI_MSCCL_RRCS, /* dst = src op what is received, and send it */
	TTI_MSCCL_CPY,  /* dst = src                                 */
	TTI_MSCCL_RE,   /* dst = dst op src                          */
	TTI_MSCCL_TYPES,
};

enum tti_msccl_buf { TTI_MSCCL_INPUT, TTI_MSCCL_OUTPUT, TTI_MSCCL_SCRATCH };

struct tti_msccl_step {
	const struct tti_xml *node;
	uint8_t type, src, dst; /* enum tti_msccl_type, _buf */
	int32_t srcoff, dstoff, cnt;
	int32_t dep; /* the step that must be done before, an index into steps; -1: none */
	int32_t tb;  /* index into tbs  */
};

struct tti_msccl_tb {
	const struct tti_xml *node;
	int32_t gpu, id, send, recv, chan; /* send, recv: -1: nobody */
	int32_t first, n;                  /* its steps, in steps    */
};

struct tti_msccl_gpu {
	const struct tti_xml *node;
	int32_t chunks[3]; /* of each buffer, as the file says  */
	int32_t first, n;  /* its thread blocks, in tbs         */
	int32_t places;    /* the first of its places           */
};

struct tti_msccl {
	struct tti_xml_doc *doc;
	const char *name; /* the document's                               */
	tutti_collective coll;
	int32_t n, root, nchunks; /* nchunks: of the larger of input and output        */
	int32_t nvalues;          /* chunks of a program: alltoall has those of all ranks */
	int32_t nchannels;
	bool in_place; /* input and output are one memory                 */
	size_t min_bytes, max_bytes;
	struct tti_msccl_gpu *gpu; /* [n], by id                           */
	size_t nplaces;            /* of all ranks                         */
	TTI_VEC(struct tti_msccl_tb) tbs;
	TTI_VEC(struct tti_msccl_step) steps;
};

/* What one step does to one chunk. A step that receives and then sends makes two events for each
 * chunk, one for each half. */
enum tti_msccl_half {
	TTI_MSCCL_LOCAL, /* nop, cpy, re */
	TTI_MSCCL_GET,   /* receive from the thread block's `recv`  */
	TTI_MSCCL_PUT,   /* send to its `send`                      */
};

struct tti_msccl_event {
	int32_t step;
	int32_t chunk;     /* 0 .. cnt-1                            */
	int32_t partner;   /* GET, PUT: the event at the other end  */
	uint8_t half;      /* enum tti_msccl_half                   */
	bool begins, ends; /* the first, the last one of its step   */
};

struct tti_msccl_events {
	TTI_VEC(struct tti_msccl_event) at; /* thread block after thread block */
	int32_t *first;                     /* of each thread block, and the end */
	int32_t *order;                     /* all of them, as they happen       */
};

/* FILE:LINE:COLUMN: <step>: gpu G tb T step S: ... TUTTI_EINVAL. */
TUTTI_CHECKED TUTTI_PRINTF(3, 4) tutti_status
	tti_msccl_fail(const struct tti_msccl *m, int32_t step, const char *fmt, ...);

static inline int32_t tti_msccl_gpu_of(const struct tti_msccl *m, int32_t step)
{
	return m->tbs.at[m->steps.at[step].tb].gpu;
}

static inline uint32_t tti_msccl_line(const struct tti_msccl *m, int32_t step)
{
	return m->steps.at[step].node->line;
}

/* -- msccl_step.c ------------------------------------------------------------------ */

/* A number that must be there. */
TUTTI_CHECKED tutti_status tti_msccl_number(const struct tti_msccl *m, const struct tti_xml *node,
					    const char *name, int64_t min, int64_t max,
					    int32_t *out);
/* The index of an attribute's word in a list. */
TUTTI_CHECKED tutti_status tti_msccl_word(const struct tti_msccl *m, const struct tti_xml *node,
					  const char *name, const char *const *words, size_t n,
					  int *out);
/* Check that all children have that name; NULL: that there are none. */
TUTTI_CHECKED tutti_status tti_msccl_children(const struct tti_msccl *m, const struct tti_xml *node,
					      const char *name);
/* Append a step to thread block `tb`, the last one. */
TUTTI_CHECKED tutti_status tti_msccl_read_step(struct tti_msccl *m, const struct tti_xml *node,
					       int32_t tb);
/* Resolve what a step depends on, once all steps are read. */
TUTTI_CHECKED tutti_status tti_msccl_find_dependency(struct tti_msccl *m, int32_t index);

/* -- msccl_read.c ------------------------------------------------------------------ */

/* Takes doc, even if it fails. The caller calls tti_msccl_release() in any case. */
TUTTI_CHECKED tutti_status tti_msccl_parse(struct tti_xml_doc *doc, struct tti_msccl *out);
void tti_msccl_release(struct tti_msccl *m);

/* Which ranks have a chunk in the input, or in the output. */
enum tti_holder tti_msccl_holder(const struct tti_msccl *m, uint8_t buf);

/* Chunk `off` of a buffer as a place, counted over all ranks: one number for one memory,
 * which input and output may be. */
int32_t tti_msccl_place(const struct tti_msccl *m, int rank, uint8_t buf, int32_t off);

/* -- msccl_order.c ----------------------------------------------------------------- */

/* Pair the k-th step that sends over a channel with the k-th that receives from it, and find an
 * order of all events in which each step comes after those that it depends on, each receive after
 * its send, and never two messages are on their way from one rank to another. So the program runs
 * with one slot for each link, and the messages of several channels share the link. */
TUTTI_CHECKED tutti_status tti_msccl_order(const struct tti_msccl *m, struct tti_msccl_events *out);
void tti_msccl_events_release(struct tti_msccl_events *events);

/* -- msccl_emit.c ------------------------------------------------------------------ */

/* prog[m->n], zeroed; to be released in any case. */
TUTTI_CHECKED tutti_status tti_msccl_emit(const struct tti_msccl *m,
					  const struct tti_msccl_events *events,
					  struct tti_program *prog);

#endif
