/* SPDX-License-Identifier: BSD-3-Clause */

/* A management library of GPUs that are not there. The file that FAKE_NVML names
 * describes them, read at each nvmlInit_v2(); a # begins a comment:
 *
 *     init 9                       what nvmlInit_v2() returns
 *     driver 535.104.05
 *     gpu 00000000:07:00.0 sm=80 gen=4/1 width=16/16 gib=80 name=A100
 *             mig, lost, persistent=0|1, handle=RC, c2c=COUNTxMBPS, fabric=UUID/CLIQUE/STATE/RC
 *     link 0-1 switch 00000000:C5:00.0 [down|sleep] [nop2p]      of the GPU above
 *     nop2p 0 1 3                  GPU 0 may not access 1's memory: status 3
 *
 * With FAKE_NVML_OLD it lacks what drivers before 396 did not have. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml_abi.h"

#define GPUS  64
#define LINKS 36
#define API   __attribute__((visibility("default")))

struct fake_link {
	bool there, active, sleeps, p2p;
	int remote;
	char peer[32];
};

struct fake_gpu {
	char busid[32], name[64];
	int sm, handle_rc;
	unsigned max_gen, gen, max_width, width, gib;
	bool mig, lost, says_persistent;
	unsigned persistent;
	unsigned c2c_links, c2c_mbps;
	unsigned char cluster[TTI_NVML_UUID_BYTES];
	unsigned clique, fabric_state, fabric_rc;
	struct fake_link links[LINKS];
	unsigned char p2p[GPUS];
};

static struct {
	int init_rc;
	char driver[64];
	unsigned ngpus;
	struct fake_gpu gpus[GPUS];
} machine;

static void read_fabric(struct fake_gpu *gpu, const char *text)
{
	size_t n = 0;

	while (n < TTI_NVML_UUID_BYTES && sscanf(text, "%2hhx", &gpu->cluster[n]) == 1) {
		text += 2;
		n++;
	}
	sscanf(text, "/%u/%u/%u", &gpu->clique, &gpu->fabric_state, &gpu->fabric_rc);
}

static void read_gpu(char *rest)
{
	struct fake_gpu *gpu = &machine.gpus[machine.ngpus++];
	char *save = NULL;
	const char *word = strtok_r(rest, " \n", &save);

	snprintf(gpu->busid, sizeof(gpu->busid), "%s", word ? word : "");
	while ((word = strtok_r(NULL, " \n", &save))) {
		if (!strcmp(word, "mig"))
			gpu->mig = true;
		else if (!strcmp(word, "lost"))
			gpu->lost = true;
		else if (sscanf(word, "persistent=%u", &gpu->persistent) == 1)
			gpu->says_persistent = true;
		else if (!strncmp(word, "fabric=", 7))
			read_fabric(gpu, word + 7);
		else if (sscanf(word, "sm=%d", &gpu->sm) != 1 &&
			 sscanf(word, "gen=%u/%u", &gpu->max_gen, &gpu->gen) < 1 &&
			 sscanf(word, "width=%u/%u", &gpu->max_width, &gpu->width) < 1 &&
			 sscanf(word, "gib=%u", &gpu->gib) != 1 &&
			 sscanf(word, "name=%63s", gpu->name) != 1 &&
			 sscanf(word, "handle=%d", &gpu->handle_rc) != 1 &&
			 sscanf(word, "c2c=%ux%u", &gpu->c2c_links, &gpu->c2c_mbps) < 2)
			fprintf(stderr, "fake NVML: what is %s?\n", word);
	}
}

static int remote_type(const char *text)
{
	if (!strcmp(text, "gpu"))
		return TTI_NVML_REMOTE_GPU;
	if (!strcmp(text, "switch"))
		return TTI_NVML_REMOTE_SWITCH;
	return !strcmp(text, "cpu") ? TTI_NVML_REMOTE_CPU : TTI_NVML_REMOTE_UNKNOWN;
}

static void read_links(struct fake_gpu *gpu, const char *rest)
{
	char remote[16] = "", peer[32] = "";
	unsigned first = 0, last = 0;

	if (sscanf(rest, "%u-%u %15s %31s", &first, &last, remote, peer) < 2) {
		sscanf(rest, "%u %15s %31s", &first, remote, peer);
		last = first;
	}
	for (unsigned i = first; i <= last && i < LINKS; i++) {
		struct fake_link *link = &gpu->links[i];

		link->there = true;
		link->active = !strstr(rest, " down");
		link->sleeps = strstr(rest, " sleep") != NULL;
		link->p2p = !strstr(rest, " nop2p");
		link->remote = remote_type(remote);
		memcpy(link->peer, peer, sizeof(peer));
	}
}

static void read_line(char *line)
{
	unsigned a, b, status;

	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t");
	if (!strncmp(line, "gpu ", 4) && machine.ngpus < GPUS)
		read_gpu(line + 4);
	else if (!strncmp(line, "link ", 5) && machine.ngpus > 0)
		read_links(&machine.gpus[machine.ngpus - 1], line + 5);
	else if (sscanf(line, "nop2p %u %u %u", &a, &b, &status) == 3 && a < GPUS && b < GPUS)
		machine.gpus[a].p2p[b] = (unsigned char)status;
	else if (sscanf(line, "driver %63s", machine.driver) != 1 &&
		 sscanf(line, "init %d", &machine.init_rc) != 1 && *line)
		fprintf(stderr, "fake NVML: what is \"%s\"?\n", line);
}

static struct fake_gpu *of(tti_nvml_dev dev)
{
	return dev;
}

/* -- The interface ---------------------------------------------------------------- */

