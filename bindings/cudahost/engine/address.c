/* SPDX-License-Identifier: BSD-3-Clause */
/* Reserved addresses, and which pieces are mapped there. */
#include "engine/memory.h"

#include <stdlib.h>

#include "engine/allocation.h"
#include "engine/device.h"
#include "engine/held.h"
#include "engine/peers.h"
#include "engine/piece.h"
#include "engine/reach.h"

struct region {
	struct tti_cuda_span span;
	struct tti_cuda_view view;
	uint64_t nmaps;
};

static void *regions; /* a set of spans; locked */

static bool is_granular(uint64_t number)
{
	return number % TTI_CUDA_GRANULARITY == 0;
}

int tti_cuda_address_reserve(size_t nbytes, size_t alignment, void *hint, void **out)
{
	const size_t aligned = alignment < TTI_CUDA_GRANULARITY ? TTI_CUDA_GRANULARITY : alignment;
	struct region *region;
	int error = tti_cuda_memory_begin();
	bool is_added;

	if (error)
		return error;
	if (nbytes == 0 || !is_granular(nbytes) || (alignment & (alignment - 1)) != 0)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cuMemAddressReserve: %zu bytes must be a multiple of the "
				     "granularity, %u, and the alignment, %zu, a power of two or 0",
				     nbytes, TTI_CUDA_GRANULARITY, alignment);
	region = calloc(1, sizeof(*region));
	if (!region)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	error = tti_cuda_view_reserve(nbytes, aligned, hint, &region->view);
	if (error) {
		free(region);
		return error;
	}
	region->span = (struct tti_cuda_span){ region->view.address, nbytes };
	tti_cuda_lock_write();
	is_added = tti_cuda_span_add(&regions, &region->span);
	tti_cuda_unlock();
	if (is_added) {
		tti_cuda_held_add(TTI_CUDA_HELD_reserved, 1);
		*out = region->view.address;
		return 0;
	}
	tti_cuda_view_release(&region->view);
	free(region);
	return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
}

/* Locked. */
static int check_free(const void *address, size_t nbytes, const struct region *region)
{
	if (!region || region->span.base != address || region->span.nbytes != nbytes)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cuMemAddressFree: %zu bytes at %p are not what was reserved "
				     "there (%zu bytes at %p)",
				     nbytes, address, region ? region->span.nbytes : 0,
				     region ? (void *)region->span.base : NULL);
	if (region->nmaps)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cuMemAddressFree: %llu pieces are mapped in the %zu bytes at %p: "
			"unmap them before",
			(unsigned long long)region->nmaps, nbytes, address);
	return 0;
}

int tti_cuda_address_free(void *address, size_t nbytes)
{
	struct region *region;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	region = tti_cuda_span_find(&regions, address, 1);
	error = check_free(address, nbytes, region);
	if (!error)
		tti_cuda_span_remove(&regions, &region->span);
	tti_cuda_unlock();
	if (error)
		return error;
	tti_cuda_view_release(&region->view);
	free(region);
	tti_cuda_held_add(TTI_CUDA_HELD_reserved, -1);
	return 0;
}

/* Locked. The region of the whole range, or EINVAL. */
static int find_region(const char *what, const char *address, size_t nbytes, struct region **out)
{
	struct region *const region = tti_cuda_span_find(&regions, address, 1);

	if (nbytes == 0 || !is_granular(nbytes) || !is_granular((uintptr_t)address))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s: %zu bytes at %p are no multiples of the granularity, %u",
				     what, nbytes, (const void *)address, TTI_CUDA_GRANULARITY);
	if (!region || nbytes > region->span.nbytes - (size_t)(address - region->span.base))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s: %zu bytes at %p are not within what one "
				     "cuMemAddressReserve() gave",
				     what, nbytes, (const void *)address);
	*out = region;
	return 0;
}

/* Locked. */
static int check_map(const char *address, size_t nbytes, size_t offset,
		     const struct tti_cuda_piece *piece, struct region **out)
{
	const struct tti_cuda_allocation *there;
	int error = tti_cuda_piece_check(piece, "cuMemMap");
	char name[128];

	if (!error)
		error = find_region("cuMemMap", address, nbytes, out);
	if (error)
		return error;
	if (!is_granular(offset) || offset > piece->file.nbytes ||
	    nbytes > piece->file.nbytes - offset)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cuMemMap: %zu bytes at offset %zu do not lie in the %llu of the "
			"piece, or the offset is no multiple of the granularity, %u",
			nbytes, offset, (unsigned long long)piece->file.nbytes,
			TTI_CUDA_GRANULARITY);
	there = tti_cuda_allocation_find(address, nbytes);
	if (there && there->origin == TTI_CUDA_FROM_MAP)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "cuMemMap: %zu bytes at %p overlap %s",
				     nbytes, (const void *)address,
				     tti_cuda_allocation_name(there, name));
	return 0;
}

