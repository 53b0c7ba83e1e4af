/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_MEASURED_H
#define TTI_UTIL_MEASURED_H

/* The numbers in the code that measurements on one machine gave, and that are not measured again at
 * run time. They are here so that whoever has another machine finds them in one place. Two more
 * lists are like this one: the constants of the model of times (TTI_TUNE_CONSTANT_MAP, which `tutti
 * tune` measures anew), and the rules by which algorithms are chosen on one host
 * (coll/choose/choose.c; a tune file goes before them).
 *
 * The comment of a number says what it is, how much it gained and where:
 *
 *     Xeon     Intel Xeon, family 6, model 167, 2 cores, 2 MiB of L2 cache each, a virtual machine
 *     EPYC     AMD EPYC (Zen 4), 2 cores, 1 MiB of L2 cache each, a virtual machine
 *     Rapids   Intel Xeon (Emerald Rapids), 16 cores, a virtual machine
 *
 * docs/design/limits.md has what was measured. */

#include <stddef.h>
#include <stdint.h>

#include "util/clock.h"

#define TTI_MEASURED_KIB ((size_t)1024)

/* -- How finely calls are cut ---------------------------------------------------------------------- */

/* Bytes of a message of the direct algorithms. Two slots of this for each peer stay in the L2
 * cache; smaller messages cost more rounds than they save misses. Xeon. */
#define TTI_DIRECT_SLICE    (64 * TTI_MEASURED_KIB)
/* The same where two ranks have a core each: they wait for each other at every message, so there
 * are fewer. 0.81 to 0.93 of the time of 64 KiB from 512 KiB to 1 MiB, no difference on the Xeon.
 * EPYC. */
#define TTI_PAIR_SLICE      (256 * TTI_MEASURED_KIB)
/* Parts of what a round of a ring carries, as many as a link has slots; a message is this part of
 * what a link carries, but at least so long. Xeon, between hosts in namespaces. */
#define TTI_RING_PARTS      8
#define TTI_LINK_SLICES     256
#define TTI_LINK_LEAST      (32 * TTI_MEASURED_KIB)
/* The share of the predicted time that more stripes must reach where ranks share cores. Xeon. */
#define TTI_FEWER_STRIPES   0.9
/* Messages of a transfer between two ranks that have a core each. The last message is read while
 * nothing is written beside it, so there are many. EPYC. */
#define TTI_TRANSFER_PIECES 16
/* Blocks of a call that may be under way where one link to another host carries something; many
 * links have fewer. With 16 for each an all_to_all to three hosts let one flow get a megabyte
 * ahead, and the port at which flows meet dropped segments. A power of two. Xeon. */
#define TTI_WINDOW_OF_LINK  16

/* -- Copies ----------------------------------------------------------------------------------------- */

/* Bytes from which on a copy that comes from one rank alone is written past the caches, which saves
 * reading the target first: 0.9 of the time for 16 MiB on two ranks, 0.8 on four, no difference
 * while the caches hold both vectors. Xeon. */
#define TTI_COPY_PAST_CACHES  (4096 * TTI_MEASURED_KIB)
/* AMD only. Bytes from which on a copy for another core is written past the caches (a line that a
 * far core has read takes 30 ns to be written again), is done by vectors, or by "rep movsb" (0.5 to
 * 0.9 of a vector loop's time, but 16 times as long where the target is 1 to 15 bytes behind the
 * source modulo 4 KiB). EPYC. */
#define TTI_COPY_PAST_LEAST   (2 * TTI_MEASURED_KIB)
#define TTI_COPY_VECTOR_LEAST (1 * TTI_MEASURED_KIB)
#define TTI_COPY_STRING_LEAST (4 * TTI_MEASURED_KIB)
/* Nanoseconds for a line that tell a near core (7 to 9) from a far one (30). Copies are timed at
 * run time, and this decides. EPYC. */
#define TTI_NEAR_LINE_NS      16

/* -- Memory of a link in shared memory ------------------------------------------------------------------ */

/* Bytes that a writer goes round. 64 KiB from core to core take 9 us a message if two places take
 * turns, since the reader's L2 cache has the lines and must let go of each, and 2 us if 32 do.
 * EPYC. */
#define TTI_SHM_ROUND_BYTES (UINT32_C(2) << 20)
/* The same while readers come late, because other work has their core: 16 MiB to one rank took 27
 * to 66 ms by two slots of 256 KiB beside eight busy loops, and 8 or 9 ms by as many as this holds.
 * Xeon. */
#define TTI_SHM_LATE_BYTES  (UINT32_C(8) << 20)
/* A reader is late after this time. It is shorter than a time slice and longer than a reader that
 * has its core takes: with 0.5 ms two ranks that exchanged 4 MiB counted as late for ever, at half
 * the rate. Xeon. */
#define TTI_SHM_LATE_NS     (2 * TTI_NS_PER_MS)

/* -- Waiting --------------------------------------------------------------------------------------------- */

/* Where fewer messages than this are missing, each of them wakes a rank that sleeps; else only the
 * last one does. Four ranks beside two busy loops: all_reduce of 8 bytes 46 us, and 82 to 98 if the
 * last one woke them. Xeon. */
#define TTI_WAKE_COUNTED_LEAST 4
/* How long a rank waits awake before it sleeps: in general; where each rank has a core (sixteen
 * ranks that slept after 0.2 ms took 300 us for 8 bytes in place of 3; Rapids); where all peers are
 * over a network, because a rank that is woken may land on the core of another. */
#define TTI_AWAKE_NS           (200 * 1000)
#define TTI_AWAKE_OWN_NS       (2 * TTI_NS_PER_MS)
#define TTI_AWAKE_NET_NS       (20 * TTI_NS_PER_MS)
/* A yield is long from this time on, and yields are expensive while more than one in so many is
 * long. Eight ranks took 39 to 55 us for a call, and 200 if they slept after each long yield.
 * Xeon. */
#define TTI_LONG_YIELD_NS      (500 * 1000)
#define TTI_LONG_YIELD_IN      80

#endif
