/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_NVML_H
#define TTI_GPU_NVML_H

/* What the NVIDIA management library, loaded at run time, says of the GPUs of this machine.
 * Without a GPU, a driver or the library there are no GPUs, which is no error.
 * TUTTI_NVML_LIB can name another library of the same interface; tests show machines that
 * are not there with one.
 *
 * Owner: tti_nvml_close(). Threads: one at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "tutti/status.h"

/* The most links of a GPU that the interface has. */
#define TTI_NVML_LINKS 36

enum tti_nvml_remote {
	TTI_NVML_GPU,
	TTI_NVML_SWITCH,
	TTI_NVML_CPU,
	TTI_NVML_OTHER,
};

struct tti_nvml_link {
	int index;   /* the driver's */
	bool active; /* or asleep: a link wakes up by itself */
	bool p2p;    /* for memory of GPUs */
	int version; /* NVLink generation, 0: not said */
	enum tti_nvml_remote remote;
	char peer[24]; /* bus id of the other end, as the driver writes it      */
};

struct tti_nvml_gpu {
	char busid[24];
	char name[96], uuid[96];
	int index;                      /* the driver's                                      */
	int sm;                         /* 10 * major + minor                                */
	int pci_gen, pci_width;         /* now, 0: not said                      */
	int max_pci_gen, max_pci_width; /* what both ends can                   */
	struct tti_nvml_link links[TTI_NVML_LINKS];
	int nlinks;           /* that the GPU has, active or not                          */
	int c2c_links;        /* active ones */
	double c2c_gbps;      /* of one                                           */
	char fabric_uuid[48]; /* cluster of a multi-host NVLink domain, "" if none */
	uint32_t fabric_clique;
	bool fabric_ready;
	uint64_t mem_bytes;
	bool mig; /* cut into instances: no access between GPUs */
	/* The driver keeps it ready while no program uses it: 1, 0; -1: not said. */
	int persistent;
};

struct tti_nvml;

/* TUTTI_OK with *out NULL: there is no library, or the driver does not work, and *why_out says so
 * in a few words (static, or the thread's error text). TUTTI_EINVAL: what TUTTI_NVML_LIB names
 * cannot be loaded. */
TUTTI_CHECKED tutti_status tti_nvml_open(struct tti_nvml **out, const char **why_out);
/* The same with the library at that path; NULL: the usual one. */
TUTTI_CHECKED tutti_status tti_nvml_open_library(const char *path, struct tti_nvml **out,
						 const char **why_out);
void tti_nvml_close(struct tti_nvml *nvml);

int tti_nvml_count(const struct tti_nvml *nvml);
const char *tti_nvml_driver(const struct tti_nvml *nvml); /* "580.82" */
/* TUTTI_ESYS: the driver does not reach the GPU; the text says which, and what the driver
 * answered. It is not logged, since a machine goes on without that GPU. */
TUTTI_CHECKED tutti_status tti_nvml_gpu(const struct tti_nvml *nvml, int index,
					struct tti_nvml_gpu *out);
/* Whether GPU a may read and write b's memory; *why_out if not. */
bool tti_nvml_p2p(const struct tti_nvml *nvml, int a, int b, const char **why_out);

#endif
