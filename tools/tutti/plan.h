/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PLAN_H
#define TOOL_PLAN_H

/* Shared by the verbs about plans: the machines, how ranks lie on them, the plan. */

#include "topo.h"

#define PLAN_MOST_NODES 1000000
#define PLAN_MOST_RANKS 4000000

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
	/* plan_load() fills the rest: kinds of nodes, nodes, ranks. */
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

/* The value of --channels, into the config of a plan. */
bool plan_take_channels(const char *label, const char *value, void *config);
/* Load the machines and lay the job out on them: the exit code. plan_release() always. */
int plan_load(struct plan_source *source);
/* Whether any machine was named. */
bool plan_has_machine(const struct plan_source *source);
void plan_release(struct plan_source *source);

/* The options that belong to --handoff. */
struct plan_handoff {
	bool asked;
	struct cli_ranks from, to;
	int sharded; /* PLAN_FROM, PLAN_TO, ored */
	size_t nbytes;
};
enum { PLAN_FROM = 1, PLAN_TO = 2 };
#define PLAN_HANDOFF_INIT                  \
	{                                  \
		.nbytes = (size_t)64 << 20 \
	}
/* `draw`: what Graphviz makes of the format. The exit code. */
int plan_show_handoff(const struct plan_source *source, const struct plan_handoff *handoff,
		      tutti_plan_format format, bool draw, bool explain, FILE *to);

struct plan_options {
	struct plan_source source;
	struct plan_handoff handoff;
	const char *output;
	const char *plan;    /* a file, in place of a search */
	const char *compare; /* a file, beside the search    */
	int format;
	bool explain;
};

struct plan_file_options {
	struct plan_source source;
	const char *files[2];
};

int plan_run(void *options);
int plan_diff_run(void *options);
int plan_check_run(void *options);
int plan_read_run(void *options);

/* Print the error of the library; returns the exit code. */
int plan_failed(tutti_status status);

#endif
