/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti show: the program of an algorithm, and the proof of one in a file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"

enum { OPT_ALGORITHM = ARGS_FIRST_FREE, OPT_RANK, OPT_CHECK, OPT_HOSTS, OPT_BYTES };

#define MAX_RANKS 1000000

struct show {
	const char *collective;
	const char *algorithm;
	const char *check;
	const char *hosts;
	int nranks;
	int root;
	int rank;
	size_t nbytes; /* of the vector, for --check */
	bool json;
};

/* What calls run that have no algorithms of their own to choose from. */
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

static int list_algorithms(const struct show *show, tutti_collective coll)
{
	const char *name;

	if (!tutti_algorithm_name(coll, 0))
		fprintf(stderr, "%s has no algorithms of its own: %s\n", show->collective,
			what_runs(coll));

	for (int i = 0; (name = tutti_algorithm_name(coll, i)) != NULL; i++) {
		if (!show->json)
			printf("%s\n", name);
		else if (!tool_print_json(json_pack("{s:s, s:s}", "collective", show->collective,
						    "algorithm", name)))
			return TOOL_FINDING;
	}
	return TOOL_GOOD;
}

/* "4,4,2": ranks 0 to 3 on the first host, and so on. Which host each rank is on, and how
 * many ranks there are; NULL: no such list, and said so. */
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

static int print_program(const struct show *show, const int *host_of, tutti_collective coll)
{
	tutti_status status;
	char *text = NULL;
	size_t len;

	if (!tool_find_algorithm(coll, show->algorithm))
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

static int print_over_hosts(struct show *show, tutti_collective coll)
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

static bool take_option(struct show *show, int id, const char *value)
{
	switch (id) {
	case ARGS_POSITIONAL:
		if (show->collective) {
			tool_bad_usage("shows one collective, it was given '%s' and '%s'",
				       show->collective, value);
			return false;
		}
		show->collective = value;
		return true;
	case 'n':
		return cli_int("-n", value, 1, INT_MAX, &show->nranks);
	case 'r':
		return cli_int("--root", value, 0, INT_MAX, &show->root);
	case OPT_RANK:
		return cli_int("--rank", value, 0, INT_MAX, &show->rank);
	case OPT_ALGORITHM:
		show->algorithm = value;
		return true;
	case OPT_CHECK:
		show->check = value;
		return true;
	case OPT_HOSTS:
		show->hosts = value;
		return true;
	case OPT_BYTES:
		return cli_size("--bytes", value, 0, &show->nbytes);
	default:
		show->json = true;
		return true;
	}
}

static int run(struct args *args)
{
	struct show show = { .rank = -1, .nbytes = (size_t)1 << 20 };
	tutti_collective coll;
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_BAD || !take_option(&show, id, value))
			return TOOL_USAGE;
	}
	if (show.check) {
		if (show.collective || show.algorithm)
			return tool_bad_usage("--check reads everything from the file, leave "
					      "out the collective and the algorithm");
		return show_check(show.check, show.nbytes, show.json);
	}
	if (!show.collective)
		return tool_bad_usage("say which collective, or --check FILE");
	if (!tool_find_collective(show.collective, &coll))
		return TOOL_USAGE;
	if (!show.algorithm)
		return list_algorithms(&show, coll);
	if (!show.hosts)
		return print_program(&show, NULL, coll);
	return print_over_hosts(&show, coll);
}

static const struct args_option options[] = {
	{ OPT_ALGORITHM, "algorithm", "NAME", "which; without it the names are listed" },
	{ 'n', "nranks", "RANKS", "for how many ranks" },
	{ OPT_HOSTS, "hosts", "LIST", "on hosts of so many ranks each: 4,4,2" },
	{ 'r', "root", "R", "root of broadcast and reduce (0)" },
	{ OPT_RANK, "rank", "K", "the program of this rank alone" },
	{ OPT_CHECK, "check", "FILE", "prove the algorithm in FILE (- for standard input)" },
	{ OPT_BYTES, "bytes", "SIZE", "of the vector that --check tells bytes and time of (1M)" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_show = {
	.name = "show",
	.summary = "the steps of an algorithm, or the proof of one in a file",
	.usage = "show COLLECTIVE [--algorithm NAME -n RANKS] | show --check FILE",
	.notes = "What 'show' prints as text for all ranks, 'show --check' reads, and XML as "
		 "MSCCL's\n"
		 "tools write it: what TUTTI_ALGO_FILE takes.\n",
	.options = options,
	.run = run,
};
