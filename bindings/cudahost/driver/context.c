/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, and which of them each thread has. */
#include <pthread.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "engine/facts.h"
#include "engine/held.h"
#include "engine/primary.h"
#include "engine/stream.h"

#define DEPTH 64 /* contexts on the stack of a thread */

struct CUctx_st {
	struct CUctx_st *next; /* of those that cuCtxCreate() made */
	int device;
	unsigned flags;
	unsigned long long id; /* never used again */
};

/* A context that is destroyed may be on stacks of other threads. So it is known by its id. */
struct entry {
	CUcontext context;
	unsigned long long id;
	int device;
};

static const struct CUctx_st primaries[TTI_CUDA_DEVICES_MOST]; /* their addresses are handles */
static struct CUctx_st *created;                               /* the newest first */
static unsigned long long last_id = TTI_CUDA_DEVICES_MOST;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct entry stack[DEPTH];
static _Thread_local unsigned depth;

static bool is_primary(CUcontext context)
{
	const uintptr_t at = (uintptr_t)context;

	return at >= (uintptr_t)primaries && at < (uintptr_t)(primaries + TTI_CUDA_DEVICES_MOST) &&
	       (at - (uintptr_t)primaries) % sizeof(primaries[0]) == 0;
}

/* -- What a handle stands for -------------------------------------------------------------- */

static struct entry primary_of(int device)
{
	return (struct entry){ (CUcontext)(uintptr_t)&primaries[device],
			       (unsigned long long)device + 1, device };
}

static int look_up_primary(CUcontext context, struct entry *out)
{
	const int device = (int)(context - primaries);

	*out = primary_of(device);
	if (device < tti_cuda_device_count() && tti_cuda_primary_is_active(device))
		return TTI_CUDA_OK;
	return tti_cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
			     "the primary context of device %d is not active; "
			     "cuDevicePrimaryCtxRetain() makes it",
			     device);
}

/* `context` may be anything that a program gives. */
static int look_up(CUcontext context, struct entry *out)
{
	struct CUctx_st *at;

	if (is_primary(context))
		return look_up_primary(context, out);
	pthread_mutex_lock(&lock);
	for (at = created; at && at != context; at = at->next)
		;
	if (at)
		*out = (struct entry){ at, at->id, at->device };
	pthread_mutex_unlock(&lock);
	if (at)
		return TTI_CUDA_OK;
	return tti_cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
			     "%p is no context, or one that was destroyed", (void *)context);
}

/* A primary context may be set before it is active, or after. What needs it fails then. */
static int look_up_to_set(CUcontext context, struct entry *out)
{
	if (!is_primary(context) || context - primaries >= tti_cuda_device_count())
		return look_up(context, out);
	*out = primary_of((int)(context - primaries));
	return TTI_CUDA_OK;
}

static int still_there(const struct entry *entry)
{
	struct entry now = { 0 };

	if (!look_up(entry->context, &now) && now.id == entry->id)
		return TTI_CUDA_OK;
	return tti_cuda_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED,
			     "the thread's context %p, of device %d, was destroyed",
			     (void *)entry->context, entry->device);
}

int tti_driver_device_of(CUcontext context, int *out)
{
	struct entry entry = { 0 };
	const int bad = look_up(context, &entry);

	if (!bad)
		*out = entry.device;
	return bad;
}

/* -- The stack of a thread ----------------------------------------------------------------- */

/* Where the runtime has changed the thread's device, its primary context is on top. */
static void settle(void)
{
	const int device = tti_cuda_device_current();

	if (depth ? stack[depth - 1].device == device : !tti_cuda_primary_in_use())
		return;
	depth += !depth;
	stack[depth - 1] = primary_of(device);
}

static int set_top(const struct entry *entry)
{
	const int bad = tti_cuda_device_set(entry->device);

	if (!bad)
		stack[depth - 1] = *entry;
	return bad;
}

static void pop(void)
{
	depth--;
	if (depth)
		tti_cuda_device_set(stack[depth - 1].device);
	else
		tti_cuda_primary_leave();
}

