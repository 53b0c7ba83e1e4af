/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_ABI_H
#define TTI_DEVICE_ABI_H

/* What the host tells a kernel, and the kernel the host. Plain data of fixed width; an address is
 * an integer, valid where the kernel runs. C17, and C++17 as nvcc compiles it.
 *
 * A rank runs a program in `nblocks` blocks of threads. Each block takes its own part of every
 * message: of a piece with `count` elements block b has those from edge(b) to edge(b + 1), where
 * edge(b) is count * b / nblocks, rounded down to a multiple of 16 bytes, and edge(nblocks) is
 * count. A message holds that part alone, from the beginning of its slot on. Both ends of a link have
 * equally many blocks, so block b of one rank talks to block b of the other, over a lane that no
 * other block uses. No block waits for another one of its rank, so a block needs nothing but that
 * all blocks of all ranks are resident.
 *
 * Scratch is cut otherwise: what a block has of a short piece may lie where another block has its
 * part of a whole one. So each block has room of its own for the chunks of all its blocks of data:
 *
 *     scratch + ((block * window + round % window) * nscratch + operation.scratch) * part_bytes
 *
 * A lane is one direction of one link for one block: a FIFO of messages in slots.
 *
 *     sender      waits until seq < freed + nslots; writes the slot and its head; seq++;
 *                 full = seq (release, system scope)
 *     receiver    waits until full > seq (acquire, system scope); reads head and slot; seq++;
 *                 freed = seq (release, system scope)
 *
 * Slots, heads and `full` lie in memory of the receiver, `freed` in memory of the sender, so that
 * each end waits on memory of its own.
 *
 * Short messages go as words instead: 8 bytes, of which 4 are data and 4 are a flag, written by one
 * store. The receiver waits for the flag of every word, which is the number of the message (the low
 * 32 bits of seq + 1; 2^31 in place of 0), and needs no counter `full`. The slot holds twice the bytes
 * then. The first words are the head. `freed` counts as above. A whole call goes one way
 * (tti_dev_call.words), and both kinds share the sequence and the slots; a slot is cleared by nobody,
 * since a number of a message comes back only after 2^31 others. Words are zeroed at first, which is
 * no number. A message of the other kind may leave any bytes in the slot, so words lie in an area of
 * their own.
 *
 * Owner: who fills them. Threads: counters as above; all else belongs to the block while the kernel
 * runs, and to the host between kernels. */

#include <stdint.h>

#include "coll/compile/operation.h"

#define TTI_DEV_BLOCKS_MAX   32  /* of one rank */
#define TTI_DEV_THREADS_MAX  512 /* of a block */
/* Sources of an operation, or results. */
#define TTI_DEV_OPERANDS_MAX 1024
/* Calls of one launch, each with another one that may run in its place: parameters of a kernel are less
 * than 4 KiB. */
#define TTI_DEV_CALLS_MAX    8
/* Kinds of calls that are counted apart (tti_dev_call.kind). */
#define TTI_DEV_KINDS_MAX    32
/* After so many calls of a kind in a row whose buffers were not reached, one in so many asks. */
#define TTI_DEV_ASK_ALWAYS   16
#define TTI_DEV_ASK_EVERY    8

/* What a message is: of another call, or of another length, it ends the call (tti_dev_report). */
struct tti_dev_head {
	uint64_t tag;    /* of the call */
	uint64_t nbytes; /* of the whole message, of which each block has its part */
};

struct tti_dev_lane {
	uint64_t slots;                  /* nslots * slot_bytes, each slot 16-byte aligned */
	uint64_t heads;                  /* struct tti_dev_head[nslots] */
	uint64_t words;                  /* nslots * word_bytes * 2; 0: this lane has none */
	uint64_t full;                   /* uint64_t */
	uint64_t freed;                  /* uint64_t */
	uint64_t seq;                    /* messages sent, or received, at this end so far */
	uint64_t known;                  /* sender: what `freed` was when it was read last */
	uint32_t nslots;                 /* alike for all lanes of a rank */
	uint32_t slot_bytes, word_bytes; /* data that a message has at most, each way */
	/* Where a call with by_chunk stands: at block of data `round` of operation queued[at]. */
	uint32_t at, round;
	uint32_t pad;
};

