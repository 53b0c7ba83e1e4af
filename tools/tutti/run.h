/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RUN_H
#define TOOL_RUN_H

/* What `tutti run` starts: ranks on this host, or on several, where it is started once more on each as
 * an agent, which starts the ranks there.
 *
 * The agent is told by its standard input: one line of JSON, which is the job, and then a byte for
 * each signal (launch.h). The one with rank 0 finds a port for it, and says that in the first line of its
 * output; the others are told theirs when that has come. */

#include <limits.h>
#include <stdbool.h>

#include "cli.h"
#include "hosts.h"

#define RUN_PORT_LINE "tutti-run-port "

struct job {
	int nranks; /* on this host */
	char **program;
	char dir[PATH_MAX]; /* private; the id's file is in it. Of an agent: "" */
	bool tag;
	bool no_bind;
	bool keep_going;
	bool shared_malloc;
	int gpus; /* devices of CUDA that each rank has, of host memory; 0: as the machine has it */
	bool json;

	/* Of an agent: */
	bool is_agent;
	int first_rank, nranks_all;
	char address[320]; /* host:port of rank 0 */
	char secret[65];
};

/* How a host is reached: no question on the terminal, as several would ask at once; and a host that
 * is gone is noticed. */
#define RUN_SHELL "ssh -x -o BatchMode=yes -o ServerAliveInterval=10"

struct run_options {
	struct job job;
	struct cli_list hosts, hostfiles;
	const char *shell;
	int port; /* 0: a free one */
	bool is_agent;
};

int run_run(void *options);

/* Run the ranks of this host; the exit code. */
int run_guarded(struct job *job);

/* Run the job on hosts, which have been dealt its ranks, through `shell`, words of a command that takes
 * the host and what to run there; port 0: a free one. The exit code. */
int run_on_hosts(const struct job *job, const struct hosts *hosts, const char *shell, int port);

/* Be the agent of a host; the exit code. */
int run_agent(void);

#endif
