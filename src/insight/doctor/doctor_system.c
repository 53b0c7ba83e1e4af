/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system says of GPUs: on the PCI bus, what is between them, and what NICs may do. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/doctor/doctor.h"
#include "topo/detect/detect.h"
#include "util/error.h"

#define NVIDIA      0x10de
#define CLASS_GPU   0x03   /* displays: VGA and 3D controllers */
#define CLASS_OTHER 0x0680 /* other bridges: NVSwitch */

#define CONFIG_BYTES       4096
/* PCI Express Base Specification 5.0: 7.5.3 (capability 0x10), 7.7.8 (extended one 0x0d). */
#define CAPABILITY_EXPRESS 0x10
#define EXTENDED_ACS       0x0d
#define PORT_DOWNSTREAM    6                 /* of a switch */
#define ACS_REDIRECT       (1 << 2 | 1 << 3) /* of requests, and of completions */

/* -- The PCI bus ---------------------------------------------------------------------- */

tutti_status tti_doctor_find_cards(struct tti_doctor *doctor)
{
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&doctor->sysfs, &names, &n, "sys/bus/pci/devices"));
	for (size_t i = 0; i < n; i++) {
		struct tti_doctor_card card;
		int64_t vendor, class;

		if (!tti_sysfs_int(&doctor->sysfs, &vendor, "sys/bus/pci/devices/%s/vendor",
				   names[i]) ||
		    !tti_sysfs_int(&doctor->sysfs, &class, "sys/bus/pci/devices/%s/class",
				   names[i]) ||
		    vendor != NVIDIA)
			continue;
		doctor->nswitches += class >> 8 == CLASS_OTHER;
		if (class >> 16 != CLASS_GPU || strlen(names[i]) >= sizeof(card.busid))
			continue;
		snprintf(card.busid, sizeof(card.busid), "%s", names[i]);
		if (!tti_vec_push(&doctor->cards, card))
			doctor->failed = true;
	}
	free(names);
	return TUTTI_OK;
}

/* -- IOMMU ---------------------------------------------------------------------------- */

/* Whether addresses of devices are translated: DMA, DMA-FQ; not where they are passed through. */
static void check_iommu(struct tti_doctor *doctor)
{
	const size_t n = doctor->cards.n;
	size_t ntranslated = 0, npassed = 0;
	char type[32], kind[32] = "";

	for (size_t i = 0; i < n; i++) {
		if (!tti_sysfs_line(&doctor->sysfs, type, sizeof(type),
				    "sys/bus/pci/devices/%s/iommu_group/type",
				    doctor->cards.at[i].busid))
			continue;
		if (!strncmp(type, "DMA", 3)) {
			ntranslated++;
			memcpy(kind, type, sizeof(kind));
		} else {
			npassed++;
		}
	}
	if (!n)
		return;
	if (ntranslated)
		tti_doctor_add(doctor, n > 1 ? TTI_HEALTH_WARNING : TTI_HEALTH_NOTE, "IOMMU",
			       "access between GPUs over PCI, and of NICs to GPUs, is slow or does "
			       "not work; NVLink is not concerned",
			       "boot with iommu=pt, or switch it off in the firmware",
			       "it translates addresses of %zu of %zu GPUs (%s)", ntranslated, n,
			       kind);
	else
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "IOMMU", "", "", "%s",
			       npassed ? "addresses of GPUs pass through it" : "it is off");
}

/* -- ACS ------------------------------------------------------------------------------ */

struct config {
	uint8_t bytes[CONFIG_BYTES];
	size_t n;
};

static unsigned word_at(const struct config *config, size_t at)
{
	return at + 1 < config->n ? config->bytes[at] | (unsigned)config->bytes[at + 1] << 8 : 0;
}

