/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHECK_H
#define TTI_COLL_CHECK_H

/* The symbolic checker: runs the programs of all ranks together, with sets of
 * contributions in place of numbers, and proves
 *   - every output chunk holds every contribution exactly once (reductions), or
 *     the right one (all the others);
 *   - nothing reads what is not there;
 *   - every message is received, by the step and into the chunk it was sent for;
 *   - nothing deadlocks with `slots` slots per link;
 *   - exactly the last reduction of an output chunk is marked final;
 *   - contributions are combined in an order that was asked for.
 * Links are FIFOs with one writer and steps are ordered by their data, so all
 * interleavings end alike: one greedy run proves them all.
 *
 * For memory programs (program.h) it also proves, with each rank in place or not as it is:
 *   - two accesses to one memory, one of them a write, are ordered by NOTIFY and WAIT, so that
 *     all interleavings end alike here, too;
 *   - a rank's buffers are touched after its program has begun, and before it ends;
 *   - all ranks know where buffers are that others touch, before they move data.
 *
 * The checker runs what the engine runs: compiled programs (compile.h), both in dataflow order
 * and strictly one operation after the other. It runs each of these twice: with fan-outs as
 * shared memory has them (a fan-out takes one of the sender's `slots` shared slots, free again
 * when all have read it, and a place on every link), and with fan-outs as single messages.
 *
 * An operation runs as a whole here: a fan-out when all its links have room, an
 * n-ary reduction when all messages are there. An engine that sends a fan-out link by link gets
 * further, never less far. A proof for one slot holds for any number of slots. A proof for
 * one block holds for any number of blocks: they complete one after the other,
 * and so they do in every other order.
 *
 * The proof covers blocks whose stages overlap (program.h). A round of the engine has
 * the steps of the program in its order, some of them for earlier blocks. A step waits
 * only for steps of this round or of earlier ones, and links see the order of the program. Where
 * steps are missing, at the beginning and at the end, their counterparts are
 * missing too, and the messages that are left need no more slots than all of them did. */

#include "coll/compile/compile.h"
#include "coll/program.h"

/* prog[0..n-1] are the programs of ranks 0..n-1; every reduction must be in `order`.
 * TUTTI_EINVAL (quiet: the text is tti_error_text()) names rank, step and chunk of the first
 * breach. */
TUTTI_CHECKED tutti_status tti_program_check(const struct tti_program *prog, int n, int slots,
					     enum tti_order order);

#endif
