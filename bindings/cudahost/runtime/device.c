/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices: which there are, which a thread uses, and what programs set of them. */
#include "engine/facts.h"
#include "engine/peers.h"
#include "engine/primary.h"
#include "runtime/runtime.h"

static _Thread_local bool has_chosen;

/* -- Which there are ---------------------------------------------------------------------- */

int tti_cudaGetDeviceCount(int *out)
{
	if (!out)
		return tti_cudart_null("cudaGetDeviceCount", "count");
	*out = tti_cuda_device_count();
	if (*out == 0)
		return tti_cudart_check_device("cudaGetDeviceCount", 0);
	tti_cuda_initialize();
	return 0;
}

int tti_cudaGetDevice(int *out)
{
	if (!out)
		return tti_cudart_null("cudaGetDevice", "device");
	*out = tti_cuda_device_current();
	return tti_cudart_check_device("cudaGetDevice", *out);
}

int tti_cudaSetDevice(int device)
{
	int error = tti_cudart_check_device("cudaSetDevice", device);

	if (!error)
		error = tti_cuda_device_set(device);
	if (error)
		return error;
	has_chosen = true;
	tti_cuda_primary_use();
	return 0;
}

/* How to wait (1, 2, 4), host memory that devices see (8), a large stack (16), the order of copies
 * (128). */
static int check_flags(const char *function, unsigned flags)
{
	const unsigned schedule = flags & 7;

	if (!(flags & ~(unsigned)(1 | 2 | 4 | 8 | 16 | 128)) && !(schedule & (schedule - 1)))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): %#x has flags that are not there, or two ways to wait: pass "
			     "those of cudaDeviceScheduleAuto and the like",
			     function, flags);
}

/* The only one of `flags` that has a meaning is cudaInitDeviceFlagsAreValid. */
int tti_cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	int error = tti_cudart_check_device("cudaInitDevice", device);

	if (!error && flags & 1)
		error = check_flags("cudaInitDevice", device_flags);
	if (error)
		return error;
	if (flags & 1)
		tti_cuda_primary_set_flags(device, device_flags);
	tti_cuda_primary_activate(device);
	return 0;
}

int tti_cudaSetValidDevices(int *devices, int n)
{
	if (n < 0 || (n > 0 && !devices))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaSetValidDevices(): %d devices at %p: pass as many as "
				     "there are at the address",
				     n, (void *)devices);
	for (int at = 0; at < n; at++) {
		const int error = tti_cudart_check_device("cudaSetValidDevices", devices[at]);

		if (error)
			return error;
	}
	return n > 0 && !has_chosen ? tti_cuda_device_set(devices[0]) : 0;
}

int tti_cudaChooseDevice(int *out, const void *props)
{
	if (!out || !props)
		return tti_cudart_null("cudaChooseDevice", out ? "properties" : "device");
	*out = 0;
	return tti_cudart_check_device("cudaChooseDevice", 0);
}

int tti_cudaDeviceGetPCIBusId(char *out, int nbytes, int device)
{
	const int error = tti_cudart_check_device("cudaDeviceGetPCIBusId", device);

	if (error)
		return error;
	if (!out || nbytes < TTI_CUDA_PCI_BYTES)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaDeviceGetPCIBusId(): %d bytes at %p: a bus id has %d",
				     nbytes, (void *)out, TTI_CUDA_PCI_BYTES);
	tti_cuda_facts_pci(device, out);
	return 0;
}

int tti_cudaDeviceGetByPCIBusId(int *out, const char *text)
{
	if (!out || !text)
		return tti_cudart_null("cudaDeviceGetByPCIBusId", out ? "bus id" : "device");
	return tti_cuda_facts_by_pci(text, out);
}

/* -- What programs set -------------------------------------------------------------------- */

int tti_cudaDeviceGetLimit(size_t *out, int limit)
{
	const int device = tti_cuda_device_current();
	const int error = tti_cudart_check_device("cudaDeviceGetLimit", device);

	if (error)
		return error;
	return out ? tti_cuda_limit_get(device, limit, out)
		   : tti_cudart_null("cudaDeviceGetLimit", "value");
}

int tti_cudaDeviceSetLimit(int limit, size_t value)
{
	const int device = tti_cuda_device_current();
	const int error = tti_cudart_check_device("cudaDeviceSetLimit", device);

	return error ? error : tti_cuda_limit_set(device, limit, value);
}

int tti_cudaGetDeviceFlags(unsigned *out)
{
	const int device = tti_cuda_device_current();
	const int error = tti_cudart_check_device("cudaGetDeviceFlags", device);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaGetDeviceFlags", "flags");
	*out = tti_cuda_primary_flags(device) | 8; /* memory of the host is mapped in any case */
	return 0;
}

int tti_cudaSetDeviceFlags(unsigned flags)
{
	const int device = tti_cuda_device_current();
	int error = tti_cudart_check_device("cudaSetDeviceFlags", device);

	if (!error)
		error = check_flags("cudaSetDeviceFlags", flags);
	if (!error)
		tti_cuda_primary_set_flags(device, flags);
	return error;
}

