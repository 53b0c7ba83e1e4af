/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TAG_H
#define TOOL_TAG_H

/* A pipe from a rank whose lines come out with the rank in front, each in one
 * write: lines of several ranks never mix.
 *
 * Owner: the launch. */

#include <stdbool.h>
#include <stddef.h>

#define TAG_ROOM 4096

struct tag_stream {
	int rank;
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
