/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/program.h"
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

static bool is_by_fd(void)
{
	const char *asked = getenv("TEST_MEMORY");

	return asked && strcmp(asked, "fd") == 0;
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
	if (is_by_fd()) {
		must(tti_gpu_memory_create(out->gpu, nbytes, &out->own));
		at = out->own->at;
	} else {
		at = program_alloc(out->gpu, nbytes);
	}
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

void gpu_view(const struct gpu_buffer *of, void *memory, struct gpu_buffer *out)
{
	out->memory = memory;
	out->view = view_of(of->gpu, (uintptr_t)memory);
}

void gpu_free(struct gpu_buffer *buffer)
{
	if (!buffer->gpu)
		free(buffer->memory);
	else if (buffer->own)
		tti_gpu_memory_free(buffer->own);
	else if (buffer->memory == buffer->view)
		tti_gpu_pinned_free(buffer->gpu, buffer->memory);
	else
		program_free(buffer->gpu, (uintptr_t)buffer->memory);
	tti_gpu_close(buffer->gpu);
}

void gpu_wait_for_kernels(struct tti_gpu *gpu)
{
	void *symbol = tti_gpu_driver_symbol(tti_gpu_driver_of(gpu), "cuCtxSynchronize");
	struct tti_gpu_scope scope;
	int (*synchronize)(void);

	if (!symbol)
		abort();
	memcpy(&synchronize, &symbol, sizeof(synchronize));
	must(tti_gpu_enter(gpu, true, &scope));
	if (synchronize())
		abort();
	tti_gpu_leave(gpu, &scope);
}

/* -- Streams ------------------------------------------------------------------------------ */

void gpu_stream_open(struct gpu_stream *out, const struct gpu_buffer *buffer)
{
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;

	out->gpu = buffer->gpu;
	ops.cuda = 1;
	must(tti_gpu_stream_create(out->gpu, false, &out->cuda));
	must(tutti_stream_wrap(&out->tutti, &ops, out->cuda));
}

void gpu_stream_wait(const struct gpu_stream *stream)
{
	must(tti_gpu_stream_wait(stream->gpu, stream->cuda));
}

tutti_status gpu_stream_close(struct gpu_stream *stream)
{
	const tutti_status st = tutti_stream_destroy(stream->tutti);

	tti_gpu_stream_destroy(stream->gpu, stream->cuda);
	return st;
}

static void hold(void *arg)
{
	const struct timespec nap = { .tv_nsec = 100 * 1000 };

	while (!atomic_load((const _Atomic bool *)arg))
		nanosleep(&nap, NULL);
}

void gpu_stream_hold(const struct gpu_stream *stream, _Atomic bool *open)
{
	must(tti_gpu_call(stream->gpu, hold, open, stream->cuda));
}

void gpu_stream_join(const struct gpu_stream *first, const struct gpu_stream *second)
{
	void *event;

	must(tti_gpu_event_create(first->gpu, &event));
	must(tti_gpu_event_record(first->gpu, event, first->cuda));
	must(tti_gpu_event_await(second->gpu, event, second->cuda));
	tti_gpu_event_destroy(first->gpu, event);
}

/* -- Graphs, by CUDA's own functions ------------------------------------------------------ */

static void *symbol_of(const struct gpu_stream *stream, const char *name)
{
	void *symbol = tti_gpu_driver_symbol(tti_gpu_driver_of(stream->gpu), name);

	if (!symbol)
		abort();
	return symbol;
}

static void check(int error)
{
	if (error == 0)
		return;
	fprintf(stderr, "error %d of CUDA\n", error);
	abort();
}

void gpu_capture_begin(const struct gpu_stream *stream)
{
	int (*begin)(void *stream, int mode);
	void *const symbol = symbol_of(stream, "cuStreamBeginCapture_v2");

	memcpy(&begin, &symbol, sizeof(begin));
	check(begin(stream->cuda, 1)); /* ranks are threads: what others do is not looked at */
}

void *gpu_capture_end(const struct gpu_stream *stream)
{
	int (*end)(void *stream, void **graph), (*destroy)(void *graph);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	void *symbol = symbol_of(stream, "cuStreamEndCapture"), *graph, *exec;

	memcpy(&end, &symbol, sizeof(end));
	symbol = symbol_of(stream, "cuGraphInstantiateWithFlags");
	memcpy(&instantiate, &symbol, sizeof(instantiate));
	symbol = symbol_of(stream, "cuGraphDestroy");
	memcpy(&destroy, &symbol, sizeof(destroy));
	check(end(stream->cuda, &graph));
	check(instantiate(&exec, graph, 0));
	check(destroy(graph));
	return exec;
}

void gpu_graph_launch(void *graph, const struct gpu_stream *stream)
{
	int (*launch)(void *exec, void *stream);
	void *const symbol = symbol_of(stream, "cuGraphLaunch");

	memcpy(&launch, &symbol, sizeof(launch));
	check(launch(graph, stream->cuda));
}

void gpu_graph_free(void *graph, const struct gpu_stream *stream)
{
	int (*destroy)(void *exec);
	void *const symbol = symbol_of(stream, "cuGraphExecDestroy");

	memcpy(&destroy, &symbol, sizeof(destroy));
	check(destroy(graph));
}