/* Locked. */
static int map(struct tti_cuda_allocation *self, size_t offset)
{
	struct region *region = NULL;
	size_t at;
	int error = check_map(self->span.base, self->span.nbytes, offset, self->piece, &region);

	if (error)
		return error;
	at = (size_t)(self->span.base - region->view.address);
	self->device = self->piece->file.device;
	self->view = &region->view;
	error = tti_cuda_view_place(&region->view, at, self->span.nbytes, &self->piece->file,
				    offset);
	if (error)
		return error;
	error = tti_cuda_reach_add(&(struct tti_cuda_reach_range){
		.address = self->span.base,
		.nbytes = self->span.nbytes,
		.reach = region->view.reach + at,
		.owner = self->device,
	});
	if (!error) {
		error = tti_cuda_allocation_add(self);
		if (error)
			tti_cuda_reach_remove(self->span.base);
	}
	if (error) {
		(void)tti_cuda_view_clear(&region->view, at, self->span.nbytes);
		return error;
	}
	self->piece->nmaps++;
	region->nmaps++;
	return 0;
}

int tti_cuda_address_map(void *address, size_t nbytes, size_t offset, struct tti_cuda_piece *piece)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	self = calloc(1, sizeof(*self));
	if (!self)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	self->span = (struct tti_cuda_span){ address, nbytes };
	self->origin = TTI_CUDA_FROM_MAP;
	self->type = TTI_CUDA_DEVICE;
	self->piece = piece;
	tti_cuda_lock_write();
	error = map(self, offset);
	tti_cuda_unlock();
	if (error)
		free(self);
	return error;
}

/* Locked. The range is of whole mappings, side by side in one region. */
static int check_mapped(const char *what, const char *address, size_t nbytes, struct region **out)
{
	int error = find_region(what, address, nbytes, out);
	const char *at = address;

	while (!error && at < address + nbytes) {
		const struct tti_cuda_allocation *const self = tti_cuda_allocation_find(at, 1);
		char name[128];

		if (!self || self->origin != TTI_CUDA_FROM_MAP)
			error = tti_cuda_fail(
				TTI_CUDA_EINVAL, "%s: of %zu bytes at %p nothing is mapped at %p",
				what, nbytes, (const void *)address, (const void *)at);
		else if (self->span.base != at ||
			 self->span.nbytes > (size_t)(address + nbytes - at))
			error = tti_cuda_fail(TTI_CUDA_EINVAL,
					      "%s: %zu bytes at %p are but a part of %s", what,
					      nbytes, (const void *)address,
					      tti_cuda_allocation_name(self, name));
		else
			at += self->span.nbytes;
	}
	return error;
}

/* Locked; the addresses are clear. */
static void forget_mapped(const char *address, size_t nbytes, struct region *region)
{
	struct tti_cuda_allocation *self;

	while ((self = tti_cuda_allocation_find(address, nbytes))) {
		tti_cuda_reach_remove(self->span.base);
		tti_cuda_allocation_remove(self);
		region->nmaps--;
		self->piece->nmaps--;
		tti_cuda_piece_drop_unused(self->piece);
		free(self);
	}
}

/* Locked. */
static int unmap(char *address, size_t nbytes)
{
	struct region *region = NULL;
	int error = check_mapped("cuMemUnmap", address, nbytes, &region);

	if (!error)
		error = tti_cuda_view_clear(&region->view, (size_t)(address - region->view.address),
					    nbytes);
	if (!error)
		forget_mapped(address, nbytes, region);
	return error;
}

/* Where nothing is mapped, there is nothing to do. */
int tti_cuda_address_unmap(void *address, size_t nbytes)
{
	struct region *region = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = find_region("cuMemUnmap", address, nbytes, &region);
	if (!error && tti_cuda_allocation_find(address, nbytes))
		error = unmap(address, nbytes);
	tti_cuda_unlock();
	return error;
}

/* Locked. Whether all of these devices may access all of the range, which is mapped. */
static int check_peers(char *address, size_t nbytes, uint64_t devices)
{
	const int n = tti_cuda_device_count();
	int error = 0;

	for (size_t at = 0; !error && at < nbytes;) {
		const struct tti_cuda_allocation *const self =
			tti_cuda_allocation_find(address + at, 1);

		for (int device = 0; !error && device < n && devices != TTI_CUDA_ALL_DEVICES;
		     device++)
			if (devices >> device & 1)
				error = tti_cuda_peer_check("cuMemSetAccess", device, self->device);
		at += self->span.nbytes;
	}
	return error;
}

