/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpus.h"
#include "tag.h"

#define GRACE_MS       2000
/* The launches on other hosts take GRACE_MS themselves, and then have to report. */
#define GRACE_HOSTS_MS 5000

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Two pipes per rank do not fit into the usual 1024 descriptors. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool open_tags(struct launch *launch)
{
	bool good = true;

	launch->tags = calloc((size_t)launch->nranks * 2, sizeof(*launch->tags));
	if (!launch->tags)
		return false;
	raise_descriptor_limit();
	for (int i = 0; i < launch->nranks * 2; i++)
		good = tag_open(&launch->tags[i], i / 2, 1 + i % 2) && good;
	return good;
}

void launch_signals(sigset_t *out)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

	sigemptyset(out);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(out, signals[i]);
}

bool launch_open(struct launch *launch, const char *verb, int nranks, bool tagged)
{
	sigset_t mask;

	*launch = (struct launch){ .verb = verb, .nranks = nranks, .signalfd = -1, .failed = -1 };
	launch_signals(&mask);
	sigprocmask(SIG_BLOCK, &mask, &launch->old_mask);
	launch->signalfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	launch->pids = calloc((size_t)nranks, sizeof(*launch->pids));
	if (launch->signalfd < 0 || !launch->pids || (tagged && !open_tags(launch))) {
		fprintf(stderr, "tutti %s: cannot prepare %d ranks: %s\n", verb, nranks,
			strerror(errno));
		return false;
	}
	/* Processes that a rank leaves behind become our children, and are ended. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return true;
}

static void become_rank(struct launch *launch, int rank, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (int i = 0; launch->tags && i < 2; i++)
		if (dup2(launch->tags[2 * rank + i].write_fd, 1 + i) < 0)
			_exit(127);
	close(launch->signalfd);
	launch->signalfd = -1;
	sigprocmask(SIG_SETMASK, &launch->old_mask, NULL);
}

void launch_set_first_rank(struct launch *launch, int first)
{
	launch->first_rank = first;
	for (int i = 0; launch->tags && i < launch->nranks * 2; i++)
		launch->tags[i].rank = first + i / 2;
}

void launch_set_hosts(struct launch *launch, struct launch_host *hosts)
{
	launch->hosts = hosts;
	for (int i = 0; i < launch->nranks * 2; i++)
		launch->tags[i].rank = -1;
}

static void stop_sending(struct launch_host *host)
{
	if (host->text)
		explicit_bzero(host->text, host->nbytes);
	free(host->text);
	host->text = NULL;
}

/* Send what the socket takes now. A remote shell that is gone is noticed when it ends. */
static void send_more(struct launch_host *host)
{
	while (host->text) {
		const ssize_t n = send(host->control, host->text + host->nsent,
				       host->nbytes - host->nsent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		host->nsent += n > 0 ? (size_t)n : 0;
		if (n < 0 || host->nsent == host->nbytes)
			stop_sending(host);
	}
}

void launch_send(struct launch *launch, int rank, char *text, size_t nbytes)
{
	struct launch_host *host = &launch->hosts[rank];

	host->text = text;
	host->nbytes = nbytes;
	host->nsent = 0;
	if (launch->ending)
		stop_sending(host);
	else
		send_more(host);
}

void launch_accept_signals(struct launch *launch)
{
	launch->accepts_signals = true;
}

void launch_bind(struct launch *launch)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) == 0)
		launch->ncpus = cpus_by_core(&all, launch->cpus);
}

/* In the child: a share of the cores, or one of which so many ranks have each one. Those that
 * follow each other share it then: what they exchange stays in its caches. Where some cores would
 * have more ranks than others the system is to spread them. A system that will not is no reason
 * not to run. */
static void bind_rank(const struct launch *launch, int rank)
{
	const int ncpus = launch->ncpus, nranks = launch->nranks;
	cpu_set_t own;

	if (ncpus == 0 || (ncpus < nranks && nranks % ncpus != 0))
		return;
	CPU_ZERO(&own);
	for (int nth = 0; nth < ncpus; nth++)
		if (ncpus < nranks ? rank / (nranks / ncpus) == nth
				   : (int)((long)nth * nranks / ncpus) == rank)
			CPU_SET((size_t)launch->cpus[nth], &own);
	(void)sched_setaffinity(0, sizeof(own), &own);
}

