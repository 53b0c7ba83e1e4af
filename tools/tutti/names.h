/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_NAMES_H
#define TOOL_NAMES_H

/* Words to choose from, and which one is meant by a word that is none of them. */

#include <stddef.h>

/* The i-th word; NULL behind the last. */
struct names {
	const char *(*get)(const void *self, int i);
	const void *self;
};

/* Its number; -1: it is none of them. */
int names_find(const struct names *names, const char *word);

/* The one that differs from `word` by case, - or _, or by a slip of the finger; NULL: none does. */
const char *names_nearest(const struct names *names, const char *word);

/* "a, b or c" */
void names_join(const struct names *names, const char *last, char *out, size_t size);

/* As names_find(), but -1 after an error: "`what` 'word'; is X meant?", or a list of the names. */
int names_choose(const struct names *names, const char *what, const char *word);

#endif
