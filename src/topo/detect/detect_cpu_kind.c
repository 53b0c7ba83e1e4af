/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Room for the first processor in proc/cpuinfo, whatever flags it has. */
#define CPUINFO_BYTES 16384

/* Find "NAME<blanks>: VALUE". The value ends with its line and keeps blanks at its ends, since
 * some vendors have them. A value that is not plain text, or is too long, counts as missing. */
static bool find_field(const char *cpuinfo, const char *name, char *buf, size_t size)
{
	const size_t len = strlen(name);
	const char *line = cpuinfo;

	buf[0] = '\0';
	for (; line; line = strchr(line, '\n')) {
		const char *at;
		size_t n;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0)
			continue;
		at = line + len + strspn(line + len, " \t");
		if (*at++ != ':')
			continue;
		at += *at == ' ';
		for (n = 0; at[n] >= ' ' && at[n] <= '~'; n++)
			;
		if (n >= size || (at[n] != '\n' && at[n] != '\0'))
			return false;
		memcpy(buf, at, n);
		buf[n] = '\0';
		return true;
	}
	return false;
}

static int64_t find_number(const char *cpuinfo, const char *name)
{
	char text[32];
	char *end;
	long value;

	if (!find_field(cpuinfo, name, text, sizeof(text)))
		return -1;
	value = strtol(text, &end, 0);
	return end == text || value < 0 ? -1 : value;
}

static void set_text(char *buf, size_t size, const char *text)
{
	(void)snprintf(buf, size, "%s", text);
}

static const char *implementer_name(int64_t implementer)
{
	static const struct {
		int64_t code;
		const char *name;
	} known[] = {
		{ 0x41, "ARM" },     { 0x42, "Broadcom" },  { 0x43, "Cavium" },
		{ 0x46, "Fujitsu" }, { 0x48, "HiSilicon" }, { 0x4e, "NVIDIA" },
		{ 0x50, "APM" },     { 0x51, "Qualcomm" },  { 0x53, "Samsung" },
		{ 0x61, "Apple" },   { 0x6d, "Microsoft" }, { 0xc0, "Ampere" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].code == implementer)
			return known[i].name;
	return "";
}

static void set_arm(struct tti_cpu_kind *kind, int64_t implementer, int64_t part)
{
	set_text(kind->arch, sizeof(kind->arch), "arm64");
	set_text(kind->vendor, sizeof(kind->vendor), implementer_name(implementer));
	kind->family = implementer;
	kind->model = part;
}

static void from_cpuinfo(const char *cpuinfo, struct tti_cpu_kind *kind)
{
	char text[80];

	if (find_field(cpuinfo, "cpu family", text, sizeof(text))) {
		set_text(kind->arch, sizeof(kind->arch), "x86_64");
		find_field(cpuinfo, "vendor_id", kind->vendor, sizeof(kind->vendor));
		kind->family = find_number(cpuinfo, "cpu family");
		kind->model = find_number(cpuinfo, "model");
	} else if (find_field(cpuinfo, "CPU implementer", text, sizeof(text))) {
		set_arm(kind, find_number(cpuinfo, "CPU implementer"),
			find_number(cpuinfo, "CPU part"));
	} else if (find_field(cpuinfo, "cpu", text, sizeof(text)) &&
		   strncmp(text, "POWER", 5) == 0) {
		set_text(kind->arch, sizeof(kind->arch), "ppc64");
		set_text(kind->vendor, sizeof(kind->vendor), "IBM");
		kind->family = strtol(text + 5, NULL, 10);
	}
}

/* MIDR_EL1: implementer in bits 24 to 31, part in 4 to 15. */
static void from_midr(const struct tti_sysfs *sysfs, struct tti_cpu_kind *kind)
{
	int64_t midr;

	if (tti_sysfs_int(sysfs, &midr, "sys/devices/system/cpu/cpu0/regs/identification/midr_el1"))
		set_arm(kind, midr >> 24 & 0xff, midr >> 4 & 0xfff);
}

/* Kernels call these architectures otherwise. */
static const char *arch_name(const char *machine)
{
	if (strcmp(machine, "aarch64") == 0)
		return "arm64";
	return strcmp(machine, "ppc64le") == 0 ? "ppc64" : machine;
}

/* CPUID counts before files, uname() where they do not tell the architecture. */
static void from_itself(struct tti_cpu_kind *kind)
{
	struct utsname name;

	if (kind->arch[0] == '\0' && uname(&name) == 0)
		set_text(kind->arch, sizeof(kind->arch), arch_name(name.machine));
#ifdef __x86_64__
	unsigned leaf[4];

	if (__get_cpuid(0, &leaf[0], &leaf[1], &leaf[2], &leaf[3])) {
		memcpy(kind->vendor, &leaf[1], 4);
		memcpy(kind->vendor + 4, &leaf[3], 4);
		memcpy(kind->vendor + 8, &leaf[2], 4);
		kind->vendor[12] = '\0';
	}
	if (__get_cpuid(1, &leaf[0], &leaf[1], &leaf[2], &leaf[3])) {
		const unsigned family = leaf[0] >> 8 & 0xf;
		const unsigned model = leaf[0] >> 4 & 0xf;

		kind->family = family == 0xf ? family + (leaf[0] >> 20 & 0xff) : family;
		kind->model = family == 0xf || family == 6 ? model | (leaf[0] >> 12 & 0xf0) : model;
	}
#endif
}

void tti_detect_cpu_kind(const struct tti_sysfs *sysfs, struct tti_cpu_kind *out)
{
	struct tti_cpu_kind kind = { .family = -1, .model = -1 };
	char cpuinfo[CPUINFO_BYTES];
	const ssize_t n = tti_sysfs_bytes(sysfs, cpuinfo, sizeof(cpuinfo) - 1, "proc/cpuinfo");

	cpuinfo[n > 0 ? n : 0] = '\0';
	from_cpuinfo(cpuinfo, &kind);
	if (kind.arch[0] == '\0')
		from_midr(sysfs, &kind);
	if (!sysfs->captured)
		from_itself(&kind);
	*out = kind;
}
