/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti ping: options. */
#include <stdlib.h>
#include <string.h>

#include "ping.h"

enum { OPT_RANKS = ARGS_FIRST_FREE, OPT_PEER, OPT_SECONDS, OPT_BYTES, OPT_REACH, OPT_TRANSPORT };

static bool take_whom(struct ping_options *o, const char *value)
{
	if (!strcmp(value, "hosts"))
		o->whom = PING_HOSTS;
	else if (!strcmp(value, "all"))
		o->whom = PING_RANKS;
	else
		tool_bad_usage("--ranks '%s' is neither hosts (one rank of each) nor all", value);
	return o->whom != PING_AUTO;
}

static bool take_peer(struct ping_options *o, const char *value)
{
	const char *const comma = strchr(value, ',');
	char first[16];

	if (!comma || comma - value >= (long)sizeof(first)) {
		tool_bad_usage("--peer '%s' is no pair of ranks: 0,1 for example", value);
		return false;
	}
	memcpy(first, value, (size_t)(comma - value));
	first[comma - value] = 0;
	if (!cli_int("--peer", first, 0, RANKS_MOST - 1, &o->peer[0]) ||
	    !cli_int("--peer", comma + 1, 0, RANKS_MOST - 1, &o->peer[1]))
		return false;
	if (o->peer[0] != o->peer[1])
		return true;
	tool_bad_usage("--peer %d,%d: nothing lies between a rank and itself", o->peer[0],
		       o->peer[1]);
	return false;
}

static bool take_seconds(const char *option, const char *value, double *out)
{
	char *end;
	const double seconds = strtod(value, &end);

	if (end == value || *end || !(seconds >= 0.001 && seconds <= 3600)) {
		tool_bad_usage("%s '%s' is no time from 0.001 to 3600 seconds", option, value);
		return false;
	}
	*out = seconds;
	return true;
}

static bool take_option(struct ping_options *o, int id, const char *value)
{
	switch (id) {
	case 'n':
		return cli_int("-n", value, 2, RANKS_MOST, &o->nranks);
	case OPT_RANKS:
		return take_whom(o, value);
	case OPT_PEER:
		return take_peer(o, value);
	case OPT_SECONDS:
		return take_seconds("--seconds", value, &o->ping.seconds);
	case OPT_REACH:
		return take_seconds("--reach", value, &o->ping.reach);
	case OPT_BYTES:
		return cli_size("--bytes", value, 1, &o->ping.bytes);
	case OPT_TRANSPORT:
		o->transport = value;
		return true;
	default:
		o->json = true;
		return true;
	}
}

static int run(struct args *args)
{
	struct ping_options o = {
		.ping = TUTTI_PING_OPTIONS_INIT,
		.peer = { -1, -1 },
	};
	struct ranks ranks = {
		.page_bytes = sizeof(struct ranks_page),
		.self = &o,
		.main = ping_rank_main,
	};
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_POSITIONAL)
			return tool_bad_usage("takes options only, it was given '%s'", value);
		if (id == ARGS_BAD || !take_option(&o, id, value))
			return TOOL_USAGE;
	}
	if (o.nranks && (o.peer[0] >= o.nranks || o.peer[1] >= o.nranks))
		return tool_bad_usage("--peer %d,%d: there are ranks 0 to %d", o.peer[0], o.peer[1],
				      o.nranks - 1);
	/* What was asked for here wins over the environment. */
	if (o.transport && setenv("TUTTI_TRANSPORT", o.transport, 1))
		return tool_fail("out of memory");
	ranks.nranks = o.nranks;
	return ranks_run(&ranks);
}

static const struct args_option options[] = {
	{ 'n', "nranks", "RANKS", "start so many ranks here; without: be one of a launcher's" },
	{ OPT_RANKS, "ranks", "hosts|all",
	  "one rank of each host, or every two ranks (hosts; on one host: all)" },
	{ OPT_PEER, "peer", "A,B", "these two ranks alone" },
	{ OPT_SECONDS, "seconds", "TIME", "to spend on a lane, and on all together (0.3)" },
	{ OPT_BYTES, "bytes", "SIZE", "send no more in one direction of one measurement" },
	{ OPT_REACH, "reach", "TIME", "seconds until two ranks count as not connected (10)" },
	{ OPT_TRANSPORT, "transport", "LIST", "auto, or a list like shm,tcp" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_ping = {
	.name = "ping",
	.summary = "what each lane between the nodes carries, and what is wrong with it",
	.usage = "ping [-n RANKS] [--ranks hosts|all] [--peer A,B] [OPTIONS]",
	.notes =
		"Rates are GB/s of payload from one rank's memory to the other's, over the lanes "
		"and messages\nthat collectives use; round trips are of 8 bytes. No host is in two "
		"measurements at a time.\n"
		"--json prints an object for each pair, and one for what is found by comparing "
		"them.\n"
		"Exit code 1: something is wrong; what is only remarkable is printed and does not "
		"count.\n"
		"Without -n this process is a rank of the job that mpirun, srun or torchrun has "
		"started.\n",
	.options = options,
	.run = run,
};
