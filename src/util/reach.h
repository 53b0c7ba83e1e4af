/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_REACH_H
#define TTI_UTIL_REACH_H

/* How ranks of one host get at each other's memory, and what that was measured to take: words that
 * transports, choices and tune files have in common. */

#include <stdint.h>

/* How one rank gets at memory of another. */
enum tti_reach {
	TTI_REACH_SLOTS,  /* not at all: what it holds must be sent              */
	TTI_REACH_MAPPED, /* by an address of its own: loads and stores          */
	TTI_REACH_COPIED, /* by the kernel, which copies from process to process */
};

/* X(name, what): what copying memory of a peer takes, with a source that was just written, while
 * the peer does the same. Rates are in bytes per us. */
#define TTI_REACH_FIGURE_MAP(X)                           \
	X(call_ns, "of the kernel for a copy of 8 bytes") \
	X(copied_64k, "the kernel, 64 KiB, bytes per us") \
	X(copied_512k, "the same of 512 KiB")             \
	X(slots_64k, "in and out of slots, 64 KiB")       \
	X(slots_512k, "the same of 512 KiB")

/* Zeroed: not measured. */
struct tti_reach_figures {
#define X(name, what) uint32_t name;
	TTI_REACH_FIGURE_MAP(X)
#undef X
};

#endif