static bool is_lied_to(const struct tti_cuda_allocation *self, uint64_t devices)
{
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		if (devices >> device & 1 && tti_cuda_peer_lies(device, self->device))
			return !(self->readers >> self->device & 1); /* the owner has it so, too */
	return false;
}

/* Locked. Other memory comes in the place of what is mapped for devices that are lied to. */
static int lie(const struct region *region, char *address, size_t nbytes, uint64_t devices)
{
	int error = 0;

	for (size_t at = 0; !error && at < nbytes;) {
		struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address + at, 1);
		struct tti_cuda_file other;

		if (!self->is_lie && is_lied_to(self, devices)) {
			error = tti_cuda_file_create(TTI_CUDA_FILE_PIECE, self->device,
						     self->span.nbytes, 0, &other);
			if (error)
				break;
			error = tti_cuda_view_place(
				&region->view, (size_t)(self->span.base - region->view.address),
				self->span.nbytes, &other, 0);
			tti_cuda_file_close(&other); /* its mapping stays */
			self->is_lie = !error;
		}
		at += self->span.nbytes;
	}
	return error;
}

static enum tti_cuda_access access_of(const struct tti_cuda_allocation *self, uint64_t devices)
{
	if (self->writers & devices)
		return TTI_CUDA_ACCESS_BOTH;
	return self->readers & devices ? TTI_CUDA_ACCESS_READ : TTI_CUDA_ACCESS_NONE;
}

/* Locked. Of one mapping. */
static int allow_one(const struct region *region, struct tti_cuda_allocation *self,
		     enum tti_cuda_access access, uint64_t devices)
{
	const struct tti_cuda_allocation before = *self;
	int error;

	self->readers &= ~devices;
	self->writers &= ~devices;
	if (access != TTI_CUDA_ACCESS_NONE)
		self->readers |= devices;
	if (access == TTI_CUDA_ACCESS_BOTH)
		self->writers |= devices;
	error = tti_cuda_view_allow(&region->view, (size_t)(self->span.base - region->view.address),
				    self->span.nbytes, access_of(self, TTI_CUDA_ALL_DEVICES));
	if (error)
		*self = before;
	tti_cuda_reach_allow(self->span.base, self->readers);
	return error;
}

/* Locked. */
static int allow(char *address, size_t nbytes, enum tti_cuda_access access, uint64_t devices)
{
	struct region *region = NULL;
	int error = check_mapped("cuMemSetAccess", address, nbytes, &region);

	if (!error && access != TTI_CUDA_ACCESS_NONE)
		error = check_peers(address, nbytes, devices);
	if (!error && access != TTI_CUDA_ACCESS_NONE)
		error = lie(region, address, nbytes, devices);
	for (size_t at = 0; !error && at < nbytes;) {
		struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address + at, 1);

		error = allow_one(region, self, access, devices);
		at += self->span.nbytes;
	}
	return error;
}

int tti_cuda_address_allow(void *address, size_t nbytes, int access, uint64_t devices)
{
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	if (access != TTI_CUDA_ACCESS_NONE && access != TTI_CUDA_ACCESS_READ &&
	    access != TTI_CUDA_ACCESS_BOTH)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cuMemSetAccess: %d is no access: 0 is none, 1 read, 3 both",
				     access);
	tti_cuda_lock_write();
	error = allow(address, nbytes, (enum tti_cuda_access)access, devices);
	tti_cuda_unlock();
	return error;
}

/* Locked. */
static int find_mapped(const char *what, const void *address, struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address, 1);

	if (!self || self->origin != TTI_CUDA_FROM_MAP)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: no piece is mapped at %p", what,
				     address);
	*out = self;
	return 0;
}

int tti_cuda_address_allowed(const void *address, int device, int *out_access)
{
	struct tti_cuda_allocation *self = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_read();
	error = find_mapped("cuMemGetAccess", address, &self);
	if (!error)
		*out_access = (int)access_of(self, (uint64_t)1 << device);
	tti_cuda_unlock();
	return error;
}

int tti_cuda_address_piece(const void *address, struct tti_cuda_piece **out)
{
	struct tti_cuda_allocation *self = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = find_mapped("cuMemRetainAllocationHandle", address, &self);
	if (!error) {
		self->piece->nrefs++;
		*out = self->piece;
	}
	tti_cuda_unlock();
	return error;
}
