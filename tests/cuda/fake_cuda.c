/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries that are loaded as CUDA's driver and cannot be used; and one of four devices that can be
 * asked what they are, of which only two reach each other (FAKE_APART). */
#include <stdio.h>
#include <string.h>

#include "gpu/cuda_abi.h"

#pragma GCC visibility push(default)

#if defined(FAKE_NONE)

/* One that has nothing of CUDA. */
int tti_fake_cuda_none(void);
int tti_fake_cuda_none(void)
{
	return 0;
}

#else

int cuInit(unsigned flags);
int cuDriverGetVersion(int *out);
int cuDeviceGetCount(int *out);
int cuGetErrorName(int rc, const char **out);
int cuGetErrorString(int rc, const char **out);

int cuInit(unsigned flags)
{
	(void)flags;
#ifdef FAKE_BROKEN
	return TTI_CUDA_SYSTEM_NOT_READY;
#else
	return TTI_CUDA_SUCCESS;
#endif
}

int cuDriverGetVersion(int *out)
{
#ifdef FAKE_APART
	*out = 13000;
#else
	*out = 11080;
#endif
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetCount(int *out)
{
	*out = 4;
	return TTI_CUDA_SUCCESS;
}

int cuGetErrorName(int rc, const char **out)
{
	*out = rc == TTI_CUDA_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR";
	return TTI_CUDA_SUCCESS;
}

int cuGetErrorString(int rc, const char **out)
{
	(void)rc;
	*out = "system not yet initialized";
	return TTI_CUDA_SUCCESS;
}

#ifdef FAKE_APART

int cuDeviceGet(tti_cuda_device *out, int ordinal);
int cuDeviceGetName(char *out, int size, tti_cuda_device device);
int cuDeviceGetUuid_v2(unsigned char out[16], tti_cuda_device device);
int cuDeviceGetPCIBusId(char *out, int size, tti_cuda_device device);
int cuDeviceTotalMem_v2(size_t *out, tti_cuda_device device);
int cuDeviceGetAttribute(int *out, int attribute, tti_cuda_device device);
int cuDeviceCanAccessPeer(int *out, tti_cuda_device from, tti_cuda_device to);
int cuDeviceGetP2PAttribute(int *out, int attribute, tti_cuda_device from, tti_cuda_device to);

int cuDeviceGet(tti_cuda_device *out, int ordinal)
{
	*out = ordinal;
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetName(char *out, int size, tti_cuda_device device)
{
	snprintf(out, (size_t)size, "Fake %d", device);
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetUuid_v2(unsigned char out[16], tti_cuda_device device)
{
	memset(out, 0xf0 + device, 16);
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetPCIBusId(char *out, int size, tti_cuda_device device)
{
	snprintf(out, (size_t)size, "0000:%02X:00.0", 0x3b + device);
	return TTI_CUDA_SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *out, tti_cuda_device device)
{
	(void)device;
	*out = (size_t)80 << 30;
	return TTI_CUDA_SUCCESS;
}

enum {
#define X(field, number) ATTRIBUTE_##field = (number),
	TTI_CUDA_ATTRIBUTE_MAP(X)
#undef X
};

/* Device 1 is for one process, 2 is for none, 3 is old; all are shared by older handles but 0. */
int cuDeviceGetAttribute(int *out, int attribute, tti_cuda_device device)
{
	*out = 0;
	switch (attribute) {
	case ATTRIBUTE_capability_major:
		*out = device == 3 ? 6 : 9;
		break;
	case ATTRIBUTE_compute_mode:
		*out = device == 1   ? TTI_CUDA_MODE_EXCLUSIVE
		       : device == 2 ? TTI_CUDA_MODE_PROHIBITED
				     : 0;
		break;
	case ATTRIBUTE_vmm:
	case ATTRIBUTE_fd:
	case ATTRIBUTE_fabric:
	case ATTRIBUTE_mps:
		*out = device == 0;
		break;
	default:
		break;
	}
	return TTI_CUDA_SUCCESS;
}

int cuDeviceCanAccessPeer(int *out, tti_cuda_device from, tti_cuda_device to)
{
	*out = from < 2 && to < 2;
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetP2PAttribute(int *out, int attribute, tti_cuda_device from, tti_cuda_device to)
{
	(void)attribute, (void)from, (void)to;
	*out = 0;
	return TTI_CUDA_SUCCESS;
}

#define cuDeviceGet             tti_fake_get
#define cuDeviceGetName         tti_fake_device_name
#define cuDeviceGetUuid_v2      tti_fake_uuid
#define cuDeviceGetPCIBusId     tti_fake_busid
#define cuDeviceTotalMem_v2     tti_fake_memory
#define cuDeviceGetAttribute    tti_fake_attribute
#define cuDeviceCanAccessPeer   tti_fake_access
#define cuDeviceGetP2PAttribute tti_fake_p2p

#endif

#ifndef FAKE_FEW
/* All others are there, and are not called. */
#define cuInit             tti_fake_init
#define cuDriverGetVersion tti_fake_version
#define cuDeviceGetCount   tti_fake_count
#define cuGetErrorName     tti_fake_name
#define cuGetErrorString   tti_fake_text
#define X(field, symbol, arguments)            \
	int symbol(void);                      \
	int symbol(void)                       \
	{                                      \
		return TTI_CUDA_NOT_SUPPORTED; \
	}
#define Y(field, symbol, arguments) X(field, symbol, arguments)
TTI_CUDA_FUNCTION_MAP(Y)
#endif

#endif