static int push(const struct entry *entry)
{
	if (depth == DEPTH)
		return tti_cuda_fail(TTI_CUDA_ENOMEM,
				     "the thread has pushed %d contexts and popped none", DEPTH);
	depth++;
	const int bad = set_top(entry);

	depth -= !!bad;
	return bad;
}

int tti_driver_begin_context(CUcontext *out)
{
	int bad = tti_driver_begin();

	if (bad)
		return bad;
	settle();
	if (!depth)
		return tti_cuda_fail(CUDA_ERROR_INVALID_CONTEXT,
				     "the thread has no context; cuCtxSetCurrent() gives it one");
	bad = still_there(&stack[depth - 1]);
	if (!bad && out)
		*out = stack[depth - 1].context;
	return bad;
}

CUcontext tti_driver_context_of(int device)
{
	struct CUctx_st *at;

	settle();
	if (depth && stack[depth - 1].device == device && !still_there(&stack[depth - 1]))
		return stack[depth - 1].context;
	if (tti_cuda_primary_is_active(device))
		return primary_of(device).context;
	pthread_mutex_lock(&lock);
	for (at = created; at && at->device != device; at = at->next)
		;
	pthread_mutex_unlock(&lock);
	return at;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	settle();
	*out = depth ? stack[depth - 1].context : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	struct entry entry = { 0 };
	int bad = tti_driver_begin();

	if (bad)
		return tti_driver_result(bad);
	settle();
	if (!context) {
		if (depth)
			pop();
		return CUDA_SUCCESS;
	}
	bad = look_up_to_set(context, &entry);
	if (bad)
		return tti_driver_result(bad);
	return tti_driver_result(depth ? set_top(&entry) : push(&entry));
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	struct entry entry = { 0 };
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(context, __func__);
	if (!bad)
		bad = look_up_to_set(context, &entry);
	if (bad)
		return tti_driver_result(bad);
	settle();
	return tti_driver_result(push(&entry));
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	int bad = tti_driver_begin();

	if (bad)
		return tti_driver_result(bad);
	settle();
	if (!depth)
		return tti_driver_fail(CUDA_ERROR_INVALID_CONTEXT,
				       "the thread has no context that could be popped");
	if (out)
		*out = stack[depth - 1].context;
	pop();
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	return cuCtxPushCurrent_v2(context);
}

CUresult cuCtxPopCurrent(CUcontext *out)
{
	return cuCtxPopCurrent_v2(out);
}

/* -- Made and destroyed -------------------------------------------------------------------- */

static int check_flags(unsigned flags)
{
	const unsigned schedule = flags & (unsigned)CU_CTX_SCHED_MASK;

	/* One way to wait at most. */
	if (!(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(schedule & (schedule - 1)))
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "flags 0x%x of a context: there are 0x%x", flags,
			     CU_CTX_FLAGS_MASK);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
	int bad = tti_driver_begin_device(device);
	struct CUctx_st *context;

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = check_flags(flags);
	if (bad)
		return tti_driver_result(bad);
	context = calloc(1, sizeof(*context));
	if (!context)
		return tti_driver_fail(TTI_CUDA_ENOMEM, "no memory for a context");
	context->device = device;
	context->flags = flags;
	pthread_mutex_lock(&lock);
	context->id = ++last_id;
	context->next = created;
	created = context;
	tti_cuda_held_add(TTI_CUDA_HELD_contexts, 1);
	pthread_mutex_unlock(&lock);

	settle();
	bad = push(&(struct entry){ context, context->id, device });
	if (bad)
		cuCtxDestroy_v2(context);
	else
		*out = context;
	return tti_driver_result(bad);
}

CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
	return cuCtxCreate_v2(out, flags, device);
}