pid_t launch_fork(struct launch *launch, int rank)
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		become_rank(launch, rank, parent);
		bind_rank(launch, rank);
		return 0;
	}
	if (pid < 0) {
		fprintf(stderr, "tutti %s: cannot start rank %d: fork: %s\n", launch->verb,
			launch->first_rank + rank, strerror(errno));
		return pid;
	}
	launch->pids[rank] = pid;
	launch->nlive++;
	for (int i = 0; launch->tags && i < 2; i++) {
		close(launch->tags[2 * rank + i].write_fd);
		launch->tags[2 * rank + i].write_fd = -1;
	}
	return pid;
}

static void signal_all(const struct launch *launch, int signal)
{
	const uint8_t word = (uint8_t)signal;

	for (int rank = 0; rank < launch->nranks; rank++) {
		if (launch->pids[rank] <= 0)
			continue;
		if (!launch->hosts || signal == SIGKILL) {
			kill(launch->pids[rank], signal);
			continue;
		}
		/* If the byte does not fit, or replaces the rest of a text, the end of the socket says enough. */
		stop_sending(&launch->hosts[rank]);
		(void)!send(launch->hosts[rank].control, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		shutdown(launch->hosts[rank].control, SHUT_WR);
	}
}

void launch_end(struct launch *launch, int signal, int exit_code)
{
	if (!launch->exit_code)
		launch->exit_code = exit_code;
	if (!launch->ending)
		launch->kill_at_ms = now_ms() + (launch->hosts ? GRACE_HOSTS_MS : GRACE_MS);
	launch->ending = true;
	signal_all(launch, signal);
	/* A stopped process gets nothing but SIGKILL until it goes on. */
	if (!launch->hosts)
		signal_all(launch, SIGCONT);
}

static int rank_of(const struct launch *launch, pid_t pid)
{
	for (int rank = 0; rank < launch->nranks; rank++)
		if (launch->pids[rank] == pid)
			return rank;
	return -1;
}

/* Whoever is left has to do without it. Of a host, whose ranks and remote shell may have been killed, the
 * code alone says so. */
static void do_without(struct launch *launch, int status, int code)
{
	if (!WIFSIGNALED(status) && !(launch->hosts && code > 128) && !launch->exit_code)
		launch->exit_code = code;
	if (!launch->killed_code)
		launch->killed_code = code;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void tell_failure(struct launch *launch, int rank, pid_t pid, int status)
{
	const bool killed = WIFSIGNALED(status);
	char who[300], what[64];

	if (!launch->keeps_going || launch->failed < 0) {
		launch->failed = rank;
		launch->failed_signal = killed ? WTERMSIG(status) : 0;
	}

	if (launch->hosts)
		snprintf(who, sizeof(who), "the remote shell to %s", launch->hosts[rank].name);
	else
		snprintf(who, sizeof(who), "rank %d (process %d)", launch->first_rank + rank,
			 (int)pid);
	if (killed)
		snprintf(what, sizeof(what), "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(what, sizeof(what), "ended with exit code %d", code_of(status));
	if (killed || !launch->quiet_on_failure)
		fprintf(stderr, "tutti %s: %s %s%s\n", launch->verb, who, what,
			!launch->nlive        ? ""
			: launch->keeps_going ? "; the others go on"
					      : "; ending the others");
}

static void rank_failed(struct launch *launch, int rank, pid_t pid, int status)
{
	const int code = code_of(status);

	tell_failure(launch, rank, pid, status);
	if (launch->keeps_going)
		do_without(launch, status, code);
	else
		launch_end(launch, SIGTERM, code);
}

/* Whether a rank that ended after we had begun to end all was killed by somebody else. It may take longer
 * to go than those that failed for its death. */
static bool is_cause(const struct launch *launch, int status)
{
	return WIFSIGNALED(status) && !launch->interrupted && !launch->hosts &&
	       launch->exit_code < 128 && WTERMSIG(status) != SIGTERM &&
	       (WTERMSIG(status) != SIGKILL || now_ms() < launch->kill_at_ms);
}

/* Several may have ended since we last looked. One that was killed is the
 * cause; the exit codes of the others are only its consequence. */
static void reap(struct launch *launch)
{
	int first = -1, first_status = 0, status;
	pid_t pid, first_pid = 0;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		const int rank = rank_of(launch, pid);

		if (rank < 0)
			continue;
		launch->pids[rank] = 0;
		launch->nlive--;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			launch->ngood++;
			continue;
		}
		if (launch->keeps_going && !launch->ending) {
			rank_failed(launch, rank, pid, status);
			continue;
		}
		if (first >= 0 && !(WIFSIGNALED(status) && WIFEXITED(first_status)))
			continue;
		first = rank;
		first_status = status;
		first_pid = pid;
	}
	if (first >= 0 && !launch->ending) {
		rank_failed(launch, first, first_pid, first_status);
	} else if (first >= 0 && is_cause(launch, first_status)) {
		tell_failure(launch, first, first_pid, first_status);
		launch->exit_code = code_of(first_status);
	}
}

static void take_signals(struct launch *launch)
{
	struct signalfd_siginfo info;

	while (read(launch->signalfd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) {
			launch->interrupted |= !launch->exit_code;
			launch_end(launch, (int)info.ssi_signo, 128 + (int)info.ssi_signo);
		}
}

/* A byte is a signal to all; the end means that nobody is there any more who would read of us. */
static void read_control(struct launch *launch)
{
	uint8_t word = 0;
	const ssize_t n = read(0, &word, 1);

	if (n < 0)
		return;
	if (n == 0)
		launch->accepts_signals = false;
	launch->interrupted |= !launch->exit_code;
	launch_end(launch, n ? word : SIGTERM, 128 + (n ? word : SIGTERM));
}

/* Wait for a signal, output, or the time to kill. */
static void wait_for_something(struct launch *launch, struct pollfd *fds)
{
	const int nstreams = launch->tags ? launch->nranks * 2 : 0;
	int timeout_ms = -1;
	nfds_t n = 1;

	fds[0] = (struct pollfd){ .fd = launch->signalfd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = launch->accepts_signals ? 0 : -1, .events = POLLIN };
	for (int i = 0; i < nstreams; i++)
		if (launch->tags[i].read_fd >= 0)
			fds[n++] =
				(struct pollfd){ .fd = launch->tags[i].read_fd, .events = POLLIN };
	for (int i = 0; launch->hosts && i < launch->nranks; i++)
		if (launch->hosts[i].text)
			fds[n++] = (struct pollfd){ .fd = launch->hosts[i].control,
						    .events = POLLOUT };
	if (launch->ending) {
		const int64_t left = launch->kill_at_ms - now_ms();

		timeout_ms = left > 0 ? (int)left : 10;
	}
	poll(fds, n, timeout_ms);
	if (launch->accepts_signals && fds[1].revents)
		read_control(launch);
	for (int i = 0; launch->hosts && i < launch->nranks; i++)
		send_more(&launch->hosts[i]);
	for (int i = 0; i < nstreams; i++)
		tag_pump(&launch->tags[i]);
}

void launch_kill_leftovers(void)
{
	char path[64];
	int pid, found;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	do {
		found = 0;
		file = fopen(path, "re");
		while (file && fscanf(file, "%d", &pid) == 1) {
			kill((pid_t)pid, SIGKILL);
			found++;
		}
		if (file)
			fclose(file);
		/* Processes that it leaves behind are our children now, and not killed yet. */
		if (found)
			waitpid(-1, NULL, 0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	} while (found);
}

int launch_wait(struct launch *launch)
{
	const size_t nfds = 2 + (size_t)launch->nranks * 3;
	struct pollfd *fds = calloc(nfds, sizeof(*fds));

	if (!fds) {
		fprintf(stderr, "tutti %s: out of memory\n", launch->verb);
		launch_end(launch, SIGKILL, 1);
	}
	for (;;) {
		reap(launch);
		if (!launch->nlive)
			break;
		if (launch->ending && now_ms() >= launch->kill_at_ms)
			signal_all(launch, SIGKILL);
		if (fds)
			wait_for_something(launch, fds);
		take_signals(launch);
	}
	for (int i = 0; launch->tags && i < launch->nranks * 2; i++)
		tag_pump(&launch->tags[i]);
	if (launch->ending || launch->killed_code)
		launch_kill_leftovers();
	free(fds);
	return launch->exit_code || launch->ngood ? launch->exit_code : launch->killed_code;
}

void launch_close(struct launch *launch)
{
	for (int i = 0; launch->tags && i < launch->nranks * 2; i++)
		tag_close(&launch->tags[i]);
	for (int i = 0; launch->hosts && i < launch->nranks; i++)
		stop_sending(&launch->hosts[i]);
	free(launch->tags);
	free(launch->pids);
	if (launch->signalfd >= 0)
		close(launch->signalfd);
	sigprocmask(SIG_SETMASK, &launch->old_mask, NULL);
}
