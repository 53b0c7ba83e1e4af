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
 * Of memory programs (program.h) also, in place or not, as each rank is:
 *   - of every two accesses to one memory, one of them a write, one comes first by NOTIFY and
 *     WAIT, so all interleavings end alike here, too;
 *   - a rank's buffers are touched after its program has begun, and before it ends;
 *   - all have heard where buffers are that somebody touches, before they move data.
 *
 * It runs what the engine runs: compiled programs (compile.h), each in dataflow order
 * and strictly one operation after the other, and each of these with fan-outs as
 * memory has them (one of the sender's `slots` shared slots, free again when all
 * have read it, and a place on every link) and as single messages.
 *
 * An operation is run as a whole here: a fan-out when all its links have room, an
 * n-ary reduction when all messages are there. Who sends a fan-out link by link gets
 * further, never less far. A proof for one slot is one for any number. One for
 * one block is one for any number of blocks: one after the other they run through,
 * and so they do in every other order.
 *
 * Blocks whose stages overlap (program.h) are proven with them: a round of the engine has
 * the steps of the program in its order, some of them for earlier blocks. What a step waits
 * for has been in this round or in one before; links see the order of the program; and
 * where, at the beginning and at the end, steps are missing, their counterparts are
 * missing too, and what is left of a row of messages needs no more slots than all. */

#include "coll/compile/compile.h"
#include "coll/program.h"

/* prog[0..n-1] are the programs of ranks 0..n-1; every reduction must be in `order`.
 * TUTTI_EINVAL (quiet: the text is tti_error_text()) names rank, step and chunk of the first
 * breach. */
TUTTI_CHECKED tutti_status tti_program_check(const struct tti_program *prog, int n, int slots,
					     enum tti_order order);

#endif
