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
static struct tti_cuda_prop prop_of(const struct waits *w)
{
	return (struct tti_cuda_prop){
		.type = TTI_CUDA_ALLOCATION_PINNED,
		.handles = TTI_CUDA_HANDLE_FD,
		.location = { .type = TTI_CUDA_LOCATION_DEVICE, .id = w->gpu->device },
	};
}

CALL(alloc, alloc(&w->at, WAITS_BYTES))
CALL(ipc_get, ipc_get(&(struct tti_cuda_ipc){ .reserved = { 0 } }, w->at))
CALL(free_at, free(w->at))
/* -- Their order ------------------------------------------------------------------------------ */

#define LANES "lanes to a peer, memory that it lends"

const struct waits_call waits_calls[] = {
	{ "cuMemAlloc()", "lanes to a peer, by IPC", alloc, false, false },
	{ "cuIpcGetMemHandle()", LANES, ipc_get, false, false },
	{ "cuMemFree()", "-", free_at, false, false },
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
