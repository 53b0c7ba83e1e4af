/* SPDX-License-Identifier: BSD-3-Clause */
/* What CUDA's driver says: of itself, of its devices, and which of them reach each other. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "device/kernels.h"
#include "gpu/nvml.h"
#include "insight/doctor/doctor.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

#define LEAST_CAPABILITY 75 /* what the kernels are built for */
#define GIB              (1024.0 * 1024 * 1024)

/* -- The driver ----------------------------------------------------------------------- */

/* "580.82.07, open"; "" where there is none. */
static void module_version(const struct tti_doctor *doctor, char *out, size_t size)
{
	char line[256], version[64] = "";
	const char *at;

	out[0] = '\0';
	if (!tti_sysfs_line(&doctor->sysfs, line, sizeof(line), "proc/driver/nvidia/version"))
		return;
	/* "... Kernel Module for x86_64  580.82.07  Release Build ..." */
	at = strstr(line, "Kernel Module");
	for (; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (*at >= '0' && *at <= '9' && sscanf(at, "%63[0-9.]", version) == 1 &&
		    strchr(version, '.'))
			break;
	snprintf(out, size, "%s%s", version, strstr(line, "Open Kernel Module") ? ", open" : "");
}

static void without_driver(struct tti_doctor *doctor, const char *why)
{
	char module[96];

	module_version(doctor, module, sizeof(module));
	if (tti_params()->cuda_lib)
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "driver", "no rank can have a device",
			       "name a library of CUDA's driver, or unset TUTTI_CUDA_LIB", "%s",
			       why);
	else if (doctor->cards.n)
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "driver",
			       "no rank can have a device; host memory works",
			       module[0] ? "see what the text says, and nvidia-smi"
					 : "install NVIDIA's driver",
			       "%zu GPU%s of NVIDIA, and no driver that works: %s", doctor->cards.n,
			       doctor->cards.n > 1 ? "s" : "", why);
	else
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "driver", "", "",
			       "no GPU driver: Tutti uses host memory");
}

static void with_driver(struct tti_doctor *doctor)
{
	const int version = tti_gpu_driver_version(doctor->driver);
	char module[96];

	module_version(doctor, module, sizeof(module));
	if (tti_gpu_driver_is_host(doctor->driver))
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "driver", "", "",
			       "%s: %d device%s that are host memory, for programs of CUDA where "
			       "no GPU is",
			       tti_gpu_driver_path(doctor->driver),
			       tti_gpu_driver_count(doctor->driver),
			       tti_gpu_driver_count(doctor->driver) == 1 ? "" : "s");
	else
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "driver", "", "",
			       "CUDA %d.%d of %s%s%s, %d device%s", version / 1000,
			       version % 1000 / 10, tti_gpu_driver_path(doctor->driver),
			       module[0] ? ", kernel module " : "", module,
			       tti_gpu_driver_count(doctor->driver),
			       tti_gpu_driver_count(doctor->driver) == 1 ? "" : "s");
}

/* The driver is of this machine, not of a captured one, unless one is named. */
static bool open_driver(struct tti_doctor *doctor)
{
	if (doctor->sysfs.captured && !tti_params()->cuda_lib) {
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "driver", "", "",
			       "a captured machine, whose driver cannot be asked");
		return false;
	}
	if (tti_gpu_driver_open(NULL, &doctor->driver) != TUTTI_OK) {
		without_driver(doctor, tti_error_text());
		return false;
	}
	with_driver(doctor);
	return true;
}

/* -- Kernels -------------------------------------------------------------------------- */

static void check_kernels(struct tti_doctor *doctor)
{
	const bool is_host = tti_gpu_driver_is_host(doctor->driver);
	struct stat info;
	char *path;

	if (tti_kernels_path(is_host, &path) != TUTTI_OK) {
		doctor->failed = true;
		return;
	}
	if (stat(path, &info) < 0)
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "kernels", "no rank can have a device",
			       is_host ? "install it there, or name it with TUTTI_CUDA_KERNELS"
				       : "build Tutti where nvcc is, or name the file with "
					 "TUTTI_CUDA_KERNELS",
			       "%s is not there", path);
	else
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "kernels", "", "", "%s, %.1f MiB", path,
			       (double)info.st_size / (1024 * 1024));
	tti_free(path);
}