/* Whether it is the downstream port of a switch. */
static bool is_switch_port(const struct config *config)
{
	size_t at = config->n > 0x34 ? config->bytes[0x34] : 0;

	for (int i = 0; i < 48 && at >= 0x40 && at + 3 < config->n; i++) {
		if (config->bytes[at] == CAPABILITY_EXPRESS)
			return (word_at(config, at + 2) >> 4 & 0xf) == PORT_DOWNSTREAM;
		at = config->bytes[at + 1] & 0xfcu;
	}
	return false;
}

/* Whether it sends what one GPU writes to another up to the root. */
static bool is_redirected(const struct config *config)
{
	size_t at = 0x100;

	for (int i = 0; i < 96 && at >= 0x100 && at + 7 < config->n; i++) {
		if (word_at(config, at) == EXTENDED_ACS)
			return word_at(config, at + 6) & ACS_REDIRECT;
		at = word_at(config, at + 2) >> 4 & 0xffcu;
	}
	return false;
}

struct acs {
	TTI_VEC(struct tti_doctor_card) seen; /* ports; several GPUs are below one */
	size_t nports, nredirected, nhidden;
	char first[16]; /* that redirects */
};

/* Whether this is the first time. */
static bool see_port(struct tti_doctor *doctor, struct acs *acs, const char *busid)
{
	struct tti_doctor_card port;

	for (size_t i = 0; i < acs->seen.n; i++)
		if (!strcmp(acs->seen.at[i].busid, busid))
			return false;
	snprintf(port.busid, sizeof(port.busid), "%.12s", busid);
	if (!tti_vec_push(&acs->seen, port))
		doctor->failed = true;
	return true;
}

/* The ports above a GPU. Without rights only 64 bytes can be read. */
static void look_above(struct tti_doctor *doctor, const char *busid, struct acs *acs)
{
	struct config config;
	char path[512];
	size_t length;
	ssize_t got;

	if (!tti_sysfs_real(&doctor->sysfs, path, sizeof(path), "sys/bus/pci/devices/%s", busid))
		return;
	for (length = tti_sysfs_parent(path, strlen(path)); length;
	     length = tti_sysfs_parent(path, length)) {
		path[length] = '\0';
		const char *const slash = strrchr(path, '/');
		const char *const name = slash ? slash + 1 : path;

		if (strlen(name) != strlen("0000:00:01.0")) /* past the root */
			break;
		if (!see_port(doctor, acs, name))
			continue;
		got = tti_sysfs_bytes(&doctor->sysfs, config.bytes, sizeof(config.bytes),
				      "%s/config", path);
		config.n = got > 0 ? (size_t)got : 0;
		if (config.n <= 64) {
			acs->nhidden++;
			continue;
		}
		if (!is_switch_port(&config))
			continue;
		acs->nports++;
		if (!is_redirected(&config))
			continue;
		if (!acs->nredirected++)
			snprintf(acs->first, sizeof(acs->first), "%.12s", name);
	}
}

static void check_acs(struct tti_doctor *doctor)
{
	struct acs acs = { 0 };

	for (size_t i = 0; i < doctor->cards.n; i++)
		look_above(doctor, doctor->cards.at[i].busid, &acs);
	tti_vec_release(&acs.seen);
	if (acs.nredirected)
		tti_doctor_add(doctor, doctor->cards.n > 1 ? TTI_HEALTH_WARNING : TTI_HEALTH_NOTE,
			       "ACS",
			       "what GPUs below one PCI switch write to each other goes up to the "
			       "processor and back",
			       tti_doctor_text(doctor,
					       "switch it off in the firmware, or setpci -s %s "
					       "ECAP_ACS+6.w=0 for each of them",
					       acs.first),
			       "%zu of %zu ports of PCI switches above GPUs redirect requests, as "
			       "%s",
			       acs.nredirected, acs.nports, acs.first);
	else if (acs.nports)
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "ACS", "", "",
			       "no port of a PCI switch redirects requests");
	else if (acs.nhidden)
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "ACS", "",
			       "run tutti doctor as root to see it",
			       "the settings of PCI bridges cannot be read");
}

