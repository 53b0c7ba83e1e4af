/* SPDX-License-Identifier: BSD-3-Clause */
#include "waits.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#define SPIN_PTX                                           \
	".visible .entry " WAITS_SPIN "(.param .u64 at)\n" \
	"{\n"                                              \
	"	.reg .pred %p;\n"                                \
	"	.reg .b32 %value;\n"                             \
	"	.reg .b64 %at;\n"                                \
	"	ld.param.u64 %at, [at];\n"                       \
	"	cvta.to.global.u64 %at, %at;\n"                  \
	"	st.volatile.global.u32 [%at+64], 1;\n"           \
	"again:\n"                                         \
	"	ld.volatile.global.u32 %value, [%at];\n"         \
	"	setp.eq.u32 %p, %value, 0;\n"                    \
	"	@%p bra again;\n"                                \
	"	ret;\n"                                          \
	"}\n"
#define EMPTY_PTX(name) ".visible .entry " name "()\n{\n	ret;\n}\n"

static char ptx[] =
	".version 7.0\n.target sm_52\n.address_size 64\n" SPIN_PTX EMPTY_PTX(WAITS_NOTHING)
		EMPTY_PTX(WAITS_FIRST);

/* -- Calls -------------------------------------------------------------------------------- */

#define CALL(name, expression)              \
	static int name(struct waits *w)    \
	{                                   \
		return w->call->expression; \
	}
#define MORE(name, expression)             \
	static int name(struct waits *w)   \
	{                                  \
		return w->more.expression; \
	}

