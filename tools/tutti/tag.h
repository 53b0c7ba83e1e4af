/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TAG_H
#define TOOL_TAG_H

/* A pipe from a rank, or from the ranks of a host. Each line is printed by one write, that of a rank with
 * its number in front, so the lines of several ranks never mix.
 *
 * Owner: the launch. */

#include <stdbool.h>
#include <stddef.h>

#define TAG_ROOM 4096

struct tag_stream {
	int rank; /* -1: nothing in front */
	/* Is given each whole line first; if it returns true the line is not printed. May be NULL. */
	bool (*take)(void *self, const char *line, size_t len);
	void *self;
	int read_fd;   /* -1: at its end */
	int write_fd;  /* the rank's side; -1 once the rank has it */
	int target_fd; /* ours: 1 or 2 */
	size_t len;
	char text[TAG_ROOM]; /* the start of a line whose end has not come yet */
};

bool tag_open(struct tag_stream *tag, int rank, int target_fd);

/* Print the lines that have come. At the end of the stream read_fd becomes -1. */
void tag_pump(struct tag_stream *tag);

void tag_close(struct tag_stream *tag);

#endif