/* As struct tti_operation. One that receives and one that sends the result on right after it are one
 * operation, which waits for its messages and for room. With one slot a lane that could go round in
 * a circle, so there the two halves run one after the other, the second from memory. One that sends an
 * input and one that copies it to the output are one operation, too. */
struct tti_dev_operation {
	int32_t chunk;
	int32_t in, out; /* first index into queue_of[] */
	int32_t scratch;
	int32_t get, put; /* first index into peer_of[] */
	int16_t nin, nout, nget, nput;
	int16_t local_at;
	uint8_t from, to; /* enum tti_place */
	uint8_t final;
	uint8_t stage;
	uint8_t sync;
	uint8_t is_dropped; /* nobody reads the result in memory: it need not be written there,
				unless the halves run apart */
};

/* A program in one piece of memory, which may be copied anywhere: arrays are offsets in bytes from
 * its beginning. Operations are in their order. A lane of a rank has the index 2 * peer + is_send. */
struct tti_dev_program {
	uint32_t nbytes; /* of all */
	int32_t rank, n;
	int32_t noperations, nqueues;
	int32_t nstages, skew; /* an operation of stage s is skew * s blocks of data behind */
	int32_t nscratch;      /* chunks that are in scratch at any time */
	int32_t noperands;     /* the most sources, and the most results, of an operation */
	int32_t is_memory, is_exchange;
	int32_t nopening;    /* of a memory program: operations of its first meeting */
	uint32_t operations; /* struct tti_dev_operation[noperations] */
	uint32_t queue_of;   /* int32_t[]: queues of in[] and out[] */
	uint32_t lane_of;    /* int32_t[nqueues] */
	uint32_t peer_of;    /* int32_t[]: ranks of get[] and put[] */
	/* For calls with by_chunk, so of sends and receives alone; else 0. */
	uint32_t queues;  /* struct tti_queue[nqueues] */
	uint32_t queued;  /* int32_t[]: operations of all queues, one after another */
	uint32_t pred_of; /* int32_t[noperations + 1]: first index into pred[] */
	uint32_t pred;    /* int32_t[]: operations that an operation waits for */
	uint32_t local;   /* int32_t[nlocal]: operations without any queue */
	int32_t nlocal;
};

/* A chunk that has a length of its own: as struct tti_extent of the engine. */
struct tti_dev_extent {
	uint64_t first, to, count, slice; /* elements */
	uint64_t tag;
};

/* Where the buffers of a rank lie, as one of its peers reaches them: the payload of the messages of
 * a memory program's first meeting. An address is shifted so that offsets of the layout lead to the
 * chunks; 0: the rank has no such buffer. */
struct tti_dev_buffers {
	uint64_t input, output;
};

/* As input: the peer does not reach them. A rank says so to all or to none. As tti_dev_call.inputs: this
 * rank says so. */
#define TTI_DEV_UNREACHED UINT64_MAX

enum tti_dev_result {
	TTI_DEV_RUNS, /* or has not begun */
	TTI_DEV_DONE,
	TTI_DEV_DIRECT,   /* done, by a memory program */
	TTI_DEV_STOPPED,  /* tti_dev_control.stop was set */
	TTI_DEV_MISMATCH, /* a message of another call: see tti_dev_report */
};

/* Where a block stands. Written by one thread of the block while it waits long, and when it goes on
 * after that; read by the host at any time, each word by itself. */
struct tti_dev_progress {
	uint32_t waits_for; /* 1 + the peer; 0: it does not wait long */
	uint32_t operation;
	uint32_t round;   /* block of data, with its skew */
	uint32_t is_room; /* it waits for room, not for a message */
	uint32_t looks;   /* differs once it has looked again, and found nothing */
};

/* The first message that did not fit; `result` is written last. */
struct tti_dev_report {
	uint32_t result; /* enum tti_dev_result; MISMATCH or RUNS */
	int32_t peer;
	uint64_t tag, nbytes;         /* that came, of the whole message */
	uint64_t own_tag, own_nbytes; /* that were expected */
};

enum tti_dev_stop {
	TTI_DEV_STOP_ALL = 1,
	TTI_DEV_STOP_NEXT, /* memory programs of graphs that begin from now on; what runs goes on */
};

