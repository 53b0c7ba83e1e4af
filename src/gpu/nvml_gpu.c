/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"
#include "util/error.h"

/* All that the driver says of one GPU. Only the handle and the bus id are required. All else
 * stays 0 if the driver does not answer, because it is old or the GPU lacks it. */

/* From this compute capability on, the state of a link is a field; the older call
 * does not know links that sleep. */
#define SM_LINK_STATE_FIELD 90

static void copy_text(char *to, size_t size, const char *from, size_t from_size)
{
	const size_t n = strnlen(from, from_size < size - 1 ? from_size : size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

/* Drivers before 396 leave busid empty and fill in the numbers. */
static void busid_text(const struct tti_nvml_pci *pci, char *out, size_t size)
{
	if (isxdigit((unsigned char)pci->busid[0]))
		copy_text(out, size, pci->busid, sizeof(pci->busid));
	else
		snprintf(out, size, "%04x:%02x:%02x.0", pci->domain, pci->bus & 0xff,
			 pci->device & 0x1f);
}

static int get_number(int (*get)(tti_nvml_dev, unsigned *), tti_nvml_dev dev)
{
	unsigned value = 0;

	if (!get || get(dev, &value) != TTI_NVML_SUCCESS || value > 1024)
		return 0;
	return (int)value;
}

/* Read a field that is a count, a state or a speed. false: the driver does not answer. */
static bool get_field(const struct tti_nvml *nvml, tti_nvml_dev dev, unsigned id, unsigned scope,
		      uint64_t *out)
{
	struct tti_nvml_field field = { .field = id, .scope = scope };

	if (!nvml->call.fields || nvml->call.fields(dev, 1, &field) != TTI_NVML_SUCCESS ||
	    field.rc != TTI_NVML_SUCCESS)
		return false;
	switch (field.type) {
	case TTI_NVML_TYPE_U32:
		*out = field.value.u32;
		return true;
	case TTI_NVML_TYPE_ULONG:
		*out = field.value.ulong;
		return true;
	case TTI_NVML_TYPE_U64:
		*out = field.value.u64;
		return true;
	case TTI_NVML_TYPE_I64:
		*out = (uint64_t)field.value.i64;
		return field.value.i64 >= 0;
	case TTI_NVML_TYPE_I32:
		*out = (uint64_t)field.value.i32;
		return field.value.i32 >= 0;
	case TTI_NVML_TYPE_U16:
		*out = field.value.u16;
		return true;
	default:
		return false;
	}
}

/* The driver numbers the revisions 1.0, 2.0, 2.2, 3.0, 3.1, 4.0 and so on. */
static int link_generation(unsigned version)
{
	static const int generations[] = { 0, 1, 2, 2, 3, 3 };

	if (version < sizeof(generations) / sizeof(generations[0]))
		return generations[version];
	return version < 100 ? (int)version - 2 : 0;
}

/* false: the GPU has no such link. */
static bool link_state(const struct tti_nvml *nvml, tti_nvml_dev dev, int sm, unsigned index,
		       bool *active_out)
{
	uint64_t state;
	int active;

	if (sm >= SM_LINK_STATE_FIELD &&
	    get_field(nvml, dev, TTI_NVML_FIELD_NVLINK_STATE, index, &state)) {
		*active_out = state != 0;
		return true;
	}
	if (!nvml->call.link_state ||
	    nvml->call.link_state(dev, index, &active) != TTI_NVML_SUCCESS)
		return false;
	*active_out = active != 0;
	return true;
}

static void ask_link_end(const struct tti_nvml *nvml, tti_nvml_dev dev, unsigned index,
			 struct tti_nvml_link *out)
{
	struct tti_nvml_pci pci = { .bus = 0 };
	int remote = TTI_NVML_REMOTE_UNKNOWN;

	if (nvml->call.link_pci && nvml->call.link_pci(dev, index, &pci) == TTI_NVML_SUCCESS)
		busid_text(&pci, out->peer, sizeof(out->peer));
	if (!nvml->call.link_remote ||
	    nvml->call.link_remote(dev, index, &remote) != TTI_NVML_SUCCESS)
		remote = TTI_NVML_REMOTE_UNKNOWN;
	switch (remote) {
	case TTI_NVML_REMOTE_GPU:
		out->remote = TTI_NVML_GPU;
		break;
	case TTI_NVML_REMOTE_CPU:
		out->remote = TTI_NVML_CPU;
		break;
	case TTI_NVML_REMOTE_SWITCH:
		out->remote = TTI_NVML_SWITCH;
		break;
	default:
		out->remote = TTI_NVML_OTHER;
		break;
	}
}

static void ask_links(const struct tti_nvml *nvml, tti_nvml_dev dev, struct tti_nvml_gpu *out)
{
	for (unsigned index = 0; index < TTI_NVML_LINKS; index++) {
		struct tti_nvml_link link = { .index = (int)index };
		unsigned value = 0;

		if (!link_state(nvml, dev, out->sm, index, &link.active))
			continue;
		/* An old driver does not answer. All its links are for memory of GPUs. */
		link.p2p = !nvml->call.link_capability ||
			   nvml->call.link_capability(dev, index, TTI_NVML_CAP_P2P, &value) !=
				   TTI_NVML_SUCCESS ||
			   value != 0;
		value = 0;
		if (nvml->call.link_version &&
		    nvml->call.link_version(dev, index, &value) == TTI_NVML_SUCCESS)
			link.version = link_generation(value);
		if (link.active)
			ask_link_end(nvml, dev, index, &link);
		out->links[out->nlinks++] = link;
	}
}

static void ask_c2c(const struct tti_nvml *nvml, tti_nvml_dev dev, struct tti_nvml_gpu *out)
{
	uint64_t count, state, mbps;

	if (!get_field(nvml, dev, TTI_NVML_FIELD_C2C_COUNT, 0, &count))
		return;
	for (unsigned link = 0; link < count && link < 1024; link++) {
		if (!get_field(nvml, dev, TTI_NVML_FIELD_C2C_STATE, link, &state) || state != 1 ||
		    !get_field(nvml, dev, TTI_NVML_FIELD_C2C_MBPS, link, &mbps) || mbps == 0 ||
		    mbps > 100 * 1000 * 1000)
			continue;
		out->c2c_links++;
		/* The links are equal; if one trained slower, all count as that one. */
		if (out->c2c_gbps == 0 || (double)mbps / 1000 < out->c2c_gbps)
			out->c2c_gbps = (double)mbps / 1000;
	}
}

static void ask_fabric(const struct tti_nvml *nvml, tti_nvml_dev dev, struct tti_nvml_gpu *out)
{
	static const unsigned char none[TTI_NVML_UUID_BYTES];
	struct tti_nvml_fabric2 fabric = { .version = TTI_NVML_FABRIC2_VERSION };
	struct tti_nvml_fabric1 old = { .state = TTI_NVML_FABRIC_NONE };
	const unsigned char *const id = fabric.cluster;

	if (!nvml->call.fabric2 || nvml->call.fabric2(dev, &fabric) != TTI_NVML_SUCCESS) {
		if (!nvml->call.fabric1 || nvml->call.fabric1(dev, &old) != TTI_NVML_SUCCESS)
			return;
		memcpy(fabric.cluster, old.cluster, sizeof(fabric.cluster));
		fabric.rc = old.rc;
		fabric.clique = old.clique;
		fabric.state = old.state;
	}
	/* A fabric inside one machine has no cluster. */
	if (fabric.state == TTI_NVML_FABRIC_NONE || !memcmp(id, none, sizeof(none)))
		return;
	snprintf(out->fabric_uuid, sizeof(out->fabric_uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0],
		 id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
		 id[12], id[13], id[14], id[15]);
	out->fabric_clique = fabric.clique;
	out->fabric_ready =
		fabric.state == TTI_NVML_FABRIC_COMPLETED && fabric.rc == TTI_NVML_SUCCESS;
}

/* The compute capability. A GPU that fell off the bus still has a handle and an address, but
 * does not answer this. */
static int ask_capability(const struct tti_nvml *nvml, tti_nvml_dev dev, struct tti_nvml_gpu *out)
{
	int major = 0, minor = 0;
	int rc;

	if (!nvml->call.capability)
		return TTI_NVML_SUCCESS;
	rc = nvml->call.capability(dev, &major, &minor);
	if (rc == TTI_NVML_SUCCESS && major > 0 && major < 1000 && minor >= 0 && minor < 10)
		out->sm = 10 * major + minor;
	return rc == TTI_NVML_GPU_IS_LOST || rc == TTI_NVML_RESET_REQUIRED ? rc : TTI_NVML_SUCCESS;
}

static void ask_rest(const struct tti_nvml *nvml, tti_nvml_dev dev, struct tti_nvml_gpu *out)
{
	struct tti_nvml_memory memory = { .total = 0 };
	unsigned mig = 0, pending;
	int persistent = 0;

	if (!nvml->call.name || nvml->call.name(dev, out->name, sizeof(out->name)))
		out->name[0] = '\0';
	if (!nvml->call.uuid || nvml->call.uuid(dev, out->uuid, sizeof(out->uuid)))
		out->uuid[0] = '\0';
	out->name[sizeof(out->name) - 1] = '\0';
	out->uuid[sizeof(out->uuid) - 1] = '\0';
	if (nvml->call.memory && nvml->call.memory(dev, &memory) == TTI_NVML_SUCCESS)
		out->mem_bytes = memory.total;
	if (nvml->call.mig && nvml->call.mig(dev, &mig, &pending) == TTI_NVML_SUCCESS)
		out->mig = mig != 0;
	out->persistent = -1;
	if (nvml->call.persistence && nvml->call.persistence(dev, &persistent) == TTI_NVML_SUCCESS)
		out->persistent = persistent != 0;
	out->pci_gen = get_number(nvml->call.gen, dev);
	out->pci_width = get_number(nvml->call.width, dev);
	out->max_pci_gen = get_number(nvml->call.max_gen, dev);
	out->max_pci_width = get_number(nvml->call.max_width, dev);
}

tutti_status tti_nvml_gpu(const struct tti_nvml *nvml, int index, struct tti_nvml_gpu *out)
{
	struct tti_nvml_pci pci = { .bus = 0 };
	tti_nvml_dev dev;
	int rc;

	memset(out, 0, sizeof(*out));
	out->index = index;
	if (index < 0 || (unsigned)index >= nvml->count)
		return tti_fail(TUTTI_EINVAL, "GPU %d: the driver knows %u GPUs", index,
				nvml->count);
	rc = nvml->call.handle((unsigned)index, &dev);
	if (rc != TTI_NVML_SUCCESS)
		return tti_fail_quiet(TUTTI_ESYS, "GPU %d of driver %s: %s", index, nvml->driver,
				      nvml->call.error_string(rc));
	rc = nvml->call.pci    ? nvml->call.pci(dev, &pci)
	     : nvml->call.pci2 ? nvml->call.pci2(dev, &pci)
			       : TTI_NVML_NOT_SUPPORTED;
	if (rc != TTI_NVML_SUCCESS)
		return tti_fail_quiet(TUTTI_ESYS, "GPU %d of driver %s has no PCI address: %s",
				      index, nvml->driver, nvml->call.error_string(rc));
	busid_text(&pci, out->busid, sizeof(out->busid));
	rc = ask_capability(nvml, dev, out);
	if (rc != TTI_NVML_SUCCESS)
		return tti_fail_quiet(TUTTI_ESYS, "GPU %d (%s) of driver %s: %s", index, out->busid,
				      nvml->driver, nvml->call.error_string(rc));
	ask_rest(nvml, dev, out);
	ask_links(nvml, dev, out);
	ask_c2c(nvml, dev, out);
	ask_fabric(nvml, dev, out);
	return TUTTI_OK;
}
