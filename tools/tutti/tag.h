/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TAG_H
#define TOOL_TAG_H

/* A pipe from a rank, or from the ranks of a host, whose lines come out each in one
 * write, those of a rank with its number in front: lines of several never mix.
 *
 * Owner: the launch. */

#include <stdbool.h>
#include <stddef.h>

#define TAG_ROOM 4096

struct tag_stream {
	int rank; /* -1: nothing in front */
	/* Sees each whole line first; true: it is not to come out. NULL: there is none. */
	bool (*take)(void *self, const char *line, size_t len);
	void *self;
	int read_fd;   /* -1: at its end */
	int write_fd;  /* the rank's side; -1 once the rank has it */
	int target_fd; /* ours: 1 or 2 */
	size_t len;
	char text[TAG_ROOM]; /* the start of a line that has no end yet */
};

bool tag_open(struct tag_stream *tag, int rank, int target_fd);

/* Pass on what is there; at the end of the stream read_fd becomes -1. */
void tag_pump(struct tag_stream *tag);

void tag_close(struct tag_stream *tag);

#endif
