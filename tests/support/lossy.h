/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_LOSSY_H
#define TESTS_SUPPORT_LOSSY_H

/* A decorator that refuses at random what the transport would grant: a slot, a message that is
 * there already, a shared slot, a send from memory. Nothing is lost, all of it comes later: no
 * more than LOSSY_IN_A_ROW calls in a row on one link are refused.
 *
 * Owner: lossy_free(), which takes it off. Threads: as the port. */

#include <stdint.h>

#include "transport/transport.h"

#define LOSSY_IN_A_ROW 4

struct lossy;

/* Of a port without links. Of 100 calls so many are refused. `splits`: the transport has no
 * fan-outs any more, so what goes to several ranks goes to each by itself. */
struct lossy *lossy_create(struct tti_port *port, int percent, bool splits, uint64_t seed);
void lossy_free(struct lossy *lossy);
/* How many calls were refused so far. */
uint64_t lossy_refused(const struct lossy *lossy);

#endif
