/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector.h"

#include <stdlib.h>

/* Element i of rank r is i % PERIOD + r: sums of 8 ranks are exact. */
#define PERIOD 1021

static void make(float *values, size_t first, size_t n, float factor, float more)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (float)((first + i) % PERIOD) * factor + more;
}

static size_t piece_of(size_t nbytes, size_t at)
{
	return nbytes - at < VECTOR_STAGING ? nbytes - at : VECTOR_STAGING;
}

void vector_fill(void *vector, size_t nbytes, int rank, void *staging, cudaStream_t stream)
{
	for (size_t at = 0; at < nbytes; at += VECTOR_STAGING) {
		make(staging, at / sizeof(float), piece_of(nbytes, at) / sizeof(float), 1,
		     (float)rank);
		CUDA(MemcpyAsync((char *)vector + at, staging, piece_of(nbytes, at), CUDA_ANYWHERE,
				 stream));
		CUDA(StreamSynchronize(stream));
	}
}

size_t vector_count_wrong(const void *vector, size_t nbytes, int n, int nparts, void *staging,
			  cudaStream_t stream)
{
	const size_t npieces = (nbytes + VECTOR_STAGING - 1) / VECTOR_STAGING;
	const size_t looked = nparts > 0 && (size_t)nparts < npieces ? (size_t)nparts : npieces;
	float *const want = malloc(VECTOR_STAGING);
	const float *const got = staging;
	size_t nwrong = 0;

	if (!want)
		give_up("out of memory\n");
	for (size_t part = 0; part < looked; part++) {
		const size_t piece = looked > 1 ? part * (npieces - 1) / (looked - 1) : 0;
		const size_t at = piece * VECTOR_STAGING;
		const size_t count = piece_of(nbytes, at) / sizeof(float);

		CUDA(MemcpyAsync(staging, (const char *)vector + at, count * sizeof(float),
				 CUDA_ANYWHERE, stream));
		make(want, at / sizeof(float), count, (float)n,
		     (float)(n * (n - 1) / 2)); /* while the copy goes on */
		CUDA(StreamSynchronize(stream));
		for (size_t i = 0; i < count; i++)
			nwrong += got[i] != want[i];
	}
	free(want);
	return nwrong;
}
