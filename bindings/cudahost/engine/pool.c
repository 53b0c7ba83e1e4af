/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/pool.h"

#include <stdlib.h>

#include "engine/internal.h"
#include "engine/pool_impl.h"
#include "engine/reclaim.h"

/* Locked. */
static struct tti_cuda_pool *pools;
static struct tti_cuda_pool *defaults[TTI_CUDA_DEVICES_MOST];
static struct tti_cuda_pool *currents[TTI_CUDA_DEVICES_MOST];

/* CUDA takes memory of a device for a pool in steps of 32 MiB. */
#define STEP ((uint64_t)32 << 20)

static uint64_t in_steps(uint64_t nbytes)
{
	return nbytes > UINT64_MAX - STEP ? UINT64_MAX : (nbytes + STEP - 1) / STEP * STEP;
}

/* -- Pools -------------------------------------------------------------------------------- */

/* Locked. NULL: out of memory. */
static struct tti_cuda_pool *add(int device, bool is_default)
{
	struct tti_cuda_pool *const pool = calloc(1, sizeof(*pool));

	if (!pool) {
		(void)tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
		return NULL;
	}
	pool->device = device;
	pool->is_default = is_default;
	for (int policy = TTI_CUDA_REUSE_FIRST; policy <= TTI_CUDA_REUSE_LAST; policy++)
		pool->reuse[policy] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

int tti_cuda_pool_check(const struct tti_cuda_pool *pool)
{
	const struct tti_cuda_pool *each = pools;

	while (each && each != pool)
		each = each->next;
	if (each && !each->is_destroyed)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%p is no pool of memory, or was destroyed",
			     (const void *)pool);
}

/* Locked. */
static struct tti_cuda_pool *default_of(int device)
{
	if (!defaults[device])
		defaults[device] = add(device, true);
	return defaults[device];
}

/* Locked. */
static struct tti_cuda_pool *current_of(int device)
{
	return currents[device] ? currents[device] : default_of(device);
}

