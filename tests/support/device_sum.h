/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_SUM_H
#define TESTS_SUPPORT_DEVICE_SUM_H

/* One all_reduce of float32 on a device bed (device_bed.h), whose sums are exact: for tests of what
 * else may happen to a call.
 *
 * Owner: device_sum_release(). Threads: as device_bed.h. */

#include "support/device_bed.h"

#define SUM_RANKS 8

struct device_sum {
	const char *algorithm;
	size_t count, slice; /* elements: of the vector, of a step */
	struct device_bed bed;
	struct tti_compiled prog[SUM_RANKS];
	struct tti_dev_call call[SUM_RANKS];
	uint64_t input[SUM_RANKS], output[SUM_RANKS];
};

/* All ranks have the tag 0x1234. slot_bytes of the configuration is what the call needs. */
void device_sum_init(struct device_sum *sum, const struct device_config *config,
		     const char *algorithm, size_t count, size_t slice);
/* Elements of outputs that are not the sum. */
size_t device_sum_wrong(const struct device_sum *sum);
void device_sum_release(struct device_sum *sum);

#endif