/* Of one rank of one communicator, in memory that host and kernel share. */
struct tti_dev_control {
	uint32_t stop; /* the host sets it: which blocks end (enum tti_dev_stop) */
	uint32_t pad[15];
	struct tti_dev_report report;
	struct tti_dev_progress progress[TTI_DEV_BLOCKS_MAX];
	uint32_t runs[TTI_DEV_BLOCKS_MAX]; /* whether each block runs, of a call without `done` */
};

/* Of one rank of one communicator, in memory of its GPU; zeroed at first. */
struct tti_dev_state {
	uint32_t ended;    /* blocks of the launch that runs which have ended */
	uint32_t result;   /* the worst of their results */
	uint32_t reported; /* one of them has found a mismatch */
	uint32_t pad;
	/* Calls of each kind, as each block counts them, since the last one whose buffers were
	 * reached. All blocks of all ranks count the same. */
	uint32_t unused[TTI_DEV_BLOCKS_MAX][TTI_DEV_KINDS_MAX];
};

struct tti_dev_call {
	uint64_t program; /* struct tti_dev_program */
	uint64_t input, output, scratch;
	uint64_t lanes;   /* struct tti_dev_lane[nblocks][2 * n] */
	uint64_t extents; /* struct tti_dev_extent[nchunks]; 0: all chunks are alike */
	/* Of a memory program. Where each peer reaches the own input and output, uint64_t[n], and
	 * what is added so that offsets of the layout lead to the chunks; 0: nobody touches that
	 * buffer. inputs TTI_DEV_UNREACHED: peers do not reach what they would touch. */
	uint64_t inputs, outputs, input_shift, output_shift;
	uint64_t
		told; /* struct tti_dev_buffers[nblocks][n]: what each block was told, by kernels */
	uint64_t control; /* struct tti_dev_control */
	uint64_t state;   /* struct tti_dev_state */
	/* Where the last block writes (done_value << 8 | result) when all have ended, 8 bytes; 0:
	 * nowhere. */
	uint64_t done;
	uint64_t done_value;
	uint64_t tag;
	/* The layout, as struct tti_layout of the engine. */
	uint64_t chunk_count, row_count, in_stride, out_stride, paired;
	uint64_t slice; /* elements of a block of data; with extents each has its own */
	/* One element by which inputs are multiplied: where it lies, 0: in `scalar`. */
	uint64_t scalar_at, scalar[2];
	int32_t parts;    /* chunks of a row */
	int32_t nrounds;  /* blocks of data */
	int32_t window;   /* blocks of data that have scratch at a time, a power of two */
	int32_t by_chunk; /* each chunk has its own rounds and tag */
	int32_t type, op; /* tutti_type, tutti_op, one of TUTTI_OP_MAP */
	int32_t type_size;
	int32_t divisor; /* of AVG: of an operation that is final; else 0 */
	int16_t has_scalar;
	/* Messages go as words. Of a memory program never: its messages also say that memory was
	 * written, and words say nothing but themselves. */
	int16_t words;
	uint32_t part_bytes; /* of scratch: tti_dev_part_bytes() of slice */
	/* Of a memory program: there is another call in the launch, which runs in its place, over
	 * the same lanes, if the buffers of some rank are not reached. Of that one control, state and
	 * done are not read. */
	int16_t has_fallback;
	/* 1 + its kind: of those whose buffers are often not reached not every one asks (then a
	 * memory program has a fallback). 0: this one asks. */
	int16_t kind;
	/* Chunks of a row, if each peer is told of its own row of the output alone (all_gather_v);
	 * else 0. */
	int32_t by_row;
};

/* The parameter of a kernel, less than 4 KiB. All ranks of one launch have equally many blocks: block i is block
 * i % nblocks of call[i / nblocks]. */
struct tti_dev_launch {
	uint32_t ncalls, nblocks;
	uint32_t noperands; /* the most of all programs */
	uint32_t pad;
	/* [ncalls]; the fallback of call i is call[TTI_DEV_CALLS_MAX + i]. */
	struct tti_dev_call call[2 * TTI_DEV_CALLS_MAX];
};

#endif
