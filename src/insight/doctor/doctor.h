/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_DOCTOR_H
#define TTI_INSIGHT_DOCTOR_H

/* What a program with GPUs finds on a machine: one check after the other, each with what there is,
 * what follows, and what to do.
 *
 *     doctor_driver.c   CUDA's driver, Tutti's kernels, each device, who reaches whom
 *     doctor_system.c   what the system says of GPUs: modules, IOMMU, ACS, switches, RDMA
 *     doctor_print.c    all of it in words, or as JSON
 *
 * Owner: doctor.c, for one call. Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>

#include "gpu/cuda.h"
#include "topo/detect/sysfs.h"
#include "tutti/status.h"
#include "util/arena.h"
#include "util/strbuf.h"
#include "util/vec.h"

enum tti_health {
	TTI_HEALTH_GOOD,
	TTI_HEALTH_NOTE,    /* good to know; nothing is wrong, or it cannot be seen */
	TTI_HEALTH_WARNING, /* costs speed, or a way to do things */
	TTI_HEALTH_ERROR,   /* GPUs cannot be used */
};

/* Strings are the arena's, or constant. */
struct tti_doctor_check {
	enum tti_health health;
	const char *name;           /* "driver", "GPU 0"               */
	const char *what;           /* what there is */
	const char *follows, *todo; /* one sentence each, without its end; "": nothing */
};

/* A GPU of NVIDIA on the PCI bus. */
struct tti_doctor_card {
	char busid[16]; /* "0000:3b:00.0" */
};

struct tti_nvml;

struct tti_doctor {
	struct tti_arena arena;
	struct tti_sysfs sysfs;
	const char *root; /* NULL: this machine */
	TTI_VEC(struct tti_doctor_check) checks;
	TTI_VEC(struct tti_doctor_card) cards;
	int nswitches;                 /* NVSwitch on the PCI bus */
	struct tti_gpu_driver *driver; /* NULL: none, or it does not work */
	struct tti_nvml *nvml;         /* NULL: none */
	int n;                         /* devices */
	struct tti_gpu_facts *gpus;    /* [n] */
	struct tti_gpu_access *access; /* [n][n], of the row's device */
	bool failed;                   /* out of memory */
};

/* `fmt` is what there is. */
TUTTI_PRINTF(6, 7)
void tti_doctor_add(struct tti_doctor *doctor, enum tti_health health, const char *name,
		    const char *follows, const char *todo, const char *fmt, ...);
/* A text of the arena; "" if there is no memory. */
TUTTI_PRINTF(2, 3) const char *tti_doctor_text(struct tti_doctor *doctor, const char *fmt, ...);

/* The parts, in this order. */
TUTTI_CHECKED tutti_status tti_doctor_find_cards(struct tti_doctor *doctor);
TUTTI_CHECKED tutti_status tti_doctor_driver(struct tti_doctor *doctor);
TUTTI_CHECKED tutti_status tti_doctor_system(struct tti_doctor *doctor);

void tti_doctor_print(const struct tti_doctor *doctor, bool color, struct tti_strbuf *out);
void tti_doctor_print_json(const struct tti_doctor *doctor, struct tti_strbuf *out);
const char *tti_health_name(enum tti_health health);

#endif
