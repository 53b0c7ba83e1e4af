/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_DEVICE_GPU_H
#define BENCH_GPU_DEVICE_GPU_H

/* Device beds (tests/support/device_bed.h) on a GPU: their memory is lent by the GPU, and their
 * launches are launches of Tutti's kernels.
 *
 * Memory lies on the GPU, and the bed works on a copy that goes there before a run and comes back
 * after it; or it is pinned memory of the host, which both use at the same time.
 *
 * What fails ends the process. Owner: device_gpu_open() to the end of the process; one GPU. Threads:
 * device_gpu_run() is called by those of the bed, all else by one. */

#include <stdbool.h>
#include <stddef.h>

#include "device/kernels.h"
#include "support/device_bed.h"

struct device_gpu {
	struct tti_gpu *gpu;
	struct tti_kernels *kernels;
	bool is_host; /* it is threads of the host: few of them */
	void *stream; /* for whoever wants one */
};

/* Device 0. */
const struct device_gpu *device_gpu_open(void);

/* Blocks of all ranks that can be resident at a time. */
uint32_t device_gpu_resident(uint32_t nthreads);

/* Let beds that are made from now on have memory of the GPU, or pinned memory. At most so much in
 * all. */
void device_gpu_lend(bool is_pinned, size_t nbytes);
/* What the bed has made goes to the GPU; what is there comes back. */
void device_gpu_upload(const struct device_bed *bed);
void device_gpu_download(const struct device_bed *bed);

/* Whether the calls that are run from now on reduce. */
void device_gpu_expect(bool reduces);
/* For struct device_config. */
tutti_status device_gpu_run(const struct tti_dev_launch *launch, const struct tti_dev_host *host);

/* Give the calls of a launch control and done that the host reaches while they run; once for a bed
 * whose launches are put into streams without device_gpu_run(). */
void device_gpu_share(struct tti_dev_launch *launch);
/* Whether all calls of such a launch have been done when they ended last. */
bool device_gpu_is_done(const struct tti_dev_launch *launch);

#endif
