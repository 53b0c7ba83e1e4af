/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti paths: how fast each pair of GPUs and NICs can talk, and along what. */
#include "topo.h"

static int run(struct args *args)
{
	struct topo_source source = TOPO_SOURCE_INIT;
	tutti_topo_t topo;
	int code = topo_load_asked(args, &source, &topo);

	if (!topo)
		return code;
	code = topo_print(topo, source.json ? TUTTI_TOPO_PATHS_JSON : TUTTI_TOPO_PATHS,
			  topo_flags(&source, stdout), stdout);
	tutti_topo_free(topo);
	return code;
}

static const struct args_option options[] = { TOPO_SOURCE_OPTIONS, ARGS_OPTION_JSON, { 0 } };

const struct command command_paths = {
	.name = "paths",
	.summary = "the path between each pair of GPUs and NICs, and its GB/s",
	.usage = "paths [--xml FILE | --sysfs DIR] [--json]",
	.notes = "Types are those of `nvidia-smi topo -m`. A mark says that traffic does otherwise "
		 "than\n"
		 "the wires: TUTTI_P2P_LEVEL, TUTTI_NET_GDR_LEVEL and their kin decide that.\n",
	.options = options,
	.run = run,
};
