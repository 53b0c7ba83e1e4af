/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "tool.h"

/* The hosts of --hosts, and then those of --hostfile. */
static int read_hosts(const struct run_options *options, struct hosts *out)
{
	for (int i = 0; i < options->hosts.n; i++)
		if (!hosts_parse(options->hosts.at[i], out))
			return TOOL_USAGE;
	for (int i = 0; i < options->hostfiles.n; i++)
		if (!hosts_read(options->hostfiles.at[i], out))
			return TOOL_USAGE;
	return TOOL_GOOD;
}

static int run_somewhere(struct run_options *options, struct hosts *hosts)
{
	struct job *const job = &options->job;

	/* Programs of NCCL often have all ranks in one process. */
	if (!job->nranks && !hosts->n && job->gpus)
		job->nranks = 1;
	if (!job->nranks && !hosts->n)
		return tool_bad_usage("say how many ranks to start: -n RANKS");
	if (!job->program)
		return tool_bad_usage("say which program to run");
	if (!hosts->n)
		return run_local(job);
	job->nranks = hosts_deal(hosts, job->nranks);
	return job->nranks ? run_on_hosts(job, hosts, options->shell, options->port) : TOOL_USAGE;
}

int run_run(void *self)
{
	struct run_options *const options = self;
	struct hosts hosts = { 0 };
	int code;

	if (options->is_agent)
		return run_agent();
	code = read_hosts(options, &hosts);
	if (code == TOOL_GOOD)
		code = run_somewhere(options, &hosts);
	hosts_free(&hosts);
	return code;
}