static CUresult create_with(CUcontext *out, int nwishes, unsigned flags, CUdevice device)
{
	if (!nwishes)
		return cuCtxCreate_v2(out, flags, device);
	return tti_driver_fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
			       "a context of some multiprocessors, or one that is shared with "
			       "graphics: there is neither");
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int naffinities,
			unsigned flags, CUdevice device)
{
	(void)affinity;
	return create_with(out, naffinities, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	const bool is_plain = !params || (!params->numExecAffinityParams && !params->cigParams);

	return create_with(out, !is_plain, flags, device);
}

static void forget(CUcontext context)
{
	struct CUctx_st **at;

	pthread_mutex_lock(&lock);
	for (at = &created; *at && *at != context; at = &(*at)->next)
		;
	if (*at) {
		*at = context->next;
		tti_cuda_held_add(TTI_CUDA_HELD_contexts, -1);
	}
	pthread_mutex_unlock(&lock);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	struct entry entry = { 0 };
	int bad = tti_driver_begin();

	if (!bad && is_primary(context))
		return tti_driver_fail(CUDA_ERROR_INVALID_CONTEXT,
				       "a primary context is not destroyed; "
				       "cuDevicePrimaryCtxRelease() gives it back");
	if (!bad)
		bad = tti_driver_need(context, __func__);
	if (!bad && look_up(context, &entry))
		bad = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (bad)
		return tti_driver_result(bad);
	if (depth && stack[depth - 1].context == context)
		pop();
	forget(context);
	free(context);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
	return cuCtxDestroy_v2(context);
}

/* -- Primary contexts ---------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	int bad = tti_driver_begin_device(device);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	tti_cuda_primary_retain(device);
	*out = primary_of(device).context;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	const int bad = tti_driver_begin_device(device);

	if (bad || tti_cuda_primary_release(device))
		return tti_driver_result(bad);
	return tti_driver_fail(
		CUDA_ERROR_INVALID_CONTEXT,
		"the primary context of device %d is released more often than it was "
		"retained",
		device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	int bad = tti_driver_begin_device(device);

	if (!bad)
		bad = check_flags(flags);
	if (!bad && flags & CU_CTX_MAP_HOST)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL,
				    "cuDevicePrimaryCtxSetFlags: flags 0x%x have 0x%x, which is "
				    "on in any case",
				    flags, (unsigned)CU_CTX_MAP_HOST);
	if (!bad)
		tti_cuda_primary_set_flags(device, flags);
	return tti_driver_result(bad);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	const int bad = tti_driver_begin_device(device);

	if (bad)
		return tti_driver_result(bad);
	tti_cuda_device_synchronize(device);
	tti_cuda_primary_reset(device);
	tti_cuda_device_forget(device);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active)
{
	int bad = tti_driver_begin_device(device);

	if (!bad)
		bad = tti_driver_need(flags, __func__);
	if (!bad)
		bad = tti_driver_need(is_active, __func__);
	if (bad)
		return tti_driver_result(bad);
	*flags = tti_cuda_primary_flags(device);
	*is_active = tti_cuda_primary_is_active(device);
	return CUDA_SUCCESS;
}

/* -- What they say of themselves ----------------------------------------------------------- */

CUresult cuCtxGetFlags(unsigned *out)
{
	CUcontext context = NULL;
	int bad = tti_driver_begin_context(&context);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		*out = is_primary(context) ? tti_cuda_primary_flags(tti_cuda_device_current())
					   : context->flags;
	return tti_driver_result(bad);
}

CUresult cuCtxSetFlags(unsigned flags)
{
	CUcontext context = NULL;
	int bad = tti_driver_begin_context(&context);

	if (!bad)
		bad = check_flags(flags);
	if (bad)
		return tti_driver_result(bad);
	if (is_primary(context))
		tti_cuda_primary_set_flags(tti_cuda_device_current(), flags);
	else
		context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *out)
{
	struct entry entry = { 0 };
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad && !context)
		bad = tti_driver_begin_context(&context);
	if (!bad)
		bad = look_up(context, &entry);
	if (!bad)
		*out = entry.id;
	return tti_driver_result(bad);
}
