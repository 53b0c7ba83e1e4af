/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"

/* Our words for NVIDIA's layouts: the sizes that 64-bit drivers use, and all of it
 * beside the public header where there is one. */

_Static_assert(sizeof(struct tti_nvml_pci) == 68, "");
_Static_assert(offsetof(struct tti_nvml_pci, busid) == 36, "");
_Static_assert(sizeof(struct tti_nvml_field) == 40, "");
_Static_assert(offsetof(struct tti_nvml_field, rc) == 28, "");
_Static_assert(offsetof(struct tti_nvml_field, value) == 32, "");
_Static_assert(sizeof(struct tti_nvml_memory) == 24, "");
_Static_assert(sizeof(struct tti_nvml_fabric1) == 28, "");
_Static_assert(offsetof(struct tti_nvml_fabric1, clique) == 20, "");
_Static_assert(sizeof(struct tti_nvml_fabric2) == 36, "");
_Static_assert(TTI_NVML_FABRIC2_VERSION == 0x02000024, "");

#ifdef HAVE_NVML_H
#include <nvml.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, field, theirs, their_field)                                             \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, their_field) &&                 \
			       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field), \
		       #theirs "." #their_field)
#define SAME(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

SAME_SIZE(tti_nvml_dev, nvmlDevice_t);
SAME_SIZE(struct tti_nvml_pci, nvmlPciInfo_t);
SAME_PLACE(struct tti_nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_PLACE(struct tti_nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_PLACE(struct tti_nvml_pci, device, nvmlPciInfo_t, device);
SAME_PLACE(struct tti_nvml_pci, device_id, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(struct tti_nvml_pci, subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_PLACE(struct tti_nvml_pci, busid, nvmlPciInfo_t, busId);
SAME_SIZE(struct tti_nvml_field, nvmlFieldValue_t);
SAME_PLACE(struct tti_nvml_field, field, nvmlFieldValue_t, fieldId);
SAME_PLACE(struct tti_nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(struct tti_nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(struct tti_nvml_field, rc, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(struct tti_nvml_field, value, nvmlFieldValue_t, value);
SAME_SIZE(struct tti_nvml_memory, nvmlMemory_t);
SAME_PLACE(struct tti_nvml_memory, total, nvmlMemory_t, total);
SAME_SIZE(struct tti_nvml_fabric1, nvmlGpuFabricInfo_t);
SAME_PLACE(struct tti_nvml_fabric1, cluster, nvmlGpuFabricInfo_t, clusterUuid);
SAME_PLACE(struct tti_nvml_fabric1, rc, nvmlGpuFabricInfo_t, status);
SAME_PLACE(struct tti_nvml_fabric1, clique, nvmlGpuFabricInfo_t, cliqueId);
SAME_PLACE(struct tti_nvml_fabric1, state, nvmlGpuFabricInfo_t, state);
SAME(TTI_NVML_SUCCESS, NVML_SUCCESS);
SAME(TTI_NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(TTI_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(TTI_NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(TTI_NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(TTI_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(TTI_NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(TTI_NVML_TYPE_F64, NVML_VALUE_TYPE_DOUBLE);
SAME(TTI_NVML_TYPE_U32, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(TTI_NVML_TYPE_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME(TTI_NVML_TYPE_U64, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(TTI_NVML_TYPE_I64, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME(TTI_NVML_FABRIC_NOT_STARTED, NVML_GPU_FABRIC_STATE_NOT_STARTED);
SAME(TTI_NVML_FABRIC_COMPLETED, NVML_GPU_FABRIC_STATE_COMPLETED);
SAME(TTI_NVML_CAP_P2P, NVML_NVLINK_CAP_P2P_SUPPORTED);
SAME(TTI_NVML_REMOTE_GPU, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME(TTI_NVML_REMOTE_CPU, NVML_NVLINK_DEVICE_TYPE_IBMNPU);
SAME(TTI_NVML_REMOTE_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME(TTI_NVML_REMOTE_UNKNOWN, NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
SAME(TTI_NVML_P2P_READ, NVML_P2P_CAPS_INDEX_READ);
SAME(TTI_NVML_P2P_WRITE, NVML_P2P_CAPS_INDEX_WRITE);
SAME(TTI_NVML_P2P_OK, NVML_P2P_STATUS_OK);
SAME(TTI_NVML_P2P_CHIPSET, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
SAME(TTI_NVML_P2P_GPU, NVML_P2P_STATUS_GPU_NOT_SUPPORTED);
SAME(TTI_NVML_P2P_IOH, NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED);
SAME(TTI_NVML_P2P_REGKEY, NVML_P2P_STATUS_DISABLED_BY_REGKEY);
SAME(TTI_NVML_P2P_NOT_SUPPORTED, NVML_P2P_STATUS_NOT_SUPPORTED);
SAME(TTI_NVML_P2P_UNKNOWN, NVML_P2P_STATUS_UNKNOWN);

/* What older headers do not have. */
#ifdef NVML_FI_DEV_NVLINK_GET_STATE
SAME(TTI_NVML_FIELD_NVLINK_STATE, NVML_FI_DEV_NVLINK_GET_STATE);
#endif
#ifdef NVML_FI_DEV_C2C_LINK_COUNT
SAME(TTI_NVML_FIELD_C2C_COUNT, NVML_FI_DEV_C2C_LINK_COUNT);
SAME(TTI_NVML_FIELD_C2C_STATE, NVML_FI_DEV_C2C_LINK_GET_STATUS);
SAME(TTI_NVML_FIELD_C2C_MBPS, NVML_FI_DEV_C2C_LINK_GET_MAX_BW);
#endif
#ifdef nvmlGpuFabricInfo_v2
SAME(TTI_NVML_FABRIC2_VERSION, nvmlGpuFabricInfo_v2);
SAME_PLACE(struct tti_nvml_fabric2, cluster, nvmlGpuFabricInfo_v2_t, clusterUuid);
SAME_PLACE(struct tti_nvml_fabric2, rc, nvmlGpuFabricInfo_v2_t, status);
SAME_PLACE(struct tti_nvml_fabric2, clique, nvmlGpuFabricInfo_v2_t, cliqueId);
SAME_PLACE(struct tti_nvml_fabric2, state, nvmlGpuFabricInfo_v2_t, state);
#endif
#endif

/* A library that answers more links than the interface has would be cut. */
static void there_is_room_for_the_links(void **state)
{
	(void)state;
#ifdef HAVE_NVML_H
	assert_true(TTI_NVML_LINKS >= NVML_NVLINK_MAX_LINKS);
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_room_for_the_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
