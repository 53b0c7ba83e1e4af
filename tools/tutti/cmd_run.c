/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti run: start the ranks of a program on this machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts.h"
#include "launch.h"
#include "run.h"
#include "run_preload.h"
#include "tool.h"

enum {
	OPT_TAG = ARGS_FIRST_FREE,
	OPT_NO_BIND,
	OPT_KEEP_GOING,
	OPT_SHARED_MALLOC,
	OPT_GPUS,
	OPT_HOSTS,
	OPT_HOSTFILE,
	OPT_SHELL,
	OPT_PORT,
	OPT_AGENT
};

/* No question on the terminal, as several would ask at once; and a host that is gone is noticed. */
#define SHELL_USUAL "ssh -x -o BatchMode=yes -o ServerAliveInterval=10"

/* What a shell says: 126 is there but cannot be run, 127 is not there. */
#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_FOUND    127

/* The ranks of one host find each other through a file in a directory that only we can
 * read, those of several by an address. A TUTTI_COMM_ID of the user's names another job, so it must not
 * reach these ranks. */
static bool set_environment(const struct job *job)
{
	char text[sizeof(job->dir) + 4];
	bool good;

	snprintf(text, sizeof(text), "%d", job->is_agent ? job->nranks_all : job->nranks);
	good = setenv("TUTTI_NRANKS", text, 1) == 0;
	snprintf(text, sizeof(text), "%d", (int)getpid());
	good = good && setenv("TUTTI_PTRACER", text, 0) == 0;
	if (job->is_agent)
		return good && setenv("TUTTI_COMM_ID", job->address, 1) == 0 &&
		       setenv("TUTTI_COMM_SECRET", job->secret, 1) == 0 &&
		       unsetenv("TUTTI_COMM_FILE") == 0;
	snprintf(text, sizeof(text), "%s/id", job->dir);
	return good && setenv("TUTTI_COMM_FILE", text, 1) == 0 && unsetenv("TUTTI_COMM_ID") == 0 &&
	       unsetenv("TUTTI_COMM_SECRET") == 0;
}

/* Of the system, so it is no parameter of the library. */
static const char *tmpdir(void)
{
	static const char name[] = "TMPDIR=";

	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, name, strlen(name)) == 0)
			return *entry + strlen(name);
	return "";
}

/* In the first folder that can be written to: containers often have a /tmp that cannot. */
static bool make_dir(struct job *job)
{
	const char *const folders[] = { tmpdir(), "/tmp", "/dev/shm" };
	int error = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (folders[i][0] != '/')
			continue;
		if (snprintf(job->dir, sizeof(job->dir), "%s/tutti-run-XXXXXX", folders[i]) <
			    (int)sizeof(job->dir) &&
		    mkdtemp(job->dir))
			return true;
		error = error ? error : errno;
	}
	tool_fail("cannot make a directory for the ranks to meet, neither below TMPDIR nor in /tmp "
		  "or /dev/shm: %s; set TMPDIR to a folder that can be written to",
		  strerror(error));
	job->dir[0] = '\0';
	return false;
}

static void remove_dir(const struct job *job)
{
	DIR *dir = job->dir[0] ? opendir(job->dir) : NULL;
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(job->dir);
}

/* In the child. Tells `failed_fd` what went wrong; a good exec closes it. */
static void exec_rank(const struct job *job, int rank, int failed_fd)
{
	char text[16];
	int error, null;
	ssize_t n;

	snprintf(text, sizeof(text), "%d", job->first_rank + rank);
	if (rank > 0 || job->is_agent) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, 0);
	}
	if (setenv("TUTTI_RANK", text, 1) == 0)
		execvp(job->program[0], job->program);
	error = errno;
	do
		n = write(failed_fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
}

