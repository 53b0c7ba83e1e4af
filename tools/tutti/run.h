/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RUN_H
#define TOOL_RUN_H

/* `tutti run` starts ranks on this host, or on several. On each of several hosts it starts itself once more as
 * an agent, and the agent starts the ranks there.
 *
 * An agent reads the job from its standard input, one line of JSON, and then a byte for each signal
 * (launch.h). The agent of rank 0 finds a port for it and prints that in the first line of its output. The
 * other agents are sent the job when that line has come. */

#include <limits.h>
#include <stdbool.h>

#include "cli.h"
#include "hosts.h"

#define RUN_PORT_LINE "tutti-run-port "

struct launch;

struct job {
	int nranks; /* on this host */
	char **program;
	char dir[PATH_MAX]; /* private folder with the file of the id; "" for an agent */
	bool tag;
	bool no_bind;
	bool keep_going;
	bool shared_malloc;
	int gpus; /* devices of CUDA that each rank has, of host memory; 0: as the machine has it */
	bool json;

	/* For an agent: */
	bool is_agent;
	int first_rank, nranks_all;
	char address[320]; /* host:port of rank 0 */
	char secret[65];
};

/* How a host is reached. ssh asks nothing on the terminal, as several would ask at once, and notices a host
 * that is gone. */
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
int run_local(struct job *job);

/* Run the job on hosts that hosts_deal() has given its ranks. `shell` is a command that is given a host and
 * a command to run there. Port 0 means a free one. Returns the exit code. */
int run_on_hosts(const struct job *job, const struct hosts *hosts, const char *shell, int port);

/* Be the agent of a host; the exit code. */
int run_agent(void);

/* Print how the job ended: its ranks, its exit code and, if a rank or the shell to a host was the cause of
 * a failure, which one, and the signal that killed it. */
void run_print_json(const struct job *job, const struct launch *launch, int code);

#endif
