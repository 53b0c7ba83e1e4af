/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TOPO_H
#define TOOL_TOPO_H

/* Shared by the verbs about topologies: where one comes from, how it is printed. */

#include <stdbool.h>
#include <stdio.h>

#include "cli.h"
#include "tutti/insight.h"

enum { TOPO_AUTO, TOPO_ALWAYS, TOPO_NEVER };

struct topo_source {
	struct tutti_topo_config config;
	int color; /* TOPO_AUTO and so on */
	bool json;
};
/* clang-format off */
#define TOPO_SOURCE_INIT { TUTTI_TOPO_CONFIG_INIT, TOPO_AUTO, false }
/* clang-format on */

struct topo_options {
	struct topo_source source;
	const char *output; /* a file; NULL: our output */
	int format;
};

struct topo_diff_options {
	struct topo_source source;
	const char *paths[2];
};

struct topo_gather_options {
	const char *file;
	bool json;
};
#define TOPO_GATHER_FILE "tutti-topo.tar.gz"

struct topo_merge_options {
	struct cli_list hosts;
	const char *rails;
	bool json;
};

int topo_run(void *options);
int topo_lint_run(void *source);
int topo_diff_run(void *options);
int topo_gather_run(void *options);
int topo_merge_run(void *options);
int paths_run(void *source);

/* Load; a .tar is unpacked into a folder that is gone when this returns. TOOL_GOOD, or
 * the exit code after the message is out. */
int topo_load(const struct topo_source *source, tutti_topo_t *out);
/* A file, a captured machine or its .tar, by what is at that path. */
int topo_load_path(const struct topo_source *source, const char *path, tutti_topo_t *out);

/* "FILE:4": where the count begins, and *count is 4; else the end of text, and *count is 0. "FILE*4" is
 * the same until version 0.2, with a warning. -1: it is no count from 1 to `most`, and that is said. */
long topo_find_count(const char *text, int most, int *count);

/* TUTTI_TOPO_COLOR and _UTF8, as fits where `to` leads. */
unsigned topo_flags(const struct topo_source *source, FILE *to);
/* Print in a format and write it: the exit code. */
int topo_print(tutti_topo_t topo, tutti_topo_format format, unsigned flags, FILE *to);
/* Draw with Graphviz: the exit code. */
int topo_draw(tutti_topo_t topo, FILE *to);
/* `text` is taken. */
int topo_draw_text(char *text, FILE *to);

/* Run argv[0] with these ends; -1: no input, our own output. -1: it cannot be started
 * (errno), else its exit code. */
int topo_run_program(char *const argv[], int in, int out);

/* The folder that a .tar of a machine is unpacked into, or packed from. */
struct topo_unpacked {
	char *folder; /* to be removed                                     */
	char *root;   /* the machine in it: has sys/ and maybe proc/ below */
};
/* Make the folder of `template`, which ends in XXXXXX; topo_remove() removes it. False: it failed, and the error was printed. */
bool topo_make_folder(char *template, struct topo_unpacked *out);
/* False: it failed, and the error was printed. */
bool topo_unpack(const char *tarball, struct topo_unpacked *out);
void topo_remove(struct topo_unpacked *unpacked);

#endif
