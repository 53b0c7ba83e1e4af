/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_DEVICE_RUN_H
#define BENCH_GPU_DEVICE_RUN_H

/* Tutti's kernels alone, without a communicator: the ranks are calls of a launch on one GPU.
 *
 *     device_run check SECONDS [SEED]    drawn calls, all bytes beside those of the host's engine
 *     device_run every [--small]         each kernel once, as compute-sanitizer wants it
 *     device_run times RANKS [--small]   what all_reduce of float32 takes
 *
 * Each returns the exit status. */

#include <stdbool.h>
#include <stdint.h>

#include "device_gpu.h"

int device_check(const struct device_gpu *gpu, double seconds, uint64_t seed);
int device_every(const struct device_gpu *gpu, bool is_small);
int device_times(const struct device_gpu *gpu, int n, bool is_small);

#endif
