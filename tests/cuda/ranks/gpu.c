/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "tutti/tutti.h"

static void must(tutti_status status)
{
	if (status == TUTTI_OK)
		return;
	fprintf(stderr, "%s\n", tutti_last_error(NULL));
	abort();
}

/* Where the host reaches memory of a device. */
static char *view_of(struct tti_gpu *gpu, uint64_t at)
{
	void *symbol = tti_gpu_driver_symbol(tti_gpu_driver_of(gpu), "tti_cuda_reach");
	void *(*reach)(uint64_t address);

	if (!symbol)
		abort();
	memcpy(&reach, &symbol, sizeof(reach));
	return reach(at);
}

void gpu_alloc(struct gpu_buffer *out, int device, size_t nbytes)
{
	uint64_t at;

	*out = (struct gpu_buffer){ .nbytes = nbytes };
	if (device < 0) {
		out->memory = out->view = calloc(1, nbytes);
		if (!out->memory)
			abort();
		return;
	}
	must(tti_gpu_open(device, &out->gpu));
	must(tti_gpu_alloc(out->gpu, nbytes, &at));
	must(tti_gpu_zero(out->gpu, at, nbytes));
	out->memory = (char *)(uintptr_t)at;
	out->view = view_of(out->gpu, at);
}

void gpu_alloc_pinned(struct gpu_buffer *out, int device, size_t nbytes)
{
	void *host;
	uint64_t at;

	*out = (struct gpu_buffer){ .nbytes = nbytes };
	must(tti_gpu_open(device, &out->gpu));
	must(tti_gpu_pinned_alloc(out->gpu, nbytes, &host, &at));
	out->memory = out->view = host;
}

void gpu_free(struct gpu_buffer *buffer)
{
	if (!buffer->gpu)
		free(buffer->memory);
	else if (buffer->memory == buffer->view)
		tti_gpu_pinned_free(buffer->gpu, buffer->memory);
	else
		tti_gpu_free(buffer->gpu, (uintptr_t)buffer->memory);
	tti_gpu_close(buffer->gpu);
}

void *gpu_stream(struct gpu_buffer *buffer)
{
	void *stream;

	must(tti_gpu_stream_create(buffer->gpu, false, &stream));
	return stream;
}

void gpu_stream_wait(struct gpu_buffer *buffer, void *stream)
{
	must(tti_gpu_stream_wait(buffer->gpu, stream));
}

void gpu_stream_free(struct gpu_buffer *buffer, void *stream)
{
	tti_gpu_stream_destroy(buffer->gpu, stream);
}
