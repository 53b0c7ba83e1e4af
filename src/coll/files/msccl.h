/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MSCCL_H
#define TTI_COLL_MSCCL_H

/* Algorithms as MSCCL's tools write them (Cowan, Maleki, Musuvathi, Saarikivi and Xiong,
 * "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023): for each rank
 * (<gpu>) thread blocks (<tb>) of steps (<step>), over chunks of three buffers.
 *
 *     <algo name="pair" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2"
 *           coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="1048576">
 *       <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
 *         <tb id="0" send="1" recv="1" chan="0">
 *           <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1"
 *                 depid="-1" deps="-1" hasdep="0"/> ...
 *
 * The reader makes a program (program.h) of such a file. It follows each value from buffer to
 * buffer, so only what a step computes counts, and not the buffer that holds it: a copy inside a
 * rank needs no step, and scratch takes memory only where it must. A program keeps one value of
 * each chunk on each rank. If a file receives a chunk into scratch and reduces it later, the
 * program reduces it on arrival, provided that no step in between reads the chunk. If a file needs
 * two values of one chunk on one rank at the same time, it is refused, and the error names the
 * lines.
 *
 * Two attributes are checked and then have no effect: proto, and nchannels beyond the range of
 * chan. The programs run in place and out of place, whichever of them the file was made for. The
 * attribute `root` is an addition of Tutti: the root of a broadcast or reduce, 0 where it is
 * absent. */

#include "coll/program.h"

/* The largest file that is read: ranks, chunks of a buffer, thread blocks of a rank, chunks of
 * all buffers of all ranks, and chunks that all steps handle. */
#define TTI_MSCCL_RANKS_MAX  1024
#define TTI_MSCCL_CHUNKS_MAX 65536
#define TTI_MSCCL_TBS_MAX    4096
#define TTI_MSCCL_PLACES_MAX (1 << 24)
#define TTI_MSCCL_EVENTS_MAX (1 << 22)

/* The attributes of a file. The checker has not proven its programs yet (check.h). */
struct tti_msccl_head {
	char name[64];
	tutti_collective coll;
	int n, root;
	size_t min_bytes, max_bytes; /* of the vector, both included; max SIZE_MAX: any more */
};

/* *prog_out gets the programs of all ranks, as tti_program_read() gives them. A file that is
 * wrong is TUTTI_EINVAL, with the text "SOURCE:LINE:COLUMN: <step>: gpu G tb T step S: reason". */
TUTTI_CHECKED tutti_status tti_msccl_read(const char *text, size_t nbytes, const char *source,
					  struct tti_msccl_head *head,
					  struct tti_program **prog_out);

#endif