/* -- NVSwitch ------------------------------------------------------------------------- */

static void check_switches(struct tti_doctor *doctor)
{
	static const char *const files[] = {
		"run/nvidia-fabricmanager/nv-fabricmanager.pid",
		"var/run/nvidia-fabricmanager/nv-fabricmanager.pid",
	};
	bool runs = false;

	if (!doctor->nswitches)
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		runs |= tti_sysfs_exists(&doctor->sysfs, "%s", files[i]);
	/* The driver does not begin before it has run. */
	if (runs || doctor->n)
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "NVSwitch", "", "", "%d, and %s",
			       doctor->nswitches,
			       runs ? "the fabric manager runs" : "the driver works with them");
	else
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "NVSwitch",
			       "the driver does not begin before it has run",
			       "systemctl start nvidia-fabricmanager, of the driver's version",
			       "%d, and the fabric manager does not run", doctor->nswitches);
}

/* Between hosts memory is passed by handles that IMEX knows. */
static void check_imex(struct tti_doctor *doctor)
{
	bool has_fabric = false;

	for (int i = 0; i < doctor->n; i++)
		has_fabric |= doctor->gpus[i].has_fabric;
	if (!has_fabric)
		return;
	if (tti_sysfs_exists(&doctor->sysfs, "dev/nvidia-caps-imex-channels/channel0"))
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "IMEX", "", "",
			       "memory of GPUs can be shared between hosts of an NVLink domain");
	else
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "IMEX",
			       "memory of GPUs is not shared between hosts of an NVLink domain",
			       "start nvidia-imex on all hosts, where NVLink goes between hosts",
			       "/dev/nvidia-caps-imex-channels/channel0 is not there");
}

/* -- GPUDirect RDMA ------------------------------------------------------------------- */

static bool is_set(const struct tti_xml *node)
{
	const char *const gdr = tti_xml_get(node, "gdr");

	return gdr && !strcmp(gdr, "1");
}

/* As detection sees it, which knows modules, kernels and drivers of NICs. */
static tutti_status check_rdma(struct tti_doctor *doctor)
{
	const struct tti_detect_config config = { .sysfs_root = doctor->root,
						  .nvml = doctor->nvml };
	const char *gpu_why = "", *nic_why = "", *nic = "";
	struct tti_xml_doc *doc;
	bool gpu_can = false, nic_can = false;

	if (!doctor->cards.n)
		return TUTTI_OK;
	TTI_TRY(tti_detect_machine(&config, &doc));
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		const char *const why = tti_xml_get(node, "tutti_gdr_why");

		if (tti_xml_is(node, "gpu") && !gpu_can) {
			gpu_can = is_set(node);
			gpu_why = why ? why : "";
		} else if (tti_xml_is(node, "net") && !nic_can) {
			nic_can = is_set(node);
			nic_why = why ? why : "";
			nic = tti_xml_get(node, "name");
		}
	}
	if (gpu_can && nic_can)
		tti_doctor_add(doctor, TTI_HEALTH_GOOD, "GPUDirect RDMA", "", "", "%s: %s", nic,
			       nic_why);
	else
		tti_doctor_add(doctor, TTI_HEALTH_NOTE, "GPUDirect RDMA",
			       "Tutti does without: it sends over networks from pinned memory of "
			       "the host",
			       "for programs that need it: load nvidia-peermem, or the open kernel "
			       "modules on Linux 5.12 or newer",
			       "%s",
			       !gpu_can && *gpu_why ? gpu_why
			       : nic && *nic        ? nic_why
						    : "there is no RDMA device");
	tti_xml_free(doc);
	return TUTTI_OK;
}

tutti_status tti_doctor_system(struct tti_doctor *doctor)
{
	check_iommu(doctor);
	check_acs(doctor);
	check_switches(doctor);
	check_imex(doctor);
	return check_rdma(doctor);
}
