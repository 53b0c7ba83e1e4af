/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_BATCH_H
#define TTI_CORE_CALL_BATCH_H

/* Several calls that run together: those of one communicator in order, all its sends and receives
 * first and at once; communicators side by side. Handoffs are planned before they run.
 *
 * Threads: the one that executes the calls of the communicators. */

#include "core/call/call.h"

/* Run all calls of all items, when those before them are done, and count them as done; the first
 * error. */
tutti_status tti_batch_run(struct tti_call_item *items, int n);

/* The same for ranks with devices, in streams of CUDA of the program (items[i].to): when this returns
 * they are launched, and items[i].told is told of the end of each. An item of which nothing could be launched takes
 * its number back. By the thread that makes calls. */
tutti_status tti_batch_launch(struct tti_call_item *items, int n);

#endif
