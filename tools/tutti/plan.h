/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PLAN_H
#define TOOL_PLAN_H

/* What the verbs about plans share: which machines, how ranks lie on them, which plan. */

#include "topo.h"

#define PLAN_MOST_NODES 1000000
#define PLAN_MOST_RANKS 4000000

enum {
	PLAN_NODES = TOPO_FIRST_FREE,
	PLAN_RANKS,
	PLAN_PATTERN,
	PLAN_CROSS,
	PLAN_CHANNELS,
	PLAN_BOTH,
	PLAN_ORDER,
	PLAN_HOSTFILE,
	PLAN_HANDOFF,
	PLAN_FROM,
	PLAN_TO,
	PLAN_SHARDED,
	PLAN_BYTES,
	PLAN_FIRST_FREE
};

#define PLAN_MACHINE_OPTIONS                                                                     \
	{ TOPO_XML, "xml", "FILE[*N]",                                                           \
	  "a node (N nodes) wired as this topology file; repeatable" },                          \
		{ TOPO_SYSFS, "sysfs", "DIR", "nodes like a captured machine, or its .tar" },    \
		TOPO_OPTION_GPUS,                                                                \
		{ TOPO_NCCL, "nccl", NULL, "compute with the figures that NCCL uses" },          \
		{ PLAN_NODES, "nodes", "N", "so many such nodes (1)" },                          \
		{ PLAN_RANKS, "ranks", "R", "ranks a node (one for each GPU, else NUMA node)" }, \
		{ PLAN_ORDER, "order", "LIST", "node of each rank: 0,1,0,1, block or cyclic" },  \
	{                                                                                        \
		PLAN_HOSTFILE, "hostfile", "FILE", "nodes as 'NAME slots=N switch=S' lines"      \
	}
#define PLAN_SEARCH_OPTIONS                                                               \
	{ PLAN_PATTERN, "pattern", "LIST",                                                \
	  "ring,tree,balanced-tree,split-tree,nvls,collnet-..." },                        \
		{ PLAN_CROSS, "cross-nic", "WHICH",                                       \
		  "rings leave by the NIC they came: 0; any: 1; mirrored: 2 (auto)" },    \
		{ PLAN_CHANNELS, "channels", "MIN:MAX", "at least and at most so many" }, \
	{                                                                                 \
		PLAN_BOTH, "both-ways", NULL, "trees load links in both directions"       \
	}

#define PLAN_HANDOFF_OPTIONS                                                                   \
	{ PLAN_HANDOFF, "handoff", NULL, "plan a handoff: one vector from ranks to ranks" },   \
		{ PLAN_FROM, "from", "RANKS", "who holds it: 0-7,9 (all of the first node)" }, \
		{ PLAN_TO, "to", "RANKS", "who gets it (all of the other nodes)" },            \
		{ PLAN_SHARDED, "sharded", "SIDE",                                             \
		  "from, to or both: each holds, or gets, its part" },                         \
	{                                                                                      \
		PLAN_BYTES, "bytes", "SIZE", "say how long that many take (64M)"               \
	}

/* Nodes of one kind. */
struct plan_machine {
	char *path; /* NULL: --sysfs, or this machine */
	int count;  /* 0: not said                    */
	tutti_topo_t topo;
};

struct plan_source {
	struct topo_source topo;
	struct cli_list xml; /* FILE[:N] */
	int nodes;           /* --nodes; 0: not said */
	const char *order, *hostfile;
	struct tutti_plan_config config;
	/* What they come to: the kinds of nodes; for each node, for each rank. */
	struct plan_machine *machines;
	int nmachines;
	tutti_topo_t *node_topo;
	int *node_of_rank, *group_of_node;
	char **name_of_node; /* of a hostfile; NULL */
	int nnames, nnodes;
};
/* clang-format off */
#define PLAN_SOURCE_INIT { .topo = TOPO_SOURCE_INIT, .config = TUTTI_PLAN_CONFIG_INIT }
/* clang-format on */

/* Take an option of the above. false: it was bad, and said so. */
bool plan_take_option(struct plan_source *source, int id, const char *value);
/* Load the machines and lay the job out on them: the exit code. plan_release() always. */
int plan_load(struct plan_source *source);
/* Whether any machine was named. */
bool plan_has_machine(const struct plan_source *source);
void plan_release(struct plan_source *source);

/* What is asked with --handoff. */
struct plan_handoff {
	bool asked;
	int *from, *to;
	size_t nbytes;
	struct tutti_handoff_plan_config config;
};
/* clang-format off */
#define PLAN_HANDOFF_INIT { .nbytes = (size_t)64 << 20, .config = TUTTI_HANDOFF_PLAN_CONFIG_INIT }
/* clang-format on */
/* As plan_take_option(). */
bool plan_take_handoff(struct plan_handoff *handoff, int id, const char *value);
/* `draw`: what Graphviz makes of the format. The exit code. */
int plan_show_handoff(const struct plan_source *source, struct plan_handoff *handoff,
		      tutti_plan_format format, bool draw, bool explain, FILE *to);
void plan_release_handoff(struct plan_handoff *handoff);

/* What went wrong: the exit code. */
int plan_failed(tutti_status status);

extern const struct command command_plan_diff, command_plan_check, command_plan_read;

#endif
