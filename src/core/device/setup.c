/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/device.h"

#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/open.h"
#include "core/handle.h"
#include "core/init/peer_info.h"
#include "util/error.h"

/* Whether a rank asks for a device. Ranks decide by what all have gathered. */
static bool is_asked_for(const struct tti_peer_info *info, int n)
{
	for (int rank = 0; rank < n; rank++)
		if (info[rank].device != TTI_NO_DEVICE)
			return true;
	return false;
}

tutti_status tti_devices_begin(struct tti_comm *comm, const struct tti_peer_info *info)
{
	if (!is_asked_for(info, comm->n))
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"a rank asks for a device (config.device, TUTTI_CUDA_DEVICE), which this "
			"build cannot use");
}

tutti_status tti_devices_derive(struct tti_comm *comm)
{
	(void)comm;
	return TUTTI_OK;
}

int tti_device_ordinal(const struct tti_comm *comm)
{
	return comm->device ? comm->device->ordinal : TTI_NO_DEVICE;
}

static tutti_status find_device(struct tti_comm *comm, int *out)
{
	TTI_TRY(tti_comm_usable(comm));
	*out = tti_device_ordinal(comm);
	return TUTTI_OK;
}

tutti_status tutti_comm_device(tutti_comm_t handle, int *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "an int"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, find_device(comm, out));
}

void tti_device_close(struct tti_comm *comm)
{
	tti_device_free(comm->device);
	comm->device = NULL;
}