/* -- Devices -------------------------------------------------------------------------- */

/* What NVML says of a device of CUDA, by its place on the PCI bus. */
static bool find_nvml(const struct tti_doctor *doctor, const struct tti_gpu_facts *gpu, int *index,
		      struct tti_nvml_gpu *out)
{
	const int n = doctor->nvml ? tti_nvml_count(doctor->nvml) : 0;
	const size_t length = strlen(gpu->busid);

	for (int i = 0; i < n; i++) {
		if (tti_nvml_gpu(doctor->nvml, i, out) != TUTTI_OK)
			continue;
		/* NVML's domains have eight digits. */
		const size_t theirs = strlen(out->busid);

		if (theirs >= length && !strcasecmp(out->busid + theirs - length, gpu->busid)) {
			*index = i;
			return true;
		}
	}
	return false;
}

static void check_mode(struct tti_doctor *doctor, const struct tti_gpu_facts *gpu, const char *name)
{
	switch (gpu->mode) {
	case TTI_GPU_PROHIBITED:
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, name, "no rank can have it",
			       tti_doctor_text(doctor, "nvidia-smi -i %s -c DEFAULT", gpu->busid),
			       "its compute mode is PROHIBITED");
		break;
	case TTI_GPU_ONE_PROCESS:
		tti_doctor_add(
			doctor, TTI_HEALTH_NOTE, name, "ranks of several processes cannot share it",
			tti_doctor_text(doctor, "nvidia-smi -i %s -c DEFAULT, if they are to",
					gpu->busid),
			"its compute mode is EXCLUSIVE_PROCESS");
		break;
	case TTI_GPU_SHARED:
		break;
	}
	if (gpu->has_mps)
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, name, "", "",
			       "processes share it by MPS, so kernels of several run at a time");
}

static void check_nvml(struct tti_doctor *doctor, const struct tti_gpu_facts *gpu, const char *name)
{
	struct tti_nvml_gpu more;
	int index;

	if (!find_nvml(doctor, gpu, &index, &more))
		return;
	if (more.persistent == 0)
		tti_doctor_add(
			doctor, TTI_HEALTH_WARNING, name,
			"the first program that uses it waits for seconds, and clocks start "
			"low",
			tti_doctor_text(doctor,
					"start nvidia-persistenced, or nvidia-smi -i %s -pm 1",
					gpu->busid),
			"persistence mode is off");
	if (more.mig)
		tti_doctor_add(doctor, TTI_HEALTH_WARNING, name,
			       "its instances do not reach memory of other GPUs; messages go by "
			       "pinned memory of the host",
			       tti_doctor_text(doctor,
					       "nvidia-smi -i %s -mig 0, if one job has "
					       "all of it",
					       gpu->busid),
			       "it is cut into instances (MIG)");
}

static void check_device(struct tti_doctor *doctor, const struct tti_gpu_facts *gpu)
{
	const char *const name = tti_doctor_text(doctor, "GPU %d", gpu->ordinal);

	tti_doctor_add(doctor, TTI_HEALTH_GOOD, name, "", "",
		       "%s at %s, compute capability %d.%d, %.1f GiB, memory shared by %s",
		       gpu->name, gpu->busid, gpu->capability / 10, gpu->capability % 10,
		       (double)gpu->memory_bytes / GIB,
		       gpu->has_fd ? "file descriptors" : "CUDA's older handles");
	if (gpu->capability < LEAST_CAPABILITY && !tti_gpu_driver_is_host(doctor->driver))
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, name, "no rank can have it",
			       "use a GPU of compute capability 7.5 (Turing) or newer",
			       "it is too old for Tutti's kernels");
	check_mode(doctor, gpu, name);
	check_nvml(doctor, gpu, name);
}

