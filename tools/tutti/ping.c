/* SPDX-License-Identifier: BSD-3-Clause */
#include "ping.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool ping_take_peer(const char *label, const char *value, void *field)
{
	int *const peer = field;
	const char *const comma = strchr(value, ',');
	char first[16];

	if (!comma || comma - value >= (long)sizeof(first)) {
		tool_bad_usage("%s '%s' is no pair of ranks: 0,1 for example", label, value);
		return false;
	}
	memcpy(first, value, (size_t)(comma - value));
	first[comma - value] = 0;
	if (!cli_int(label, first, 0, RANKS_MOST - 1, &peer[0]) ||
	    !cli_int(label, comma + 1, 0, RANKS_MOST - 1, &peer[1]))
		return false;
	if (peer[0] != peer[1])
		return true;
	tool_bad_usage("--peer %d,%d: nothing lies between a rank and itself", peer[0], peer[1]);
	return false;
}

int ping_run(void *options)
{
	const struct ping_options *const o = options;
	const struct ranks ranks = {
		.nranks = o->nranks,
		.page_bytes = sizeof(struct ranks_page),
		.self = options,
		.main = ping_rank_main,
	};

	if (o->nranks && (o->peer[0] >= o->nranks || o->peer[1] >= o->nranks))
		return tool_bad_usage("--peer %d,%d: there are ranks 0 to %d", o->peer[0],
				      o->peer[1], o->nranks - 1);
	if (!ranks_are_few(o->nranks))
		return TOOL_USAGE;
	/* What was asked for here wins over the environment. */
	if (o->transport && setenv("TUTTI_TRANSPORT", o->transport, 1))
		return tool_fail("out of memory");
	return ranks_run(&ranks);
}
