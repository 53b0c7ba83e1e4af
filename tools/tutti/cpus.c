/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpus.h"

#include <stdio.h>
#include <stdlib.h>

struct place {
	int socket, core, cpu; /* core: the number of its first CPU */
};

/* The first of a list; 0 where that is not told. */
static int read_number(int cpu, const char *name)
{
	char path[96];
	FILE *file;
	int value;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->socket != y->socket)
		return x->socket < y->socket ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

int cpus_by_core(const cpu_set_t *from, int *out)
{
	struct place places[CPU_SETSIZE];
	int n = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, from))
			places[n++] =
				(struct place){ read_number(cpu, "physical_package_id"),
						read_number(cpu, "thread_siblings_list"), cpu };
	qsort(places, (size_t)n, sizeof(places[0]), compare);
	for (int i = 0; i < n; i++)
		out[i] = places[i].cpu;
	return n;
}
