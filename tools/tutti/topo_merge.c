/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti topo merge: many hosts as one cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

enum { OPT_RAILS = ARGS_FIRST_FREE };

struct merge {
	tutti_cluster_t cluster;
	const char *rails;
	int nhosts;
	bool json;
};

/* The length of what stands for the name in "NAME=FILE": a file may hold a =, too. */
static size_t name_length(const char *text)
{
	const size_t len = strcspn(text, "=/");

	return text[len] == '=' ? len : 0;
}

/* Where "*COUNT" begins, or the end. */
static size_t count_offset(const char *text)
{
	const char *star = strrchr(text, '*');

	if (star && star[1] && star[1 + strspn(star + 1, "0123456789")] == '\0')
		return (size_t)(star - text);
	return strlen(text);
}

/* The file without folders and .xml. */
static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = strdup(slash && slash[1] ? slash + 1 : path);
	const size_t len = name ? strlen(name) : 0;

	if (len > 4 && !strcmp(name + len - 4, ".xml"))
		name[len - 4] = '\0';
	for (char *at = name; at && *at; at++)
		if (*at <= ' ' || *at >= 0x7f)
			*at = '_';
	return name;
}

static int add_host(struct merge *merge, const char *text)
{
	const size_t nname = name_length(text);
	const char *path = nname ? text + nname + 1 : text;
	const size_t npath = count_offset(path);
	char *file = strndup(path, npath);
	char *name = nname ? strndup(text, nname) : file ? name_of(file) : NULL;
	int count = 0;
	int code = TOOL_GOOD;
	tutti_status status;

	if (!file || !name)
		code = tool_fail("out of memory");
	else if (path[npath] && !cli_int(text, path + npath + 1, 1, 1000000, &count))
		code = TOOL_USAGE;
	if (code == TOOL_GOOD) {
		status = tutti_cluster_add(merge->cluster, name, file, count);
		if (status)
			code = tool_fail("%s", tool_why(NULL, status));
	}
	free(file);
	free(name);
	merge->nhosts++;
	return code;
}

static int take(struct merge *merge, int id, const char *value)
{
	switch (id) {
	case ARGS_POSITIONAL:
		return add_host(merge, value);
	case OPT_RAILS:
		merge->rails = value;
		return TOOL_GOOD;
	case ARGS_JSON:
		merge->json = true;
		return TOOL_GOOD;
	default:
		return TOOL_USAGE;
	}
}

static int print(struct merge *merge)
{
	tutti_status status = TUTTI_OK;
	char *text = NULL;

	if (!merge->nhosts)
		return tool_bad_usage("say which hosts: [NAME=]FILE[*COUNT] ...");
	if (merge->rails)
		status = tutti_cluster_read_rails(merge->cluster, merge->rails);
	if (status == TUTTI_OK)
		status = tutti_cluster_print(merge->cluster, merge->json, &text);
	if (status)
		return tool_fail("%s", tool_why(NULL, status));
	fputs(text, stdout);
	free(text);
	return TOOL_GOOD;
}

static int run(struct args *args)
{
	struct merge merge = { 0 };
	const char *value;
	int id, code = TOOL_GOOD;

	if (tutti_cluster_make(&merge.cluster) != TUTTI_OK)
		return tool_fail("%s", tutti_last_error(NULL));
	while (code == TOOL_GOOD && (id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP) {
			tutti_cluster_free(merge.cluster);
			return TOOL_GOOD;
		}
		code = take(&merge, id, value);
	}
	if (code == TOOL_GOOD)
		code = print(&merge);
	tutti_cluster_free(merge.cluster);
	return code;
}

static const struct args_option options[] = {
	{ OPT_RAILS, "rails", "FILE", "lines of HOST NIC RAIL [GROUP]" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_topo_merge = {
	.name = "topo merge",
	.summary = "many hosts as one cluster: kinds, rails, domains, who differs",
	.usage = "topo merge [NAME=]FILE[*COUNT]... [--rails FILE] [--json]",
	.notes = "FILE is a topology file or the folder of a captured machine; it describes the "
		 "host\n"
		 "NAME (the file's name), or with *COUNT the hosts NAME0, NAME1 and so on\n"
		 "(NAME-0, NAME-1 if NAME ends with a digit).\n"
		 "In the file of rails HOST may hold * and ?, RAIL is a number or -, and # begins\n"
		 "a comment; of several lines for a NIC the last counts.\n",
	.options = options,
	.run = run,
};
