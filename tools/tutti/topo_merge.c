/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti topo merge: many hosts as one cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "topo.h"

#define MOST_HOSTS 1000000

/* The length of what stands for the name in "NAME=FILE": a file may hold a =, too. */
static size_t name_length(const char *text)
{
	const size_t len = strcspn(text, "=/");

	return text[len] == '=' ? len : 0;
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

static int add_host(tutti_cluster_t cluster, const char *text)
{
	const size_t nname = name_length(text);
	const char *path = nname ? text + nname + 1 : text;
	int count = 0;
	const long npath = topo_find_count(path, MOST_HOSTS, &count);
	char *file, *name;
	tutti_status status;
	int code = TOOL_GOOD;

	if (npath < 0)
		return TOOL_USAGE;
	file = strndup(path, (size_t)npath);
	name = nname ? strndup(text, nname) : file ? name_of(file) : NULL;
	if (!file || !name) {
		code = tool_fail("out of memory");
	} else {
		status = tutti_cluster_add(cluster, name, file, count);
		if (status)
			code = tool_fail("%s", tool_why(NULL, status));
	}
	free(file);
	free(name);
	return code;
}

static int print(tutti_cluster_t cluster, const struct topo_merge_options *options)
{
	tutti_status status = TUTTI_OK;
	char *text = NULL;

	if (options->rails)
		status = tutti_cluster_read_rails(cluster, options->rails);
	if (status == TUTTI_OK)
		status = tutti_cluster_print(cluster, options->json, &text);
	return status ? tool_fail("%s", tool_why(NULL, status)) : tool_write(text, stdout);
}

int topo_merge_run(void *self)
{
	const struct topo_merge_options *const options = self;
	tutti_cluster_t cluster;
	int code = TOOL_GOOD;

	if (tutti_cluster_make(&cluster) != TUTTI_OK)
		return tool_fail("%s", tutti_last_error(NULL));
	for (int i = 0; code == TOOL_GOOD && i < options->hosts.n; i++)
		code = add_host(cluster, options->hosts.at[i]);
	if (code == TOOL_GOOD)
		code = print(cluster, options);
	tutti_cluster_free(cluster);
	return code;
}