void tti_cuda_pool_end_if_unused(struct tti_cuda_pool *pool)
{
	struct tti_cuda_pool **link = &pools;

	if (!pool->is_destroyed || pool->nlive)
		return;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

/* Locked. Takes out what is kept, until the pool has `keep` bytes; a list. */
static struct tti_cuda_allocation *take_kept(struct tti_cuda_pool *pool, uint64_t keep,
					     struct tti_cuda_allocation *list)
{
	while (pool->kept && pool->reserved > keep) {
		struct tti_cuda_allocation *const first = pool->kept;

		pool->kept = first->next;
		pool->reserved -= first->block->nbytes;
		first->next = list;
		list = first;
	}
	return list;
}

/* Not locked. */
static void free_list(struct tti_cuda_allocation *list)
{
	while (list) {
		struct tti_cuda_allocation *const next = list->next;

		tti_cuda_allocation_free(list);
		list = next;
	}
}

int tti_cuda_pool_create(int device, struct tti_cuda_pool **out)
{
	struct tti_cuda_pool *pool;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (error)
		return error;
	tti_cuda_lock_write();
	pool = add(device, false);
	tti_cuda_unlock();
	if (!pool)
		return TTI_CUDA_ENOMEM;
	*out = pool;
	return 0;
}

void tti_cuda_pool_set_most(struct tti_cuda_pool *pool, uint64_t nbytes)
{
	tti_cuda_lock_write();
	pool->most = in_steps(nbytes);
	tti_cuda_unlock();
}

int tti_cuda_pool_destroy(struct tti_cuda_pool *pool)
{
	struct tti_cuda_allocation *list = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = tti_cuda_pool_check(pool);
	if (!error && pool->is_default)
		error = tti_cuda_fail(TTI_CUDA_EINVAL,
				      "the default pool of device %d cannot be destroyed",
				      pool->device);
	if (!error) {
		if (currents[pool->device] == pool)
			currents[pool->device] = NULL;
		pool->is_destroyed = true;
		list = take_kept(pool, 0, NULL);
		tti_cuda_pool_end_if_unused(pool);
	}
	tti_cuda_unlock();
	free_list(list);
	return error;
}

static struct tti_cuda_pool *pool_of(int device, struct tti_cuda_pool *(*get)(int device))
{
	struct tti_cuda_pool *pool;

	if (tti_cuda_memory_begin() || tti_cuda_device_check(device))
		return NULL;
	tti_cuda_lock_write();
	pool = get(device);
	tti_cuda_unlock();
	return pool;
}

struct tti_cuda_pool *tti_cuda_pool_default(int device)
{
	return pool_of(device, default_of);
}

struct tti_cuda_pool *tti_cuda_pool_current(int device)
{
	return pool_of(device, current_of);
}

int tti_cuda_pool_set_current(int device, struct tti_cuda_pool *pool)
{
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (error)
		return error;
	tti_cuda_lock_write();
	error = pool ? tti_cuda_pool_check(pool) : 0;
	if (!error && pool && pool->device != device)
		error = tti_cuda_fail(TTI_CUDA_EINVAL,
				      "a pool of device %d cannot be the current one of device %d",
				      pool->device, device);
	if (!error)
		currents[device] = pool;
	tti_cuda_unlock();
	return error;
}

int tti_cuda_pool_device(const struct tti_cuda_pool *pool)
{
	int device;

	tti_cuda_lock_read();
	device = tti_cuda_pool_check(pool) ? -1 : pool->device;
	tti_cuda_unlock();
	return device;
}

int tti_cuda_pool_trim(struct tti_cuda_pool *pool, size_t keep)
{
	struct tti_cuda_allocation *list = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = tti_cuda_pool_check(pool);
	if (!error)
		list = take_kept(pool, in_steps(keep), NULL);
	tti_cuda_unlock();
	free_list(list);
	return error;
}

bool tti_cuda_pool_reclaim(int device)
{
	struct tti_cuda_allocation *list = NULL;
	bool found;

	tti_cuda_lock_write();
	for (struct tti_cuda_pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			list = take_kept(pool, 0, list);
	tti_cuda_unlock();
	found = list;
	free_list(list);
	return found;
}

void tti_cuda_pool_unlink(struct tti_cuda_allocation **link, const struct tti_cuda_allocation *self)
{
	while (*link && *link != self)
		link = &(*link)->next;
	if (*link)
		*link = self->next;
}

void tti_cuda_pool_keep(struct tti_cuda_allocation *self)
{
	struct tti_cuda_pool *const pool = self->pool;
	struct tti_cuda_allocation *list;

	tti_cuda_lock_write();
	pool->used -= self->span.nbytes;
	pool->nlive--;
	self->is_freed = false;
	self->next = pool->kept;
	pool->kept = self;
	list = take_kept(pool, pool->is_destroyed ? 0 : pool->threshold, NULL);
	tti_cuda_pool_end_if_unused(pool);
	tti_cuda_unlock();
	free_list(list);
}

/* -- Attributes --------------------------------------------------------------------------- */

int tti_cuda_pool_get(const struct tti_cuda_pool *pool, int attribute, uint64_t *out)
{
	int error;

	tti_cuda_lock_read();
	error = tti_cuda_pool_check(pool);
	if (!error && attribute >= TTI_CUDA_REUSE_FIRST && attribute <= TTI_CUDA_REUSE_LAST)
		*out = pool->reuse[attribute];
	else if (!error && attribute == TTI_CUDA_POOL_THRESHOLD)
		*out = pool->threshold;
	else if (!error && attribute == TTI_CUDA_POOL_RESERVED)
		*out = in_steps(pool->reserved);
	else if (!error && attribute == TTI_CUDA_POOL_RESERVED_HIGH)
		*out = in_steps(pool->reserved_high);
	else if (!error && attribute == TTI_CUDA_POOL_USED)
		*out = pool->used;
	else if (!error && attribute == TTI_CUDA_POOL_USED_HIGH)
		*out = pool->used_high;
	else if (!error)
		error = tti_cuda_fail(TTI_CUDA_EINVAL, "%d is no attribute of a pool", attribute);
	tti_cuda_unlock();
	return error;
}

/* Locked. */
static int set(struct tti_cuda_pool *pool, int attribute, uint64_t value)
{
	if (attribute >= TTI_CUDA_REUSE_FIRST && attribute <= TTI_CUDA_REUSE_LAST && value <= 1)
		pool->reuse[attribute] = value;
	else if (attribute == TTI_CUDA_POOL_THRESHOLD)
		pool->threshold = value;
	else if (attribute == TTI_CUDA_POOL_RESERVED_HIGH && value == 0)
		pool->reserved_high = pool->reserved;
	else if (attribute == TTI_CUDA_POOL_USED_HIGH && value == 0)
		pool->used_high = pool->used;
	else
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"attribute %d of a pool cannot be set to %llu: 1 to 3 can be 0 "
			"or 1, 4 any number, 6 and 8 only 0",
			attribute, (unsigned long long)value);
	return 0;
}

int tti_cuda_pool_set(struct tti_cuda_pool *pool, int attribute, uint64_t value)
{
	struct tti_cuda_allocation *list = NULL;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = tti_cuda_pool_check(pool);
	if (!error)
		error = set(pool, attribute, value);
	if (!error)
		list = take_kept(pool, pool->threshold, NULL);
	tti_cuda_unlock();
	free_list(list);
	return error;
}
