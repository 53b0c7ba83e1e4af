/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool.h"
#include "topo.h"

int doctor_run(void *self)
{
	const struct doctor_options *const options = self;
	const struct topo_source source = { .color = options->color };
	tutti_status status;
	int nfindings;
	char *text;

	status = tutti_doctor(NULL, options->json, topo_flags(&source, stdout), &text, &nfindings);
	if (status)
		return tool_fail("%s", tool_why(NULL, status));
	fputs(text, stdout);
	if (options->json)
		putchar('\n');
	free(text);
	return nfindings ? TOOL_FINDING : TOOL_GOOD;
}
