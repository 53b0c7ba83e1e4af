/* SPDX-License-Identifier: BSD-3-Clause */
#include "show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "tool.h"

#define MAX_RANKS 1000000

/* The algorithms of collectives that have none of their own. */
static const char *what_runs(tutti_collective coll)
{
	switch ((int)coll) {
	case TUTTI_ALL_GATHER_V:
		return "it runs those of all_gather";
	case TUTTI_REDUCE_SCATTER_V:
		return "it runs those of reduce_scatter";
	default:
		return "it runs those of send_recv, for each two ranks that have something for "
		       "one another";
	}
}

static int list_algorithms(const struct show_options *show, tutti_collective coll)
{
	const char *name;

	if (!tutti_algorithm_name(coll, 0))
		fprintf(stderr, "%s has no algorithms of its own: %s\n",
			tutti_collective_name(coll), what_runs(coll));

	for (int i = 0; (name = tutti_algorithm_name(coll, i)) != NULL; i++) {
		if (!show->json)
			printf("%s\n", name);
		else if (!tool_print_json(json_pack("{s:s, s:s}", "collective",
						    tutti_collective_name(coll), "algorithm",
						    name)))
			return TOOL_FINDING;
	}
	return TOOL_GOOD;
}

/* "4,4,2": ranks 0 to 3 on the first host, and so on. Which host each rank is on, and how
 * many ranks there are; NULL: it is no such list, and the error was printed. */
static int *read_hosts(const char *list, int *nranks_out)
{
	int *host_of = NULL, nranks = 0;
	const char *at = list;

	for (int host = 0; at; host++) {
		char *end;
		const long size = strtol(at, &end, 10);
		int *more = NULL;

		if (*at >= '0' && *at <= '9' && (*end == ',' || !*end) && size > 0 &&
		    size <= MAX_RANKS - nranks)
			more = realloc(host_of, (size_t)(nranks + size) * sizeof(*more));
		if (!more) {
			free(host_of);
			tool_bad_usage("--hosts '%s': how many ranks on each, like 4,4,2", list);
			return NULL;
		}
		host_of = more;
		for (int end_rank = nranks + (int)size; nranks < end_rank; nranks++)
			host_of[nranks] = host;
		at = *end ? end + 1 : NULL;
	}
	*nranks_out = nranks;
	return host_of;
}

static int print_program(const struct show_options *show, const int *host_of, tutti_collective coll)
{
	tutti_status status;
	char *text = NULL;
	size_t len;

	if (!coll_find_algorithm(coll, show->algorithm))
		return TOOL_USAGE;
	if (!show->nranks)
		return tool_bad_usage("say for how many ranks: -n RANKS, or --hosts LIST");
	if (show->root >= show->nranks)
		return tool_bad_usage("--root %d is no rank of %d: they are 0 to %d", show->root,
				      show->nranks, show->nranks - 1);
	if (show->rank >= show->nranks)
		return tool_bad_usage("--rank %d is no rank of %d: they are 0 to %d", show->rank,
				      show->nranks, show->nranks - 1);
	status = tutti_program_print_hosts(coll, show->algorithm, host_of, show->nranks, show->root,
					   show->rank, show->json, &text);
	if (status == TUTTI_EINVAL || status == TUTTI_EUNSUPPORTED)
		return tool_bad_usage("%s", tool_why(NULL, status));
	if (status)
		return tool_fail("%s", tool_why(NULL, status));
	len = strlen(text);
	fwrite(text, 1, len, stdout);
	if (len && text[len - 1] != '\n')
		putchar('\n');
	free(text);
	return TOOL_GOOD;
}

static int print_over_hosts(struct show_options *show, tutti_collective coll)
{
	const int nranks = show->nranks;
	int *host_of = read_hosts(show->hosts, &show->nranks);
	int code;

	if (!host_of)
		return TOOL_USAGE;
	if (nranks && nranks != show->nranks)
		code = tool_bad_usage("-n %d, but --hosts %s has %d ranks", nranks, show->hosts,
				      show->nranks);
	else
		code = print_program(show, host_of, coll);
	free(host_of);
	return code;
}

int show_run(void *options)
{
	struct show_options *const show = options;
	const tutti_collective coll = (tutti_collective)show->collective;

	if (show->check)
		return show_check(show->check, show->nbytes, show->json);
	if (show->collective < 0)
		return tool_bad_usage("say which collective, or --check FILE");
	if (!show->algorithm)
		return list_algorithms(show, coll);
	if (!show->hosts)
		return print_program(show, NULL, coll);
	return print_over_hosts(show, coll);
}
