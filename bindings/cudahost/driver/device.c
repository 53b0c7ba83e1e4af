/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "engine/facts.h"
#include "engine/memory.h"
#include "engine/peers.h"

int tti_driver_begin_device(CUdevice device)
{
	const int bad = tti_driver_begin();
	const int n = tti_cuda_device_count();

	if (bad)
		return bad;
	if (device < 0 || device >= n)
		return tti_cuda_fail(
			TTI_CUDA_EDEVICE,
			"device %d: there are 0..%d; TUTTI_CUDAHOST_GPUS says how many", device,
			n - 1);
	return TTI_CUDA_OK;
}

/* That and that there is room for the answer. */
static int begin(CUdevice device, const void *out, const char *what)
{
	const int bad = tti_driver_begin_device(device);

	return bad ? bad : tti_driver_need(out, what);
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	const int bad = begin(ordinal, out, __func__);

	if (!bad)
		*out = ordinal;
	return tti_driver_result(bad);
}

CUresult cuDeviceGetCount(int *out)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		*out = tti_cuda_device_count();
	return tti_driver_result(bad);
}

CUresult cuDeviceGetName(char *name, int nbytes, CUdevice device)
{
	const int bad = begin(device, name, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (nbytes < 1)
		return tti_driver_fail(TTI_CUDA_EINVAL, "cuDeviceGetName: room for %d bytes",
				       nbytes);
	snprintf(name, (size_t)nbytes, "%s", tti_cuda_facts_name());
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device)
{
	const int bad = begin(device, out, __func__);
	uint8_t uuid[TTI_CUDA_UUID_BYTES];

	if (bad)
		return tti_driver_result(bad);
	tti_cuda_facts_uuid(device, uuid);
	memcpy(out->bytes, uuid, sizeof(uuid));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
	return cuDeviceGetUuid(out, device);
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device)
{
	const int bad = begin(device, out, __func__);

	if (!bad)
		*out = tti_cuda_device_bytes();
	return tti_driver_result(bad);
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device)
{
	const int bad = begin(device, out, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_facts_attribute((int)attribute, device, out));
}

static int fact(int attribute, CUdevice device)
{
	int value = 0;

	return tti_cuda_facts_attribute(attribute, device, &value) ? 0 : value;
}

CUresult cuDeviceGetProperties(CUdevprop *out, CUdevice device)
{
	const int bad = begin(device, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	*out = (CUdevprop){
		.maxThreadsPerBlock = fact(1, device),
		.maxThreadsDim = { fact(2, device), fact(3, device), fact(4, device) },
		.maxGridSize = { fact(5, device), fact(6, device), fact(7, device) },
		.sharedMemPerBlock = fact(8, device),
		.totalConstantMemory = fact(9, device),
		.SIMDWidth = fact(10, device),
		.memPitch = fact(11, device),
		.regsPerBlock = fact(12, device),
		.clockRate = fact(13, device),
		.textureAlign = fact(14, device),
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	int bad = begin(device, major, __func__);

	if (!bad)
		bad = tti_driver_need(minor, __func__);
	if (bad)
		return tti_driver_result(bad);
	*major = TTI_CUDA_CAPABILITY_MAJOR;
	*minor = TTI_CUDA_CAPABILITY_MINOR;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *out, int nbytes, CUdevice device)
{
	const int bad = begin(device, out, __func__);
	char text[TTI_CUDA_PCI_BYTES];

	if (bad)
		return tti_driver_result(bad);
	tti_cuda_facts_pci(device, text);
	if (nbytes < (int)sizeof(text))
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuDeviceGetPCIBusId: room for %d bytes of %zu", nbytes,
				       sizeof(text));
	memcpy(out, text, sizeof(text));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_driver_need(text, __func__);
	return tti_driver_result(bad ? bad : tti_cuda_facts_by_pci(text, out));
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer)
{
	int bad = begin(device, out, __func__);

	if (!bad)
		bad = tti_driver_begin_device(peer);
	if (!bad)
		*out = device != peer && tti_cuda_peer_is_possible(device, peer);
	return tti_driver_result(bad);
}

CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute attribute, CUdevice from,
				 CUdevice to)
{
	int bad = begin(from, out, __func__);

	if (!bad)
		bad = tti_driver_begin_device(to);
	if (bad)
		return tti_driver_result(bad);
	if (from == to)
		return tti_driver_fail(TTI_CUDA_EDEVICE,
				       "cuDeviceGetP2PAttribute: device %d and itself", from);
	switch ((int)attribute) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*out = tti_cuda_peer_is_possible(from, to);
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: /* 0 is the best */
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
		*out = 0;
		return CUDA_SUCCESS;
	default:
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuDeviceGetP2PAttribute: attribute %d of 1..5",
				       (int)attribute);
	}
}

CUresult cuDeviceGetExecAffinitySupport(int *out, CUexecAffinityType type, CUdevice device)
{
	const int bad = begin(device, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuDeviceGetExecAffinitySupport: type %d, there is 0",
				       (int)type);
	*out = 0;
	return CUDA_SUCCESS;
}
