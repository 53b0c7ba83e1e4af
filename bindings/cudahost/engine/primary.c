/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/primary.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "engine/device.h"
#include "engine/held.h"
#include "engine/peers.h"

#define STACK_MOST   (512u << 10) /* bytes of local memory of a thread */
#define PRINTF_LEAST ((size_t)512 << 10)

/* The runtime holds a context from its first use to its reset, the driver's programs as often as
 * they retained it. */
static struct primary {
	unsigned nretained;
	bool is_used;
	unsigned flags;
	_Atomic uint64_t peers; /* a bit for each device */
	bool is_limit_set[TTI_CUDA_LIMITS];
	size_t limits[TTI_CUDA_LIMITS];
	atomic_uint nresets;
} primaries[TTI_CUDA_DEVICES_MOST];
static atomic_bool is_initialized;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What the calling thread is on, if anything, and how often that had been reset. */
static _Thread_local struct {
	bool is_on;
	int device;
	unsigned nresets;
} used;

static const size_t limits_at_first[TTI_CUDA_LIMITS] = {
	1024,     /* bytes of a thread's stack */
	7 << 20,  /* bytes for printf() */
	8 << 20,  /* bytes of the heap of kernels */
	0,        /* how deep kernels wait, which is none any more */
	2048,     /* kernels of kernels that are pending */
	128,      /* bytes that the cache fetches */
	0,        /* bytes of the cache that stay */
	48 << 10, /* bytes of shared memory, which tell of the device */
	0,        /* how kernels are kept from each other's faults */
};

void tti_cuda_initialize(void)
{
	atomic_store(&is_initialized, true);
}

bool tti_cuda_is_initialized(void)
{
	return atomic_load(&is_initialized);
}

void tti_cuda_primary_activate(int device)
{
	tti_cuda_initialize();
	pthread_mutex_lock(&lock);
	primaries[device].is_used = true;
	pthread_mutex_unlock(&lock);
}

void tti_cuda_primary_use(void)
{
	used.device = tti_cuda_device_current();
	used.nresets = atomic_load(&primaries[used.device].nresets);
	used.is_on = true;
	tti_cuda_primary_activate(used.device);
}

void tti_cuda_primary_leave(void)
{
	used.is_on = false;
}

bool tti_cuda_primary_in_use(void)
{
	return used.is_on && used.nresets == atomic_load(&primaries[used.device].nresets);
}

void tti_cuda_primary_retain(int device)
{
	pthread_mutex_lock(&lock);
	primaries[device].nretained++;
	tti_cuda_held_add(TTI_CUDA_HELD_contexts, 1);
	pthread_mutex_unlock(&lock);
}

bool tti_cuda_primary_release(int device)
{
	pthread_mutex_lock(&lock);
	const bool is_held = primaries[device].nretained;

	if (is_held) {
		primaries[device].nretained--;
		tti_cuda_held_add(TTI_CUDA_HELD_contexts, -1);
	}
	pthread_mutex_unlock(&lock);
	return is_held;
}

void tti_cuda_primary_reset(int device)
{
	pthread_mutex_lock(&lock);
	tti_cuda_held_add(TTI_CUDA_HELD_contexts, -(int)primaries[device].nretained);
	primaries[device].nretained = 0;
	primaries[device].is_used = false;
	primaries[device].flags = 0;
	primaries[device].peers = 0;
	memset(primaries[device].is_limit_set, 0, sizeof(primaries[device].is_limit_set));
	atomic_fetch_add(&primaries[device].nresets, 1);
	pthread_mutex_unlock(&lock);
}

bool tti_cuda_primary_is_active(int device)
{
	pthread_mutex_lock(&lock);
	const bool is = primaries[device].nretained || primaries[device].is_used;

	pthread_mutex_unlock(&lock);
	return is;
}

unsigned tti_cuda_primary_flags(int device)
{
	pthread_mutex_lock(&lock);
	const unsigned flags = primaries[device].flags;

	pthread_mutex_unlock(&lock);
	return flags;
}

