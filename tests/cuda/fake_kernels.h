/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_FAKE_KERNELS_H
#define TESTS_CUDA_FAKE_KERNELS_H

/* What a kernel of fake_kernels.c writes. */

#include <stdint.h>

struct fake_launch {
	char kernel[16]; /* its family of types, or "copy" */
	uint32_t nblocks, nthreads, shared_bytes;
	uint64_t tag; /* of the last call */
};

#endif
