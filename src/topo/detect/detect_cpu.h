/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_DETECT_CPU_H
#define TTI_TOPO_DETECT_DETECT_CPU_H

/* Which CPU a machine has, as the topology format writes it.
 * Threads: any. */

#include <stdint.h>

#include "topo/detect/sysfs.h"

struct tti_cpu_kind {
	char arch[72];         /* "x86_64", "arm64", "ppc64"; "": not known           */
	char vendor[32];       /* "GenuineIntel", "ARM", "IBM"; "": not known         */
	int64_t family, model; /* x86: as CPUID says; Arm: implementer and part;
	                        * POWER: its number; -1: not known                    */
};

/* By the files below the root; on this machine CPUID goes before them, and uname() says the
 * architecture if they do not. */
void tti_detect_cpu_kind(const struct tti_sysfs *sysfs, struct tti_cpu_kind *out);

#endif
