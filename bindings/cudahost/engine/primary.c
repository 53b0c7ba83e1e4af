/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/primary.h"

#include <pthread.h>
#include <stdint.h>

#include "engine/device.h"

/* The runtime holds a context from its first use to its reset, the driver's programs as often as
 * they retained it. */
static struct primary {
	unsigned nretained;
	bool is_used;
	unsigned flags;
	uint64_t peers; /* a bit for each device */
} primaries[TTI_CUDA_DEVICES_MOST];
static bool ever_used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local bool thread_uses;

void tti_cuda_primary_use(void)
{
	pthread_mutex_lock(&lock);
	primaries[tti_cuda_device_current()].is_used = true;
	ever_used = true;
	pthread_mutex_unlock(&lock);
	thread_uses = true;
}

void tti_cuda_primary_leave(void)
{
	thread_uses = false;
}

bool tti_cuda_primary_in_use(void)
{
	return thread_uses;
}

bool tti_cuda_primary_ever_used(void)
{
	pthread_mutex_lock(&lock);
	const bool is = ever_used;

	pthread_mutex_unlock(&lock);
	return is;
}

void tti_cuda_primary_retain(int device)
{
	pthread_mutex_lock(&lock);
	primaries[device].nretained++;
	pthread_mutex_unlock(&lock);
}

bool tti_cuda_primary_release(int device)
{
	pthread_mutex_lock(&lock);
	const bool is_held = primaries[device].nretained;

	if (is_held)
		primaries[device].nretained--;
	pthread_mutex_unlock(&lock);
	return is_held;
}

void tti_cuda_primary_reset(int device)
{
	pthread_mutex_lock(&lock);
	primaries[device].nretained = 0;
	primaries[device].is_used = false;
	primaries[device].flags = 0;
	primaries[device].peers = 0;
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

static int check_peer(int device, int peer)
{
	const int n = tti_cuda_device_count();

	if (device >= 0 && device < n && peer >= 0 && peer < n && device != peer)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EDEVICE,
			     "peer access of device %d to device %d: two devices of 0..%d", device,
			     peer, n - 1);
}

int tti_cuda_primary_allow_peer(int device, int peer)
{
	const int bad = check_peer(device, peer);

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
	const int bad = check_peer(device, peer);

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
