/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_FACTS_H
#define TTI_CORE_DEVICE_FACTS_H

/* What ranks with devices tell each other, and what all ranks work out of it.
 *
 * Owner: tti_devices_free(). Threads: pure, but for what is logged. */

#include "core/device/device.h"

struct tti_peer_info;

/* The ordinal of the GPU for a rank that asks for one, where its process sees `ngpus`. */
int tti_device_choose(const struct tti_peer_info *info, int rank, int ngpus);

/* Whether two ranks have the same GPU. */
bool tti_device_is_same(const struct tti_device_fact *a, const struct tti_device_fact *b);

/* Of the facts of n ranks, which it takes over, also on failure. No rank reaches another one yet. */
TUTTI_CHECKED tutti_status tti_devices_create(struct tti_device_fact *fact, int n,
					      struct tti_devices **out);
void tti_devices_free(struct tti_devices *devices); /* NULL and half-built ok */

/* Whether both have devices, on one host. */
bool tti_devices_near(const struct tti_devices *devices, int a, int b);
/* Whether a says that it reaches b, which is no proof that it does. */
bool tti_devices_says_reach(const struct tti_devices *devices, int a, int b);
/* Whether one of the two has found out that it is not true. */
bool tti_devices_is_refused(const struct tti_devices *devices, int a, int b);
/* The bits of a rank in `rows`, which is devices->reach or refused, and their bytes. */
uint64_t *tti_devices_row(const struct tti_devices *devices, uint64_t *rows, int rank);
void tti_devices_set_reach(struct tti_devices *devices, int a, int b);
void tti_devices_refuse(struct tti_devices *devices, int a, int b);
size_t tti_devices_row_bytes(const struct tti_devices *devices);
/* Whether every two of the n ranks reach each other. */
bool tti_devices_find_all_mapped(const struct tti_devices *devices, int n);

/* Warn if this rank, and no lower one, shares its GPU with a rank of another process. */
void tti_devices_warn_of_sharing(const struct tti_devices *devices, int rank, int n);
/* Warn of variables of CUDA by which kernels of ranks of this process do not run at the same time; this
 * rank, and no lower one. */
void tti_devices_warn_of_variables(const struct tti_devices *devices, int rank, int n);

#endif
