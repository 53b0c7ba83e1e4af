/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti run --gpus N: each rank has N devices of CUDA, which are host memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_preload.h"

#define PLACES "TUTTI_CUDAHOST_PCI"

static bool out_of_memory(void)
{
	tool_fail("out of memory");
	return false;
}

/* The PCI bus ids of the first `gpus` GPUs, with commas between; how many GPUs there are. Those that are on no PCI
 * bus count, and are not in the text. */
static int list_gpus(tutti_topo_t topo, int gpus, char *text, size_t nbytes)
{
	struct tutti_topo_node gpu, slot;
	size_t used = 0;
	int n = 0;

	text[0] = '\0';
	for (int at = 0; at < tutti_topo_node_count(topo); at++) {
		if (tutti_topo_get_node(topo, at, &gpu) != TUTTI_OK || strcmp(gpu.type, "GPU") != 0)
			continue;
		if (n++ < gpus && gpu.parent >= 0 &&
		    tutti_topo_get_node(topo, gpu.parent, &slot) == TUTTI_OK && used < nbytes &&
		    !strcmp(slot.type, "DEV"))
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
						 used ? "," : "", slot.name);
	}
	return n;
}

/* The devices are where the GPUs of the topology file are that the user has named, so that a program finds what it
 * would find on the machine of the file. */
static bool place_gpus(int gpus)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	char text[64 * 24];
	tutti_topo_t topo;
	tutti_status status;
	int n;

	config.xml_file = tool_parameter("TUTTI_TOPO_FILE");
	if (!config.xml_file || tool_parameter(PLACES))
		return true;
	status = tutti_topo_load(&config, &topo);
	if (status != TUTTI_OK)
		return tool_fail("--gpus: TUTTI_TOPO_FILE: %s", tool_why(NULL, status)), false;
	n = list_gpus(topo, gpus, text, sizeof(text));
	tutti_topo_free(topo);
	if (n > 0 && n < gpus)
		return tool_fail("--gpus %d: %s, which TUTTI_TOPO_FILE names, has %d: ask for so "
				 "many at most, or set " PLACES
				 " to the PCI bus ids that they shall have",
				 gpus, config.xml_file, n),
		       false;
	return !*text || setenv(PLACES, text, 1) == 0 || out_of_memory();
}

bool run_gpus(int gpus)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", gpus);
	if (setenv("TUTTI_CUDAHOST_GPUS", text, 1) != 0)
		return out_of_memory();
	return place_gpus(gpus) && run_preload_cuda();
}