static struct tti_cuda_prop prop_of(const struct waits *w)
{
	return (struct tti_cuda_prop){
		.type = TTI_CUDA_ALLOCATION_PINNED,
		.handles = TTI_CUDA_HANDLE_FD,
		.location = { .type = TTI_CUDA_LOCATION_DEVICE, .id = w->gpu->device },
	};
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static int launch(struct waits *w, void *kernel)
{
	return w->call->launch(kernel, 1, 1, 1, 1, 1, 1, 0, w->stream, NULL, NULL);
}

CALL(alloc, alloc(&w->at, WAITS_BYTES))
CALL(ipc_get, ipc_get(&(struct tti_cuda_ipc){ .reserved = { 0 } }, w->at))
CALL(free_at, free(w->at))
CALL(alloc_in, alloc_in(&w->pool_at, WAITS_BYTES, w->stream))
CALL(fill, fill(w->pool_at, 1, WAITS_BYTES, w->stream))
CALL(free_in, free_in(w->pool_at, w->stream))
CALL(host_alloc, host_alloc(&w->host, WAITS_BYTES, TTI_CUDA_HOST_PORTABLE | TTI_CUDA_HOST_MAPPED))
CALL(write_pinned, write(w->words_at, w->host, WAITS_BYTES, w->stream))
CALL(read_pinned, read(w->host, w->words_at, WAITS_BYTES, w->stream))
CALL(write_pages, write(w->words_at, w->pages, WAITS_BYTES, w->stream))
CALL(read_pages, read(w->pages, w->words_at, WAITS_BYTES, w->stream))
CALL(host_free, host_free(w->host))
CALL(host_register,
     host_register(w->pages, WAITS_BYTES, TTI_CUDA_HOST_PORTABLE | TTI_CUDA_HOST_MAPPED))
CALL(host_unregister, host_unregister(w->pages))

static int create(struct waits *w)
{
	const struct tti_cuda_prop prop = prop_of(w);

	return w->call->create(&w->handle, w->map_bytes, &prop, 0);
}

static int import(struct waits *w)
{
	return w->call->import_handle(&w->imported, (void *)(intptr_t)w->fd, TTI_CUDA_HANDLE_FD);
}

static int allow(struct waits *w)
{
	const struct tti_cuda_allow allowed = { .location = prop_of(w).location,
						.access = TTI_CUDA_READ_WRITE };

	return w->call->allow(w->map_at, w->map_bytes, &allowed, 1);
}

static int release_both(struct waits *w)
{
	const int rc = w->call->release(w->imported);

	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
	return rc ? rc : w->call->release(w->handle);
}

CALL(export, export_handle(&w->fd, w->handle, TTI_CUDA_HANDLE_FD, 0))
CALL(reserve, reserve(&w->map_at, w->map_bytes, 0, 0, 0))
CALL(map, map(w->map_at, w->map_bytes, 0, w->imported, 0))
CALL(unmap, unmap(w->map_at, w->map_bytes))
CALL(unreserve, unreserve(w->map_at, w->map_bytes))
CALL(ipc_open, ipc_open(&w->ipc_at, w->lent, TTI_CUDA_IPC_PEER_ACCESS))
CALL(ipc_close, ipc_close(w->ipc_at))
CALL(peer, context_peer(w->other->context, 0))
MORE(peer_end, peer_end(w->other->context))
MORE(module_load, module_load(&w->module, w->image))
MORE(module_unload, module_unload(w->module))
CALL(library_load, library_load(&w->library, w->image, NULL, NULL, 0, NULL, NULL, 0))

static int library_kernels(struct waits *w)
{
	const int rc = w->call->library_kernel(&w->kernel, w->library, WAITS_NOTHING);

	return rc ? rc : w->call->library_kernel(&w->first, w->library, WAITS_FIRST);
}

static int kernel_function(struct waits *w)
{
	void *function;

	return w->call->kernel_function(&function, w->kernel);
}

static int launch_first(struct waits *w)
{
	return launch(w, w->first);
}

static int launch_again(struct waits *w)
{
	return launch(w, w->first);
}

static int resident(struct waits *w)
{
	int nblocks;

	return w->call->resident(&nblocks, w->kernel, 32, 0);
}

CALL(library_unload, library_unload(w->library))
static int pointer(struct waits *w)
{
	int which[] = { TTI_CUDA_POINTER_TYPE };
	unsigned type;

	return w->call->pointer_attributes(1, which, (void *[]){ &type }, w->words_at);
}

static int retain(struct waits *w)
{
	tti_cuda_context context;
	const int rc = w->call->context_retain(&context, w->gpu->device);

	return rc ? rc : w->call->context_release(w->gpu->device);
}

CALL(stream_create, stream_create(&w->made_stream, TTI_CUDA_STREAM_NON_BLOCKING, 0))
CALL(stream_destroy, stream_destroy(w->made_stream))
CALL(event_create, event_create(&w->event, TTI_CUDA_EVENT_WITHOUT_TIME))
CALL(event_record, event_record(w->event, w->stream))
MORE(event_query, event_query(w->event))
CALL(event_wait, event_wait(w->event))
CALL(event_await, event_await(w->stream, w->event, 0))
CALL(event_destroy, event_destroy(w->event))
CALL(stream_query, stream_query(w->stream))
CALL(wait_value, wait_value(w->stream, w->words_at, 0, TTI_CUDA_WAIT_AT_LEAST))
CALL(host_function, host_function(w->stream, do_nothing, NULL))

static int capture(struct waits *w)
{
	int rc = w->more.capture_begin(w->stream, TTI_CUDA_CAPTURE_RELAXED);

	if (!rc)
		rc = launch(w, w->first);
	return rc ? rc : w->more.capture_end(w->stream, &w->graph);
}

MORE(graph_make, graph_make(&w->exec, w->graph, 0))
MORE(graph_launch, graph_launch(w->exec, w->stream))
MORE(exec_end, exec_end(w->exec))
MORE(graph_end, graph_end(w->graph))

/* -- Their order ------------------------------------------------------------------------------ */

#define LANES   "lanes to a peer, memory that it lends"
#define BY_IPC  "lanes to a peer, memory that it lends: TUTTI_CUDA_SHARE=ipc"
#define BACK    "memory that a peer takes back"
#define LOADING "the first communicator of a GPU"
#define CALLS   "calls"
#define PROGRAM "programs, tables and scratch of calls"
#define FIRST   "the first call on a stream, of a rank, by a proxy"

const struct waits_call waits_calls[] = {
	{ "cuMemAlloc()", BY_IPC, alloc, false, false },
	{ "cuIpcGetMemHandle()", BY_IPC, ipc_get, false, false },
	{ "cuMemFree()", "-", free_at, false, false },
	{ "cuMemAllocAsync() in another stream", PROGRAM, alloc_in, true, false },
	{ "cuMemsetD8Async() in another stream", CALLS, fill, true, false },
	{ "cuMemFreeAsync() in another stream", PROGRAM, free_in, true, false },
	{ "cuMemHostAlloc()", FIRST, host_alloc, false, false },
	{ "cuMemcpyHtoDAsync(), pinned, in another stream", CALLS, write_pinned, true, false },
	{ "cuMemcpyDtoHAsync(), pinned, in another stream", CALLS, read_pinned, true, false },
	{ "cuMemcpyHtoDAsync(), pageable, in another stream", CALLS, write_pages, true, false },
	{ "cuMemcpyDtoHAsync(), pageable, in another stream", CALLS, read_pages, true, false },
	{ "cuMemFreeHost()", "-", host_free, false, false },
	{ "cuMemHostRegister()", "-", host_register, false, false },
	{ "cuMemHostUnregister()", "-", host_unregister, false, false },
	{ "cuMemCreate()", LANES, create, false, false },
	{ "cuMemExportToShareableHandle()", LANES, export, false, false },
	{ "cuMemImportFromShareableHandle()", LANES, import, false, false },
	{ "cuMemAddressReserve()", LANES, reserve, false, false },
	{ "cuMemMap()", LANES, map, false, false },
	{ "cuMemSetAccess()", LANES, allow, false, false },
	{ "cuMemUnmap()", BACK, unmap, false, false },
	{ "cuMemRelease(), twice", BACK, release_both, false, false },
	{ "cuMemAddressFree()", BACK, unreserve, false, false },
	{ "cuIpcOpenMemHandle()", BY_IPC, ipc_open, false, false },
	{ "cuIpcCloseMemHandle()", BACK ": TUTTI_CUDA_SHARE=ipc", ipc_close, false, false },
	{ "cuCtxEnablePeerAccess()", LANES, peer, false, true },
	{ "cuCtxDisablePeerAccess()", "-", peer_end, false, true },
	{ "cuModuleLoadData()", "-", module_load, false, false },
	{ "cuModuleUnload()", "-", module_unload, false, false },
	{ "cuLibraryLoadData()", "the first communicator", library_load, false, false },
	{ "cuLibraryGetKernel(), twice", "the first communicator", library_kernels, false, false },
	{ "cuKernelGetFunction(), which loads it", LOADING, kernel_function, false, false },
	{ "cuOccupancyMaxActiveBlocksPerMultiprocessor()", LOADING, resident, false, false },
	{ "cuLaunchKernel(), the first of a kernel, in another stream", "-", launch_first, true,
	  false },
	{ "cuLaunchKernel() in another stream", CALLS, launch_again, true, false },
	{ "cuPointerGetAttributes()", CALLS, pointer, false, false },
	{ "cuDevicePrimaryCtxRetain() and its end", LANES, retain, false, false },
	{ "cuStreamCreate()", "the first call of a rank", stream_create, false, false },
	{ "cuStreamDestroy()", "-", stream_destroy, false, false },
	{ "cuEventCreate()", "the first call on a stream", event_create, false, false },
	{ "cuEventRecord() in another stream", CALLS, event_record, true, false },
	{ "cuEventQuery()", "-", event_query, false, false },
	{ "cuEventSynchronize() of an event that is past", "the end of a stream", event_wait, false,
	  false },
	{ "cuStreamWaitEvent() in another stream", CALLS, event_await, true, false },
	{ "cuEventDestroy()", "-", event_destroy, false, false },
	{ "cuStreamQuery() of another stream", CALLS, stream_query, false, false },
	{ "cuStreamWaitValue32() in another stream", CALLS, wait_value, true, false },
	{ "cuLaunchHostFunc() in another stream", CALLS, host_function, true, false },
	{ "a launch captured from another stream", CALLS, capture, false, false },
	{ "cuGraphInstantiate()", "-", graph_make, false, false },
	{ "cuGraphLaunch() in another stream", "-", graph_launch, true, false },
	{ "cuGraphExecDestroy()", "-", exec_end, false, false },
	{ "cuGraphDestroy()", "-", graph_end, false, false },
	{ "cuLibraryUnload()", "-", library_unload, false, false },
};
const size_t waits_ncalls = sizeof(waits_calls) / sizeof(waits_calls[0]);

/* -- What they need ------------------------------------------------------------------------------ */

static void must(tutti_status status)
{
	if (status != TUTTI_OK)
		give_up("%s\n", tti_error_text());
}

static void find_more(struct waits *w)
{
#define X(field, symbol, arguments)                                                    \
	{                                                                              \
		void *const function = tti_gpu_driver_symbol(w->gpu->driver, #symbol); \
                                                                                       \
		if (!function)                                                         \
			give_up("the driver has no %s()\n", #symbol);                  \
		memcpy(&w->more.field, &function, sizeof(function));                   \
	}
	WAITS_MORE_MAP(X)
#undef X
}

static void find_other(struct waits *w)
{
	struct tti_gpu_access access = { 0 };

	if (tti_gpu_driver_count(w->gpu->driver) < 2)
		return;
	must(tti_gpu_access_of(w->gpu->driver, 0, 1, &access));
	if (access.is_possible)
		must(tti_gpu_open(1, &w->other));
}

static int make_needed(struct waits *w)
{
	const struct tti_cuda_prop prop = prop_of(w);
	size_t piece = WAITS_BYTES;
	int rc = w->call->context_set(w->gpu->context);

	if (!rc)
		rc = w->call->stream_create(&w->stream, TTI_CUDA_STREAM_NON_BLOCKING, 0);
	if (!rc)
		rc = w->call->alloc(&w->words_at, WAITS_BYTES);
	if (!rc)
		rc = w->call->fill(w->words_at, 0, WAITS_BYTES, w->stream);
	if (!rc)
		rc = w->call->stream_wait(w->stream);
	if (!rc && w->gpu->facts.has_vmm)
		rc = w->call->granularity(&piece, &prop, TTI_CUDA_GRANULARITY_RECOMMENDED);
	w->map_bytes = (WAITS_BYTES + piece - 1) / piece * piece;
	return rc;
}

void waits_open(struct waits *w)
{
	int rc;

	must(tti_gpu_open(0, &w->gpu));
	w->call = &w->gpu->driver->call;
	w->image = ptx;
	find_more(w);
	find_other(w);
	rc = make_needed(w);
	w->pages = calloc(1, WAITS_BYTES);
	if (rc || !w->pages)
		give_up("what the calls need: error %d of the driver\n", rc);
}