static tutti_status find_devices(struct tti_doctor *doctor)
{
	const int n = tti_gpu_driver_count(doctor->driver);
	const size_t all = (size_t)n;

	doctor->gpus = tti_arena_alloc(&doctor->arena, all * sizeof(*doctor->gpus) + 1);
	doctor->access = tti_arena_alloc(&doctor->arena, all * all * sizeof(*doctor->access) + 1);
	if (!doctor->gpus || !doctor->access)
		return tti_fail(TUTTI_ENOMEM, "tutti_doctor: %d devices: out of memory", n);
	for (int i = 0; i < n; i++) {
		if (tti_gpu_facts_of(doctor->driver, i, &doctor->gpus[i]) != TUTTI_OK) {
			tti_doctor_add(doctor, TTI_HEALTH_ERROR,
				       tti_doctor_text(doctor, "GPU %d", i), "no rank can have it",
				       "see nvidia-smi, and the log of the kernel (dmesg)", "%s",
				       tti_error_text());
			continue;
		}
		check_device(doctor, &doctor->gpus[i]);
	}
	doctor->n = n;
	if (!n)
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "devices", "no rank can have a device",
			       "see nvidia-smi and CUDA_VISIBLE_DEVICES", "the driver has none");
	return TUTTI_OK;
}

/* -- Who reaches whom ----------------------------------------------------------------- */

static const char *why_not(const struct tti_doctor *doctor, int a, int b)
{
	struct tti_nvml_gpu gpu;
	const char *why;
	int from, to;

	if (find_nvml(doctor, &doctor->gpus[a], &from, &gpu) &&
	    find_nvml(doctor, &doctor->gpus[b], &to, &gpu) &&
	    !tti_nvml_p2p(doctor->nvml, from, to, &why))
		return why;
	return "the driver does not say why";
}

static void check_access(struct tti_doctor *doctor)
{
	const int n = doctor->n;
	int nmissing = 0, a = 0, b = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			struct tti_gpu_access *const access = &doctor->access[i * n + j];

			if (tti_gpu_access_of(doctor->driver, i, j, access) != TUTTI_OK)
				*access = (struct tti_gpu_access){ false, false };
			if (access->is_possible)
				continue;
			if (!nmissing++) {
				a = i;
				b = j;
			}
		}
	if (n < 2)
		return;
	if (!nmissing)
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "peer access", "", "",
			       "each GPU reaches memory of each other");
	else
		tti_doctor_add(doctor, TTI_HEALTH_WARNING, "peer access",
			       "messages between them go by pinned memory of the host",
			       "see IOMMU and ACS here, and nvidia-smi topo -p2p r",
			       "%d of %d pairs do not reach each other; GPU %d to GPU %d: %s",
			       nmissing, n * (n - 1), a, b, why_not(doctor, a, b));
}

/* By which kernels of ranks that are threads of one process do not run at the same time. */
static void check_variables(struct tti_doctor *doctor)
{
	const char *blocking = tti_gpu_launch_blocking();

	if (blocking)
		tti_doctor_add(doctor, TTI_HEALTH_WARNING, "CUDA_LAUNCH_BLOCKING",
			       "calls that one thread makes for ranks of several GPUs hang",
			       "unset it, or give each rank a process",
			       "it is %s: a launch returns once its kernel has ended", blocking);
	if (tti_gpu_driver_is_host(doctor->driver)) /* threads of the host have no connections */
		return;
	if (tti_gpu_connections() < TTI_GPU_CONNECTIONS_MOST)
		tti_doctor_add(
			doctor, TTI_HEALTH_NOTE, "streams",
			"where many ranks of a process share a GPU, what waits in one stream may "
			"hold up another",
			tti_doctor_text(doctor, "CUDA_DEVICE_MAX_CONNECTIONS=%d for such ranks",
					TTI_GPU_CONNECTIONS_MOST),
			"those of a process share %d connections of each GPU",
			tti_gpu_connections());
}

tutti_status tti_doctor_driver(struct tti_doctor *doctor)
{
	if (!open_driver(doctor))
		return TUTTI_OK;
	check_kernels(doctor);
	TTI_TRY(find_devices(doctor));
	check_access(doctor);
	check_variables(doctor);
	return TUTTI_OK;
}
