/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_FAKE_KERNELS_H
#define TESTS_CUDA_FAKE_KERNELS_H

/* What a kernel of fake_kernels.c writes. */

#include <stdint.h>

struct fake_launch {
	int32_t kernel; /* of a type; -1: that moves */
	uint32_t nblocks, nthreads, shared_bytes;
	uint64_t tag; /* of the last call */
};

#endif