#define X(needed, result, field, symbol, arguments) API result symbol arguments;
TTI_NVML_FUNCTION_MAP(X)
#undef X

int nvmlInit_v2(void)
{
	const char *const path = getenv("FAKE_NVML");
	FILE *const file = path ? fopen(path, "re") : NULL;
	char line[512];

	memset(&machine, 0, sizeof(machine));
	if (!file)
		return TTI_NVML_DRIVER_NOT_LOADED;
	while (fgets(line, sizeof(line), file))
		read_line(line);
	fclose(file);
	return machine.init_rc;
}

int nvmlShutdown(void)
{
	return TTI_NVML_SUCCESS;
}

const char *nvmlErrorString(int rc)
{
	switch (rc) {
	case TTI_NVML_SUCCESS:
		return "Success";
	case TTI_NVML_NOT_SUPPORTED:
		return "Not Supported";
	case TTI_NVML_NO_PERMISSION:
		return "Insufficient Permissions";
	case TTI_NVML_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case TTI_NVML_GPU_IS_LOST:
		return "GPU is lost";
	default:
		return "Unknown Error";
	}
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
	*out = machine.ngpus;
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, tti_nvml_dev *out)
{
	if (index >= machine.ngpus)
		return TTI_NVML_INVALID_ARGUMENT;
	*out = &machine.gpus[index];
	return machine.gpus[index].handle_rc;
}

