/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose an address is, where its bytes are, and which copies are refused. */
#include "engine/memory.h"

#include <stdio.h>

#include "engine/allocation.h"
#include "engine/device.h"
#include "engine/host_abi.h"
#include "engine/primary.h"
#include "engine/reach.h"

/* The numbers of cudaMemcpyKind. */
enum kind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

bool tti_cuda_memory_find(const void *address, struct tti_cuda_range *out)
{
	const struct tti_cuda_allocation *self;

	*out = (struct tti_cuda_range){ .type = TTI_CUDA_UNREGISTERED };
	if (!address || tti_cuda_memory_is_gone())
		return false;
	tti_cuda_lock_read();
	self = tti_cuda_allocation_find(address, 1);
	if (self)
		*out = (struct tti_cuda_range){
			.type = self->type,
			.device = self->device,
			.base = self->span.base,
			.nbytes = self->span.nbytes,
			.id = self->id,
			.flags = self->flags,
			.is_pool = self->origin == TTI_CUDA_FROM_POOL ||
				   self->origin == TTI_CUDA_FROM_GRAPH,
			.pool = self->pool,
		};
	tti_cuda_unlock();
	return out->type != TTI_CUDA_UNREGISTERED;
}

int tti_cuda_memory_is_guarded(void)
{
	bool guarded;

	return tti_cuda_view_guard(&guarded) == 0 && guarded;
}

static bool find(const void *address, struct tti_cuda_reached *out)
{
	bool guarded;

	(void)tti_cuda_view_guard(&guarded);
	return guarded && !tti_cuda_memory_is_gone() && tti_cuda_reach_find(address, out);
}

void *tti_cuda_memory_reach(const void *address)
{
	struct tti_cuda_reached found;

	return find(address, &found) ? found.at : (void *)(uintptr_t)address;
}

static bool may(int device, const struct tti_cuda_reached *found)
{
	if (found->is_plain)
		return device == found->owner || tti_cuda_primary_has_access(device, found->owner);
	return found->devices >> device & 1;
}

/* What a kernel may not access is left where a fault names it, as a GPU's would end the kernel. */
void *tti_cuda_reach(uint64_t address)
{
	void *const at = (void *)(uintptr_t)address;
	const int device = tti_cuda_kernel_self() - 1;
	struct tti_cuda_reached found;

	if (!find(at, &found))
		return at;
	if (device < 0 || may(device, &found))
		return found.at;
	(void)fprintf(stderr,
		      "tutti: a kernel of device %d uses memory of device %d at %p, to which its "
		      "device has no access: %s comes first\n",
		      device, found.owner, at,
		      found.is_plain ? "cuCtxEnablePeerAccess()" : "cuMemSetAccess() for it");
	return at;
}

/* -- What is refused ---------------------------------------------------------------------- */

static int fail_end(const char *at, size_t nbytes, const struct tti_cuda_allocation *self)
{
	char name[128];

	return tti_cuda_fail(TTI_CUDA_EINVAL, "%zu bytes at %p reach %zu bytes beyond %s", nbytes,
			     (const void *)at,
			     (size_t)(at + nbytes - (self->span.base + self->span.nbytes)),
			     tti_cuda_allocation_name(self, name));
}

static int check_access(const struct tti_cuda_allocation *self, enum tti_cuda_access need)
{
	char name[128];

	if (self->origin != TTI_CUDA_FROM_MAP || self->writers ||
	    (self->readers && need == TTI_CUDA_ACCESS_READ))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s cannot be %s: cuMemSetAccess() allows %s",
			     tti_cuda_allocation_name(self, name),
			     need == TTI_CUDA_ACCESS_READ ? "read" : "written",
			     self->readers ? "to read alone" : "nothing yet");
}

/* Locked. Pieces that are mapped side by side in one region are one memory. */
static int check_known(const char *at, size_t nbytes, const struct tti_cuda_allocation *self,
		       enum tti_cuda_access need)
{
	const struct tti_cuda_allocation *last = self;
	size_t from = (size_t)(at - self->span.base);
	size_t left = nbytes;

	for (;;) {
		const int error = check_access(last, need);

		if (error || left <= last->span.nbytes - from)
			return error;
		left -= last->span.nbytes - from;
		from = 0;
		self = tti_cuda_allocation_find(last->span.base + last->span.nbytes, 1);
		if (!self || !self->view || self->view != last->view)
			return fail_end(at, nbytes, last);
		last = self;
	}
}

/* Locked. `is_device`: it must be memory that CUDA knows. */
static int check_range(const char *at, size_t nbytes, enum tti_cuda_access need, bool is_device)
{
	const struct tti_cuda_allocation *over; /* one of those that have any of the bytes */
	const struct tti_cuda_allocation *self;
	char name[128];

	if (!at || nbytes > UINTPTR_MAX - (uintptr_t)at)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%zu bytes at %p are no memory", nbytes,
				     (const void *)at);
	over = tti_cuda_allocation_find(at, nbytes);
	self = over && (at < over->span.base || (size_t)(at - over->span.base) >= over->span.nbytes)
		       ? tti_cuda_allocation_find(at, 1)
		       : over;
	if (self)
		return check_known(at, nbytes, self, need);
	if (is_device)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%zu bytes at %p are not a device's: nothing is allocated "
				     "there, or not any more",
				     nbytes, (const void *)at);
	if (over && over->type == TTI_CUDA_DEVICE)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%zu bytes at %p begin outside of what CUDA knows and reach "
				     "into %s",
				     nbytes, (const void *)at,
				     tti_cuda_allocation_name(over, name));
	return 0;
}

static int fail_child(void)
{
	const int error = tti_cuda_begin();

	return error ? error : TTI_CUDA_EINIT;
}

int tti_cuda_memory_check_copy(const void *to, const void *from, size_t nbytes, int kind)
{
	int error;

	if (kind < HOST_TO_HOST || kind > BY_ADDRESS)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%d is no kind of copy: they are 0 to 4",
				     kind);
	if (tti_cuda_memory_is_gone())
		return fail_child();
	if (nbytes == 0)
		return 0;
	tti_cuda_lock_read();
	error = check_range(to, nbytes, TTI_CUDA_ACCESS_BOTH,
			    kind == HOST_TO_DEVICE || kind == DEVICE_TO_DEVICE);
	if (!error)
		error = check_range(from, nbytes, TTI_CUDA_ACCESS_READ,
				    kind == DEVICE_TO_HOST || kind == DEVICE_TO_DEVICE);
	tti_cuda_unlock();
	return error;
}

int tti_cuda_memory_check(const void *address, size_t nbytes)
{
	int error;

	if (tti_cuda_memory_is_gone())
		return fail_child();
	if (nbytes == 0)
		return 0;
	tti_cuda_lock_read();
	error = check_range(address, nbytes, TTI_CUDA_ACCESS_BOTH, true);
	tti_cuda_unlock();
	return error;
}
