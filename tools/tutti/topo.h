/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TOPO_H
#define TOOL_TOPO_H

/* What the verbs about topologies share: where one comes from, how it is shown. */

#include <stdbool.h>
#include <stdio.h>

#include "tool.h"

enum {
	TOPO_XML = ARGS_FIRST_FREE,
	TOPO_SYSFS,
	TOPO_DETECT,
	TOPO_ALL,
	TOPO_MEASURE,
	TOPO_NCCL,
	TOPO_COLOR,
	TOPO_GPUS,
	TOPO_FIRST_FREE
};

#define TOPO_OPTION_GPUS                                                                     \
	{                                                                                    \
		TOPO_GPUS, "gpus", "LIST", "these GPUs alone: 0,2,5, 0-3, HOST/0 or bus ids" \
	}
#define TOPO_SOURCE_OPTIONS                                                                      \
	{ TOPO_XML, "xml", "FILE", "a topology file" },                                          \
		{ TOPO_SYSFS, "sysfs", "DIR", "a captured machine: its top folder, or a .tar" }, \
		TOPO_OPTION_GPUS,                                                                \
		{ TOPO_DETECT, "detect", NULL, "lay the file over what is detected" },           \
		{ TOPO_ALL, "all", NULL, "every PCI function, not only what communicates" },     \
		{ TOPO_MEASURE, "measure", NULL, "measure the memory of each NUMA node" },       \
		{ TOPO_NCCL, "nccl", NULL, "compute with the figures that NCCL uses" },          \
	{                                                                                        \
		TOPO_COLOR, "color", "WHEN", "auto, always or never (auto)"                      \
	}

struct topo_source {
	struct tutti_topo_config config;
	const char *color;
	bool json;
};
/* clang-format off */
#define TOPO_SOURCE_INIT { TUTTI_TOPO_CONFIG_INIT, NULL, false }
/* clang-format on */

/* Take an option of the above, or --json. false: it was bad, and said so. */
bool topo_take_option(struct topo_source *source, int id, const char *value);

/* Load; a .tar is unpacked into a folder that is gone when this returns. TOOL_GOOD, or
 * the exit code after the message is out. */
int topo_load(const struct topo_source *source, tutti_topo_t *out);
/* For verbs whose options are those of a source: read them to the end, then load. *out is
 * NULL when that is all (help was asked for, or the message is out): end with the code. */
int topo_load_asked(struct args *args, struct topo_source *source, tutti_topo_t *out);
/* A file, a captured machine or its .tar, by what is at that path. */
int topo_load_path(const struct topo_source *source, const char *path, tutti_topo_t *out);

/* TUTTI_TOPO_COLOR and _UTF8, as fits where `to` leads. */
unsigned topo_flags(const struct topo_source *source, FILE *to);
/* Print in a format and write it: the exit code. */
int topo_print(tutti_topo_t topo, tutti_topo_format format, unsigned flags, FILE *to);
/* Draw with Graphviz: the exit code. */
int topo_draw(tutti_topo_t topo, FILE *to);
int topo_draw_text(const char *text, FILE *to);

/* Run argv[0] with these ends; -1: no input, our own output. -1: it cannot be started
 * (errno), else its exit code. */
int topo_run_program(char *const argv[], int in, int out);

/* What a .tar of a machine was unpacked into, or is packed from. */
struct topo_unpacked {
	char *folder; /* to be removed                                     */
	char *root;   /* the machine in it: has sys/ and maybe proc/ below */
};
/* false: said why. */
bool topo_unpack(const char *tarball, struct topo_unpacked *out);
void topo_remove(struct topo_unpacked *unpacked);

extern const struct command command_topo_gather;
extern const struct command command_topo_merge;

#endif
