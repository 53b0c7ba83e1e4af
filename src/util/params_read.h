/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PARAMS_READ_H
#define TTI_UTIL_PARAMS_READ_H

/* Reading the parameters without reporting what is wrong with them: for the logger and fault
 * injection, which are set up from the parameters. tti_params() logs the notes.
 *
 * Threads: any; what tti_params_quiet() and tti_params_notes() return never changes. */

#include <stdbool.h>
#include <stddef.h>

#define TTI_PARAM_PREFIX "TUTTI_"

struct tti_param_values;

/* What is wrong with the environment. */
struct tti_param_notes {
	char text[4096]; /* lines, each ends in \n */
	size_t len;
	int dropped;
};

const struct tti_param_values *tti_params_quiet(void);
const struct tti_param_notes *tti_params_notes(void);

struct tti_param_desc {
	const char *variable, *type, *def, *range, *help;
};

/* How many there are; the i-th (NULL past the last); its value in force as text ("(set)" for a
 * secret; valid forever; NULL past the last), and whether it was set. */
int tti_param_count(void);
const struct tti_param_desc *tti_param_desc(int index);
const char *tti_param_text(int index, bool *is_set);

/* Whether a field of tti_params() was set. */
bool tti_param_is_set(const void *field);

/* Read from an environ-like array. Strings in *out are borrowed from env. */
void tti_params_read_env(char *const *env, struct tti_param_values *out,
			 struct tti_param_notes *notes);

#endif
