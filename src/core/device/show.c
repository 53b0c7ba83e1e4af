/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/device/facts.h"
#include "core/device/lend.h"
#include "core/handle.h"
#include "tutti/inspect.h"
#include "util/error.h"
#include "util/strbuf.h"

/* What is said of GPUs to people, and the memory that a communicator has. */

/* Lists of ranks are cut here. */
#define MOST_RANKS 64

static void add_ways(const struct tti_device *device, enum tti_device_way way, const char *what,
		     struct tti_strbuf *out)
{
	int n = 0;

	for (int peer = 0; peer < device->n; peer++) {
		if (device->peers[peer].way != way)
			continue;
		if (n++ == 0)
			tti_strbuf_addf(out, "; %s ranks", what);
		if (n <= MOST_RANKS)
			tti_strbuf_addf(out, " %d", peer);
	}
	if (n > MOST_RANKS)
		tti_strbuf_addf(out, " ... (%d)", n);
}

static void add_own(const struct tti_device *device, struct tti_strbuf *out)
{
	tti_strbuf_addf(out, "rank %d has GPU %d", device->rank, device->ordinal);
	add_ways(device, TTI_DEVICE_MAPPED, "it reaches those of", out);
	add_ways(device, TTI_DEVICE_PINNED, "messages go by the host to", out);
	tti_strbuf_add(out, "\n");
}

static void add_lent(size_t n, struct tti_strbuf *out)
{
	tti_strbuf_addf(out,
			"kernels read and write registered memory of all ranks where it lies; %zu "
			"allocation%s of this rank %s lent to the others\n",
			n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

static void add_refused(const struct tti_devices *devices, int n, struct tti_strbuf *out)
{
	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++)
			if (tti_devices_is_refused(devices, a, b))
				tti_strbuf_addf(out,
						"the link between the GPUs of ranks %d and %d was "
						"refused: what one wrote did not arrive at the "
						"other\n",
						a, b);
}

tutti_status tti_devices_show(const struct tti_comm *comm, struct tti_strbuf *out)
{
	const struct tti_devices *devices = comm->devices;

	if (!devices)
		return TUTTI_OK;
	tti_strbuf_addf(out,
			"%d of %d ranks have GPUs; kernels of %u blocks, %u slots of %u bytes for "
			"each\n",
			devices->ndevices, comm->n, devices->shape.nblocks, devices->shape.nslots,
			devices->shape.slot_bytes);
	if (comm->device)
		add_own(comm->device, out);
	if (devices->all_mapped && comm->n > 1)
		add_lent(tti_lending_count(comm), out);
	add_refused(devices, comm->n, out);
	return out->failed ? tti_fail(TUTTI_ENOMEM, "GPUs as text: out of memory") : TUTTI_OK;
}

static tutti_status find_memory(struct tti_comm *comm, tutti_memory_use *out)
{
	tutti_memory_use use = { .size = out->size };

	if (out->size < sizeof(size_t) || out->size > 65536)
		return tti_fail(TUTTI_EINVAL,
				"a struct tutti_memory_use of %zu bytes: set its size field to "
				"sizeof(struct tutti_memory_use)",
				out->size);
	TTI_TRY(tti_comm_usable(comm));
	if (comm->device) {
		use.device_bytes = atomic_load(&comm->device->device_bytes);
		use.pinned_bytes = atomic_load(&comm->device->pinned_bytes);
	}
	memset(out, 0, use.size);
	memcpy(out, &use, use.size < sizeof(use) ? use.size : sizeof(use));
	return TUTTI_OK;
}

tutti_status tutti_comm_memory(tutti_comm_t handle, tutti_memory_use *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_memory_use"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, find_memory(comm, out));
}
