/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

#include "gpu/nvml.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

const char *tti_doctor_text(struct tti_doctor *doctor, const char *fmt, ...)
{
	char text[1024];
	const char *copy;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	copy = tti_arena_strdup(&doctor->arena, text);
	doctor->failed |= !copy;
	return copy ? copy : "";
}

void tti_doctor_add(struct tti_doctor *doctor, enum tti_health health, const char *name,
		    const char *follows, const char *todo, const char *fmt, ...)
{
	struct tti_doctor_check check = {
		.health = health, .name = name, .follows = follows, .todo = todo
	};
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	check.what = tti_doctor_text(doctor, "%s", text);
	if (!tti_vec_push(&doctor->checks, check))
		doctor->failed = true;
}

static tutti_status examine(struct tti_doctor *doctor)
{
	const char *why;

	/* It is of this machine, not of a captured one, unless one is named. Without it less is
	 * known, which is no error here. */
	if ((!doctor->sysfs.captured || tti_params()->nvml_lib) &&
	    tti_nvml_open(&doctor->nvml, &why) != TUTTI_OK)
		tti_doctor_add(doctor, TTI_HEALTH_ERROR, "NVML", "", "", "%s", tti_error_text());
	TTI_TRY(tti_doctor_find_cards(doctor));
	TTI_TRY(tti_doctor_driver(doctor));
	return tti_doctor_system(doctor);
}

static void release(struct tti_doctor *doctor)
{
	tti_nvml_close(doctor->nvml);
	tti_gpu_driver_close(doctor->driver);
	tti_sysfs_close(&doctor->sysfs);
	tti_vec_release(&doctor->checks);
	tti_vec_release(&doctor->cards);
	tti_arena_release(&doctor->arena);
}

static int count_findings(const struct tti_doctor *doctor)
{
	int n = 0;

	for (size_t i = 0; i < doctor->checks.n; i++)
		n += doctor->checks.at[i].health >= TTI_HEALTH_WARNING;
	return n;
}

tutti_status tutti_doctor(const char *sysfs_root, int json, unsigned flags, char **out,
			  int *nfindings_out)
{
	struct tti_doctor doctor = { .root = sysfs_root ? sysfs_root : tti_params()->sysfs_root };
	struct tti_strbuf text = { 0 };
	tutti_status status;
	char *taken = NULL;

	if (!out || !nfindings_out)
		return tti_fail(TUTTI_EINVAL, "tutti_doctor: %s is NULL",
				out ? "nfindings_out" : "out");
	TTI_TRY(tti_sysfs_open(doctor.root, &doctor.sysfs));
	status = examine(&doctor);
	if (status == TUTTI_OK) {
		if (json)
			tti_doctor_print_json(&doctor, &text);
		else
			tti_doctor_print(&doctor, flags & TUTTI_TOPO_COLOR, &text);
		taken = tti_strbuf_take(&text);
		if (!taken || doctor.failed)
			status = tti_fail(TUTTI_ENOMEM, "tutti_doctor: out of memory");
	}
	if (status == TUTTI_OK) {
		*out = taken;
		*nfindings_out = count_findings(&doctor);
		taken = NULL;
	}
	tti_strbuf_release(&text);
	tti_free(taken);
	release(&doctor);
	return status;
}
