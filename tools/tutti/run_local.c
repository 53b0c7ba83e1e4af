/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "run_preload.h"
#include "tool.h"

/* The exit codes of a shell: 126, the program cannot be run; 127, there is none. */
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

/* In the first folder that can be written to: containers often have a /tmp that cannot. */
static bool make_dir(struct job *job)
{
	const char *const folders[] = { tool_variable("TMPDIR"), "/tmp", "/dev/shm" };
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

void run_print_json(const struct job *job, const struct launch *launch, int code)
{
	json_t *json = json_pack("{s:i, s:i}", "nranks", job->nranks, "exit_code", code);
	const int failed = launch->failed;

	if (failed >= 0 && launch->hosts)
		json_object_set_new(json, "failed_host", json_string(launch->hosts[failed].name));
	else if (failed >= 0)
		json_object_set_new(json, "failed_rank", json_integer(launch->first_rank + failed));
	if (failed >= 0 && launch->failed_signal)
		json_object_set_new(json, "signal", json_integer(launch->failed_signal));
	tool_print_json(json);
}

static int run_job(struct job *job)
{
	struct launch launch;
	int code = TOOL_FINDING, error;

	if (!launch_open(&launch, "run", job->nranks, job->tag))
		goto done;
	launch_set_first_rank(&launch, job->first_rank);
	if (job->is_agent)
		launch_accept_signals(&launch);
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
	/* If nobody reads our output, this may end us. */
	remove_dir(job);
	launch_close(&launch);
	if (job->json)
		run_print_json(job, &launch, code);
	return code;
}

/* In the child of run_local(): as if there were no guard, but that its end ends us. */
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
int run_local(struct job *job)
{
	const pid_t own = getpid();
	sigset_t mask, old_mask;
	int code = TOOL_FINDING;
	pid_t child;

	/* The ranks of several hosts meet at an address. */
	if (!job->is_agent && !make_dir(job))
		return TOOL_FINDING;
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