/* 0, or the errno for which rank 0 could not be started; then nobody is. */
static int start_ranks(struct launch *launch, const struct job *job)
{
	int fds[2], error = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno;
	for (int rank = 0; rank < job->nranks && !launch->ending; rank++) {
		pid = launch_fork(launch, rank);
		if (pid == 0)
			exec_rank(job, rank, fds[1]);
		if (pid < 0)
			launch_end(launch, SIGTERM, TOOL_FINDING);
		if (pid < 0 || rank > 0)
			continue;
		/* The first tells for all whether the program can be run. */
		close(fds[1]);
		fds[1] = -1;
		do
			n = read(fds[0], &error, sizeof(error));
		while (n < 0 && errno == EINTR);
		if (n == (ssize_t)sizeof(error)) {
			launch->quiet_on_failure = true;
			launch_end(launch, SIGTERM,
				   error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
		}
	}
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return error;
}

static int run_job(struct job *job)
{
	struct launch launch;
	int code = TOOL_FINDING, error;

	if (!launch_open(&launch, "run", job->nranks, job->tag))
		goto done;
	launch_number(&launch, job->first_rank);
	if (job->is_agent)
		launch_obey(&launch);
	launch.keeps_going = job->keep_going;
	if (!job->no_bind)
		launch_bind(&launch);
	if (!set_environment(job)) {
		tool_fail("out of memory");
		goto done;
	}
	if (job->shared_malloc && !run_preload_malloc())
		goto done;
	if (job->gpus && !run_gpus(job->gpus))
		goto done;
	error = start_ranks(&launch, job);
	code = launch_wait(&launch);
	if (error)
		tool_fail("cannot run '%s': %s", job->program[0], strerror(error));
done:
	/* Where nobody reads what we print, this may be the end of us. */
	remove_dir(job);
	launch_close(&launch);
	if (job->json)
		tool_print_json(json_pack("{s:i, s:i}", "nranks", job->nranks, "exit_code", code));
	return code;
}

/* In the child of run_guarded(): as if there were no guard, but that its end ends us. */
static int guarded(struct job *job, pid_t guard, const sigset_t *old_mask)
{
	int code = TOOL_FINDING;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, old_mask, NULL);
	if (getppid() == guard)
		code = run_job(job);
	else
		remove_dir(job);
	return code;
}

/* Hand on what only we were sent: a terminal's signals reach the child by themselves. */
static int attend(pid_t child, const sigset_t *mask)
{
	siginfo_t info;
	int status;

	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		if (sigwaitinfo(mask, &info) > 0 && info.si_signo != SIGCHLD && info.si_code <= 0)
			kill(child, info.si_signo);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "tutti run: process %d, which minds the ranks, was killed by signal %d\n",
		(int)child, WTERMSIG(status));
	launch_kill_leftovers();
	return 128 + WTERMSIG(status);
}

/* SIGKILL gives no process the time to clean up, so there are two of ours: the child minds the ranks,
 * and each of the two ends them and removes the directory if the other one is killed. */
int run_guarded(struct job *job)
{
	const pid_t own = getpid();
	sigset_t mask, old_mask;
	int code = TOOL_FINDING;
	pid_t child;

	launch_signals(&mask);
	sigprocmask(SIG_BLOCK, &mask, &old_mask);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(NULL);
	child = fork();
	if (child == 0)
		return guarded(job, own, &old_mask);
	if (child < 0)
		tool_fail("fork: %s", strerror(errno));
	else
		code = attend(child, &mask);
	remove_dir(job);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	return code;
}

struct choice {
	struct job job;
	struct hosts hosts;
	const char *shell;
	int port;
	bool is_agent;
};

/* One option; the exit code, or -1 to go on. */
static int take_option(int id, const char *value, struct choice *choice)
{
	struct job *job = &choice->job;

	if (id == ARGS_HELP)
		return TOOL_GOOD;
	if (id == ARGS_BAD || (id == 'n' && !cli_int("-n", value, 1, 1 << 16, &job->nranks)) ||
	    (id == OPT_GPUS && !cli_int("--gpus", value, 1, 64, &job->gpus)) ||
	    (id == OPT_PORT && !cli_int("--port", value, 1, 65535, &choice->port)) ||
	    (id == OPT_HOSTS && !hosts_parse(value, &choice->hosts)))
		return TOOL_USAGE;
	if (id == OPT_HOSTFILE && !hosts_read(value, &choice->hosts))
		return TOOL_FINDING;
	if (id == OPT_SHELL)
		choice->shell = value;
	choice->is_agent |= id == OPT_AGENT;
	job->tag |= id == OPT_TAG;
	job->no_bind |= id == OPT_NO_BIND;
	job->keep_going |= id == OPT_KEEP_GOING;
	job->shared_malloc |= id == OPT_SHARED_MALLOC;
	job->json |= id == ARGS_JSON;
	return -1;
}

static int run_choice(const struct args *args, struct choice *choice, bool has_program)
{
	struct job *job = &choice->job;

	if (choice->is_agent)
		return run_agent();
	/* Programs of NCCL often have all ranks in one process. */
	if (!job->nranks && !choice->hosts.n && job->gpus)
		job->nranks = 1;
	if (!job->nranks && !choice->hosts.n)
		return tool_bad_usage("say how many ranks to start: -n RANKS");
	if (!has_program)
		return tool_bad_usage("say which program to run");
	/* The last word taken was the program; argv ends with a NULL. */
	job->program = args->argv + args->pos - 1;
	if (choice->hosts.n) {
		job->nranks = hosts_deal(&choice->hosts, job->nranks);
		return job->nranks ? run_on_hosts(job, &choice->hosts, choice->shell, choice->port)
				   : TOOL_USAGE;
	}
	return make_dir(job) ? run_guarded(job) : TOOL_FINDING;
}