static int get_number(const char *function, int *out, int value)
{
	if (!out)
		return tti_cudart_null(function, "config");
	*out = value;
	return 0;
}

int tti_cudaDeviceGetCacheConfig(int *out)
{
	return get_number("cudaDeviceGetCacheConfig", out, 0);
}

int tti_cudaDeviceGetSharedMemConfig(int *out)
{
	return get_number("cudaDeviceGetSharedMemConfig", out, 1);
}

static int check_config(const char *function, int config, int most)
{
	if (config >= 0 && config <= most)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): there is no config %d: 0 to %d", function,
			     config, most);
}

int tti_cudaDeviceSetCacheConfig(int config)
{
	return check_config("cudaDeviceSetCacheConfig", config, 3);
}

int tti_cudaDeviceSetSharedMemConfig(int config)
{
	return check_config("cudaDeviceSetSharedMemConfig", config, 2);
}

#if TTI_CUDART_MAJOR == 12
int tti_cudaThreadGetLimit(size_t *out, int limit)
{
	return tti_cudaDeviceGetLimit(out, limit);
}

int tti_cudaThreadSetLimit(int limit, size_t value)
{
	return tti_cudaDeviceSetLimit(limit, value);
}

int tti_cudaThreadGetCacheConfig(int *out)
{
	return tti_cudaDeviceGetCacheConfig(out);
}

int tti_cudaThreadSetCacheConfig(int config)
{
	return tti_cudaDeviceSetCacheConfig(config);
}

int tti_cudaThreadSynchronize(void)
{
	return tti_cudaDeviceSynchronize();
}

int tti_cudaThreadExit(void)
{
	return tti_cudaDeviceReset();
}
#endif

/* -- Waiting ------------------------------------------------------------------------------ */

int tti_cudaDeviceSynchronize(void)
{
	const int device = tti_cuda_device_current();
	const int error = tti_cudart_check_device("cudaDeviceSynchronize", device);

	return error ? error : tti_cuda_device_synchronize(device);
}

/* What streams failed with is forgotten. */
int tti_cudaDeviceReset(void)
{
	const int device = tti_cuda_device_current();
	const int error = tti_cudart_check_device("cudaDeviceReset", device);

	if (error)
		return error;
	(void)tti_cuda_device_synchronize(device);
	tti_cuda_device_forget(device);
	tti_cuda_primary_reset(device);
	return 0;
}

int tti_cudaCtxResetPersistingL2Cache(void)
{
	return tti_cudart_check_device("cudaCtxResetPersistingL2Cache", tti_cuda_device_current());
}

int tti_cudaDeviceFlushGPUDirectRDMAWrites(int target, int scope)
{
	if (target == 0 && (scope == 100 || scope == 200))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "cudaDeviceFlushGPUDirectRDMAWrites(): target %d and scope %d: pass 0 "
			     "and 100 or 200",
			     target, scope);
}

/* -- Peers -------------------------------------------------------------------------------- */

static int check_peers(const char *function, int device, int peer)
{
	const int error = tti_cudart_check_device(function, device);

	return error ? error : tti_cudart_check_device(function, peer);
}

int tti_cudaDeviceCanAccessPeer(int *out, int device, int peer)
{
	const int error = check_peers("cudaDeviceCanAccessPeer", device, peer);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaDeviceCanAccessPeer", "answer");
	*out = device != peer && tti_cuda_peer_is_possible(device, peer);
	return 0;
}

int tti_cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	const int device = tti_cuda_device_current();
	const int error = check_peers("cudaDeviceEnablePeerAccess", device, peer);

	if (error)
		return error;
	if (flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaDeviceEnablePeerAccess(): flags are %#x: pass 0", flags);
	return tti_cuda_primary_allow_peer(device, peer);
}

int tti_cudaDeviceDisablePeerAccess(int peer)
{
	const int device = tti_cuda_device_current();
	const int error = check_peers("cudaDeviceDisablePeerAccess", device, peer);

	return error ? error : tti_cuda_primary_forbid_peer(device, peer);
}

int tti_cudaDeviceGetP2PAttribute(int *out, int attribute, int device, int peer)
{
	/* Rank of speed, access, atomics, access to arrays, some atomics alone. */
	static const int values[] = { 0, 1, 1, 0, 0 };
	const int n = (int)(sizeof(values) / sizeof(values[0]));
	const int error = check_peers("cudaDeviceGetP2PAttribute", device, peer);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaDeviceGetP2PAttribute", "value");
	if (device == peer)
		return tti_cuda_fail(TTI_CUDA_EDEVICE,
				     "cudaDeviceGetP2PAttribute(): both devices are %d: pass two",
				     device);
	if (attribute < 1 || attribute > n)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaDeviceGetP2PAttribute(): there is no attribute %d: 1 to "
				     "%d",
				     attribute, n);
	*out = values[attribute - 1] && tti_cuda_peer_is_possible(device, peer);
	return 0;
}