void tti_cuda_primary_set_flags(int device, unsigned flags)
{
	pthread_mutex_lock(&lock);
	primaries[device].flags = flags;
	pthread_mutex_unlock(&lock);
}

/* The number of the limit that GPUs do not have any more, and of those that cannot be set. */
enum { STACK = 0, PRINTF = 1, SYNC_DEPTH = 3, FIRST_FIXED = 7, KNOWN = 10 };

static int check_limit(int limit)
{
	if (limit >= 0 && limit < TTI_CUDA_LIMITS && limit != SYNC_DEPTH)
		return TTI_CUDA_OK;
	return tti_cuda_fail(limit >= 0 && limit < KNOWN ? TTI_CUDA_ELIMIT : TTI_CUDA_EINVAL,
			     "there is no limit %d: 0 to %d without %d", limit, TTI_CUDA_LIMITS - 1,
			     SYNC_DEPTH);
}

/* A stack has a multiple of 16 bytes, and what printf() has is not less than half a megabyte. */
static size_t nearest_limit(int limit, size_t value)
{
	if (limit == STACK)
		return (value + 15) / 16 * 16;
	return limit == PRINTF && value < PRINTF_LEAST ? PRINTF_LEAST : value;
}

int tti_cuda_limit_get(int device, int limit, size_t *out)
{
	const int bad = check_limit(limit);

	if (bad)
		return bad;
	pthread_mutex_lock(&lock);
	*out = primaries[device].is_limit_set[limit] ? primaries[device].limits[limit]
						     : limits_at_first[limit];
	pthread_mutex_unlock(&lock);
	return TTI_CUDA_OK;
}

int tti_cuda_limit_set(int device, int limit, size_t value)
{
	const int bad = check_limit(limit);

	if (bad)
		return bad;
	if (limit >= FIRST_FIXED)
		return tti_cuda_fail(TTI_CUDA_EPOOL, "limit %d cannot be set", limit);
	if (limit == STACK && value > STACK_MOST)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a stack of %zu bytes: there are %u at most",
				     value, STACK_MOST);
	pthread_mutex_lock(&lock);
	primaries[device].is_limit_set[limit] = true;
	primaries[device].limits[limit] = nearest_limit(limit, value);
	pthread_mutex_unlock(&lock);
	return TTI_CUDA_OK;
}

/* `of_itself` is the error of a device and itself. */
static int check_peer(int device, int peer, int of_itself)
{
	const int n = tti_cuda_device_count();

	if (device >= 0 && device < n && device == peer)
		return tti_cuda_fail(of_itself, "device %d is no peer of itself", device);
	if (device >= 0 && device < n && peer >= 0 && peer < n)
		return tti_cuda_peer_check("peer access", device, peer);
	return tti_cuda_fail(TTI_CUDA_EDEVICE,
			     "peer access of device %d to device %d: two devices of 0..%d", device,
			     peer, n - 1);
}

int tti_cuda_primary_allow_peer(int device, int peer)
{
	const int bad = check_peer(device, peer, TTI_CUDA_EPEERNONE);

	if (bad)
		return bad;
	pthread_mutex_lock(&lock);
	const bool was_on = primaries[device].peers >> peer & 1;

	primaries[device].peers |= (uint64_t)1 << peer;
	pthread_mutex_unlock(&lock);
	if (!was_on)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EPEERON, "device %d has access to device %d already", device,
			     peer);
}

int tti_cuda_primary_forbid_peer(int device, int peer)
{
	const int bad = check_peer(device, peer, TTI_CUDA_EPEEROFF);

	if (bad)
		return bad;
	pthread_mutex_lock(&lock);
	const bool was_on = primaries[device].peers >> peer & 1;

	primaries[device].peers &= ~((uint64_t)1 << peer);
	pthread_mutex_unlock(&lock);
	if (was_on)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EPEEROFF, "device %d has no access to device %d", device,
			     peer);
}

bool tti_cuda_primary_has_access(int device, int peer)
{
	return atomic_load_explicit(&primaries[device].peers, memory_order_acquire) >> peer & 1;
}
