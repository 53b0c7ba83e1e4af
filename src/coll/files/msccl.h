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
 * They are read as programs (program.h), by what the steps do and not by where they keep
 * it: a value is followed from buffer to buffer, so copies inside a rank vanish and
 * scratch takes memory only where it must. A rank of a program has one value of each
 * chunk; what comes into scratch and is reduced later is reduced as it comes, if nothing
 * looks at the chunk in between. A file that needs two values of one chunk on one rank
 * is refused, with the lines.
 *
 * Read and checked, but without meaning here: proto, nchannels beyond the range of chan.
 * The programs run in place and out of place whatever the file was made for. `root` is
 * Tutti's: that of broadcast and reduce, 0 where absent. */

#include "coll/program.h"

/* Bounds of a file: ranks, chunks of a buffer, thread blocks of a rank, chunks of all
 * buffers of all ranks, and chunks that all steps handle. */
#define TTI_MSCCL_RANKS_MAX  1024
#define TTI_MSCCL_CHUNKS_MAX 65536
#define TTI_MSCCL_TBS_MAX    4096
#define TTI_MSCCL_PLACES_MAX (1 << 24)
#define TTI_MSCCL_EVENTS_MAX (1 << 22)

/* What a file says of itself. The programs are not proven yet (check.h). */
struct tti_msccl_head {
	char name[64];
	tutti_collective coll;
	int n, root;
	size_t min_bytes, max_bytes; /* of the vector, both included; max SIZE_MAX: any more */
};

/* *prog_out: of all ranks, as tti_program_read() gives them. TUTTI_EINVAL as
 * "SOURCE:LINE:COLUMN: <step>: gpu G tb T step S: reason". */
TUTTI_CHECKED tutti_status tti_msccl_read(const char *text, size_t nbytes, const char *source,
					  struct tti_msccl_head *head,
					  struct tti_program **prog_out);

#endif