static int run(struct args *args)
{
	struct choice choice = { .shell = SHELL_USUAL };
	const char *value;
	int id, code = -1;

	while (code < 0 && (id = args_next(args, &value)) != ARGS_END && id != ARGS_POSITIONAL)
		code = take_option(id, value, &choice);
	if (code < 0)
		code = run_choice(args, &choice, id == ARGS_POSITIONAL);
	hosts_free(&choice.hosts);
	return code;
}

static const struct args_option options[] = {
	{ 'n', "nranks", "RANKS", "how many processes to start" },
	{ OPT_HOSTS, "hosts", "HOST[:RANKS],...", "start them on these hosts" },
	{ OPT_HOSTFILE, "hostfile", "FILE", "the same, a HOST[:RANKS] or HOST slots=RANKS a line" },
	{ OPT_SHELL, "rsh", "COMMAND", "how to reach a host (" SHELL_USUAL ")" },
	{ OPT_PORT, "port", "PORT", "where rank 0 listens on the first host (a free one)" },
	{ OPT_TAG, "tag", NULL, "print [RANK] in front of every line they print" },
	{ OPT_NO_BIND, "no-bind", NULL, "do not share the cores out among the ranks" },
	{ OPT_KEEP_GOING, "keep-going", NULL, "a rank that fails does not end the others" },
	{ OPT_SHARED_MALLOC, "shared-malloc", NULL,
	  "have their large allocations where other ranks of the host reach them" },
	{ OPT_GPUS, "gpus", "N",
	  "each has N devices of CUDA, which are memory of the host, and NCCL" },
	{ ARGS_JSON, "json", NULL, "print how it ended as JSON, after the output of the ranks" },
	{ OPT_AGENT, "agent", NULL, "read what to start from standard input: how --hosts does it" },
	{ 0 },
};

const struct command command_run = {
	.name = "run",
	.summary = "start the ranks of a program on this machine, or on several",
	.usage = "run {-n RANKS | --hosts HOSTS | --hostfile FILE} [--tag] [--no-bind]\n"
		 "                 [--keep-going] [--shared-malloc] [--gpus N] [--] PROGRAM "
		 "[ARGUMENTS...]",
	.notes =
		"Every rank gets TUTTI_RANK, TUTTI_NRANKS and TUTTI_COMM_FILE, from which\n"
		"tutti_comm_init_env() makes the communicator, and TUTTI_PTRACER, our process, so\n"
		"that ranks may copy from each other. Rank 0 reads our standard input.\n"
		"Where there are as many cores as ranks, each rank gets its share of them; where\n"
		"there are 2, 3... times as many ranks, neighbours share a core.\n"
		"One rank fails, all are ended: its exit code, or 128 + its signal, is ours. With\n"
		"--keep-going the others go on, for programs that shrink their communicator and "
		"do\n"
		"without it: our exit code is then the first that a rank ended with itself and "
		"that\n"
		"is not 0; ranks that were killed count only if none ended with 0.\n"
		"With --shared-malloc a preloaded library has malloc() take allocations of at "
		"least\n"
		"TUTTI_SHARED_MALLOC_LEAST bytes from memory that all ranks of the host address, "
		"so\n"
		"that collectives on them move each byte once. fork() copies it. For programs that "
		"use\n"
		"libtutti.so: it does nothing for those that are linked to libtutti.a.\n"
		"With --gpus preloaded libraries are CUDA's runtime and driver and NCCL for "
		"programs "
		"of\n"
		"them: the N devices of each process are memory of this host, and collectives are "
		"Tutti's.\n"
		"They have the PCI bus ids of the GPUs in TUTTI_TOPO_FILE, if that is set.\n"
		"A kernel of a program is an error that names it. Without -n one process is "
		"started.\n"
		"The ranks meet in a folder below TMPDIR, /tmp or /dev/shm.\n"
		"126: the program cannot be run, 127: it was not found.\n"
		"\n"
		"With --hosts or --hostfile, ssh starts this program, which must have the same "
		"path\n"
		"there, on each host, and it the ranks, in the same folder as here, with our "
		"TUTTI_\n"
		"variables. Ranks are dealt out to the hosts in their order, evenly, or as many "
		"to\n"
		"each as it says; they meet at the name of the first host, so all of them must "
		"know\n"
		"it by that name. Each gets TUTTI_COMM_ID and, over the remote shell's standard\n"
		"input, TUTTI_COMM_SECRET; its own standard input is empty. Where a remote shell\n"
		"ends, so do the ranks there, and with them all others.\n",
	.options = options,
	.stop_at_positional = true,
	.run = run,
};