int nvmlSystemGetDriverVersion(char *buf, unsigned size)
{
	snprintf(buf, size, "%s", machine.driver);
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetName(tti_nvml_dev dev, char *buf, unsigned size)
{
	snprintf(buf, size, "%s", of(dev)->name);
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetUUID(tti_nvml_dev dev, char *buf, unsigned size)
{
	snprintf(buf, size, "GPU-%s", of(dev)->busid);
	return TTI_NVML_SUCCESS;
}

/* Before 396: numbers, and a bus id only of 16 characters. */
int nvmlDeviceGetPciInfo_v2(tti_nvml_dev dev, struct tti_nvml_pci *out)
{
	return sscanf(of(dev)->busid, "%x:%x:%x", &out->domain, &out->bus, &out->device) == 3
		       ? TTI_NVML_SUCCESS
		       : TTI_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCudaComputeCapability(tti_nvml_dev dev, int *major_out, int *minor_out)
{
	*major_out = of(dev)->sm / 10;
	*minor_out = of(dev)->sm % 10;
	return of(dev)->lost ? TTI_NVML_GPU_IS_LOST : TTI_NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(tti_nvml_dev dev, struct tti_nvml_memory *out)
{
	out->total = (unsigned long long)of(dev)->gib << 30;
	return TTI_NVML_SUCCESS;
}

static int answer(unsigned value, unsigned *out)
{
	*out = value;
	return value ? TTI_NVML_SUCCESS : TTI_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrPcieLinkGeneration(tti_nvml_dev dev, unsigned *out)
{
	return answer(of(dev)->gen, out);
}

int nvmlDeviceGetCurrPcieLinkWidth(tti_nvml_dev dev, unsigned *out)
{
	return answer(of(dev)->width, out);
}

int nvmlDeviceGetMaxPcieLinkGeneration(tti_nvml_dev dev, unsigned *out)
{
	return answer(of(dev)->max_gen, out);
}

int nvmlDeviceGetMaxPcieLinkWidth(tti_nvml_dev dev, unsigned *out)
{
	return answer(of(dev)->max_width, out);
}

static struct fake_link *link_of(tti_nvml_dev dev, unsigned link)
{
	return link < LINKS && of(dev)->links[link].there ? &of(dev)->links[link] : NULL;
}

int nvmlDeviceGetNvLinkState(tti_nvml_dev dev, unsigned link, int *active_out)
{
	const struct fake_link *const found = link_of(dev, link);

	if (!found)
		return TTI_NVML_NOT_SUPPORTED;
	*active_out = found->active && !found->sleeps;
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(tti_nvml_dev dev, unsigned link, unsigned *out)
{
	const int sm = of(dev)->sm;

	*out = sm < 70 ? 1 : sm < 80 ? 2 : sm < 90 ? 4 : sm < 100 ? 6 : 7;
	return link_of(dev, link) ? TTI_NVML_SUCCESS : TTI_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkCapability(tti_nvml_dev dev, unsigned link, int capability, unsigned *out)
{
	const struct fake_link *const found = link_of(dev, link);

	if (!found || capability != TTI_NVML_CAP_P2P)
		return TTI_NVML_NOT_SUPPORTED;
	*out = found->p2p;
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(tti_nvml_dev dev, unsigned link, struct tti_nvml_pci *out)
{
	const struct fake_link *const found = link_of(dev, link);

	if (!found || !found->active)
		return TTI_NVML_NOT_SUPPORTED;
	memcpy(out->busid, found->peer, sizeof(out->busid));
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetP2PStatus(tti_nvml_dev a, tti_nvml_dev b, int capability, int *out)
{
	const size_t peer = (size_t)(of(b) - machine.gpus);

	*out = capability == TTI_NVML_P2P_READ || capability == TTI_NVML_P2P_WRITE
		       ? of(a)->p2p[peer]
		       : TTI_NVML_P2P_UNKNOWN;
	return TTI_NVML_SUCCESS;
}

#ifndef FAKE_NVML_OLD

int nvmlDeviceGetPciInfo_v3(tti_nvml_dev dev, struct tti_nvml_pci *out)
{
	memcpy(out->busid, of(dev)->busid, sizeof(out->busid));
	return nvmlDeviceGetPciInfo_v2(dev, out);
}

int nvmlDeviceGetMigMode(tti_nvml_dev dev, unsigned *now_out, unsigned *pending_out)
{
	*now_out = *pending_out = of(dev)->mig;
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetPersistenceMode(tti_nvml_dev dev, int *on_out)
{
	*on_out = (int)of(dev)->persistent;
	return of(dev)->says_persistent ? TTI_NVML_SUCCESS : TTI_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(tti_nvml_dev dev, unsigned link, int *out)
{
	const struct fake_link *const found = link_of(dev, link);

	if (!found || !found->active)
		return TTI_NVML_NOT_SUPPORTED;
	*out = found->remote;
	return TTI_NVML_SUCCESS;
}

static int field_value(struct fake_gpu *gpu, struct tti_nvml_field *field)
{
	field->type = TTI_NVML_TYPE_U32;
	switch (field->field) {
	case TTI_NVML_FIELD_NVLINK_STATE:
		if (!link_of(gpu, field->scope))
			return TTI_NVML_NOT_SUPPORTED;
		field->value.u32 = gpu->links[field->scope].sleeps
					   ? 2
					   : (unsigned)gpu->links[field->scope].active;
		return TTI_NVML_SUCCESS;
	case TTI_NVML_FIELD_C2C_COUNT:
		return answer(gpu->c2c_links, &field->value.u32);
	case TTI_NVML_FIELD_C2C_STATE:
		field->value.u32 = field->scope < gpu->c2c_links;
		return TTI_NVML_SUCCESS;
	case TTI_NVML_FIELD_C2C_MBPS:
		field->type = TTI_NVML_TYPE_U64;
		field->value.u64 = gpu->c2c_mbps;
		return TTI_NVML_SUCCESS;
	default:
		return TTI_NVML_INVALID_ARGUMENT;
	}
}

int nvmlDeviceGetFieldValues(tti_nvml_dev dev, int n, struct tti_nvml_field *fields)
{
	for (int i = 0; i < n; i++)
		fields[i].rc = field_value(of(dev), &fields[i]);
	return TTI_NVML_SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(tti_nvml_dev dev, struct tti_nvml_fabric1 *out)
{
	memcpy(out->cluster, of(dev)->cluster, sizeof(out->cluster));
	out->rc = (int)of(dev)->fabric_rc;
	out->clique = of(dev)->clique;
	out->state = (unsigned char)of(dev)->fabric_state;
	return of(dev)->sm >= 90 ? TTI_NVML_SUCCESS : TTI_NVML_NOT_SUPPORTED;
}

#ifndef FAKE_NVML_535 /* the versioned one came with 545 */
int nvmlDeviceGetGpuFabricInfoV(tti_nvml_dev dev, struct tti_nvml_fabric2 *out)
{
	struct tti_nvml_fabric1 fabric;

	if (out->version != TTI_NVML_FABRIC2_VERSION)
		return TTI_NVML_INVALID_ARGUMENT;
	if (nvmlDeviceGetGpuFabricInfo(dev, &fabric) != TTI_NVML_SUCCESS)
		return TTI_NVML_NOT_SUPPORTED;
	memcpy(out->cluster, fabric.cluster, sizeof(out->cluster));
	out->rc = fabric.rc;
	out->clique = fabric.clique;
	out->state = fabric.state;
	return TTI_NVML_SUCCESS;
}
#endif
#endif
