/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/fd_offer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"
#include "util/fd_pass.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/process.h"
#include "util/thread.h"

/* The same on all architectures, where headers are older than the kernel. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#define ASK_MS    5000  /* one that connects and does not ask is dropped */
#define ACCEPT_MS 20000 /* the thread answers at once, if it gets to run */
#define RETRY_NS  (1 * TTI_NS_PER_MS)

struct offered {
	struct tti_fd_offer offer;
	struct offered *next;
};

static struct {
	pthread_mutex_t turn; /* of who begins and ends it */
	pthread_mutex_t lock; /* of `first` */
	struct offered *first;
	pthread_t thread;
	_Atomic int stop;
	uint64_t name, process;
	int listener, wake; /* -1: there is no thread */
	int pid;            /* whose they are */
} server = { .turn = PTHREAD_MUTEX_INITIALIZER,
	     .lock = PTHREAD_MUTEX_INITIALIZER,
	     .listener = -1,
	     .wake = -1 };

static socklen_t address_of(uint64_t name, struct sockaddr_un *out)
{
	int length;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	/* A leading 0: abstract, in no directory. */
	length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "tutti-gpu-%016llx",
			  (unsigned long long)name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* -- The thread -------------------------------------------------------------------- */

/* Pass the file whose key this is. The lock is held, so that it stays open. */
static void answer(int socket, const uint64_t key[2])
{
	const char byte = 0;

	(void)pthread_mutex_lock(&server.lock);
	for (const struct offered *at = server.first; at; at = at->next)
		if (at->offer.key[0] == key[0] && at->offer.key[1] == key[1]) {
			if (tti_fd_pass(socket, &byte, sizeof(byte), at->offer.fd) != TUTTI_OK)
				tti_log(TTI_LOG_INFO, TTI_GPU, "offering a file: %s",
					tti_error_text());
			break;
		}
	(void)pthread_mutex_unlock(&server.lock);
}

static void serve_one(void)
{
	int socket = tti_fork_accept(server.listener, NULL, NULL);
	uint64_t key[2];

	if (socket < 0)
		return;
	if (!tti_fd_is_same_user(socket))
		tti_log(TTI_LOG_INFO, TTI_GPU, "dropped a connection of another user");
	else if (tti_fd_recv_all(socket, key, sizeof(key), tti_deadline(ASK_MS), &server.stop) ==
		 TUTTI_OK)
		answer(socket, key);
	tti_fd_close(&socket);
}

static void *serve(void *unused)
{
	struct pollfd fds[] = { { .fd = server.listener, .events = POLLIN },
				{ .fd = server.wake, .events = POLLIN } };

	(void)unused;
	while (!server.stop) {
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
			continue; /* a signal */
		if (fds[0].revents)
			serve_one();
	}
	return NULL;
}

static void close_files(void)
{
	tti_fd_close(&server.listener);
	if (server.wake >= 0)
		close(server.wake);
	server.wake = -1;
}

/* Under `turn`. */
static tutti_status begin(void)
{
	struct sockaddr_un address;
	tutti_status status;
	socklen_t length;

	if (getrandom(&server.name, sizeof(server.name), 0) != (ssize_t)sizeof(server.name))
		return tti_fail_quiet(TUTTI_ESYS, "getrandom: %m");
	server.process = tti_process_identity(getpid());
	server.pid = (int)getpid();
	server.stop = 0;
	server.wake = eventfd(0, EFD_CLOEXEC);
	if (server.wake >= 0)
		server.listener = tti_fork_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
	if (server.listener < 0) {
		status = tti_fail_quiet(TUTTI_ESYS, "a socket for offers: %m (see ulimit -n)");
		close_files();
		return status;
	}
	length = address_of(server.name, &address);
	if (bind(server.listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(server.listener, SOMAXCONN) < 0)
		status = tti_fail_quiet(TUTTI_ESYS, "listening for who takes offers: %m");
	else
		status = tti_thread_start(&server.thread, "tutti-gpu-fd", serve, NULL);
	if (status != TUTTI_OK)
		close_files();
	return status;
}

/* Under `turn`, and not under `lock`. */
static void end(void)
{
	const uint64_t one = 1;

	server.stop = 1;
	while (write(server.wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	(void)pthread_join(server.thread, NULL);
	close_files();
}

/* What a child of fork() has of its parent's: nothing that works. Under `turn`. */
static void forget_parent(void)
{
	if (server.listener < 0 || server.pid == (int)getpid())
		return;
	while (server.first) {
		struct offered *const next = server.first->next;

		tti_free(server.first);
		server.first = next;
	}
	server.listener = -1; /* fork() has closed it */
	close_files();
}

/* -- Who offers -------------------------------------------------------------------- */

tutti_status tti_fd_offer(int fd, struct tti_fd_offer *out)
{
	struct offered *offered = tti_zalloc(sizeof(*offered));
	tutti_status status = TUTTI_OK;

	if (!offered)
		return tti_fail_quiet(TUTTI_ENOMEM, "offering a file: out of memory");
	if (getrandom(offered->offer.key, sizeof(offered->offer.key), 0) !=
	    (ssize_t)sizeof(offered->offer.key)) {
		tti_free(offered);
		return tti_fail_quiet(TUTTI_ESYS, "getrandom: %m");
	}
	(void)pthread_mutex_lock(&server.turn);
	forget_parent();
	if (server.listener < 0)
		status = begin();
	if (status == TUTTI_OK) {
		offered->offer.socket = server.name;
		offered->offer.process = server.process;
		offered->offer.pid = (int32_t)server.pid;
		offered->offer.fd = fd;
		*out = offered->offer;
		(void)pthread_mutex_lock(&server.lock);
		offered->next = server.first;
		server.first = offered;
		(void)pthread_mutex_unlock(&server.lock);
	} else
		tti_free(offered);
	(void)pthread_mutex_unlock(&server.turn);
	return status;
}

void tti_fd_withdraw(const struct tti_fd_offer *offer)
{
	struct offered *found = NULL;
	bool is_last;

	(void)pthread_mutex_lock(&server.turn);
	forget_parent();
	(void)pthread_mutex_lock(&server.lock);
	for (struct offered **at = &server.first; *at; at = &(*at)->next)
		if ((*at)->offer.key[0] == offer->key[0] && (*at)->offer.key[1] == offer->key[1]) {
			found = *at;
			*at = found->next;
			break;
		}
	is_last = found && !server.first;
	(void)pthread_mutex_unlock(&server.lock);
	tti_free(found);
	if (is_last)
		end();
	(void)pthread_mutex_unlock(&server.turn);
}

int tti_fd_offer_files(void)
{
	int files;

	(void)pthread_mutex_lock(&server.turn);
	files = server.listener < 0 ? 0 : 2;
	(void)pthread_mutex_unlock(&server.turn);
	return files;
}

/* -- Who takes --------------------------------------------------------------------- */

/* -1: not that way, and why. */
static int take_by_pidfd(const struct tti_fd_offer *offer, const char **why)
{
	int process, fd;

	*why = "the process is not in this pid namespace";
	if (!tti_process_is_here(offer->process) ||
	    tti_process_identity(offer->pid) != offer->process)
		return -1;
	*why = "pidfd_open() or pidfd_getfd() is not permitted";
	if (tti_fault("gpu.pidfd"))
		return -1;
	process = (int)syscall(SYS_pidfd_open, offer->pid, 0);
	if (process < 0)
		return -1;
	fd = (int)syscall(SYS_pidfd_getfd, process, offer->fd, 0);
	close(process);
	return fd;
}

static tutti_status reach(const struct tti_fd_offer *offer, int64_t deadline_ns, int *out)
{
	const struct timespec nap = { .tv_nsec = RETRY_NS };
	struct sockaddr_un address;
	const socklen_t length = address_of(offer->socket, &address);

	*out = tti_fork_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
	if (*out < 0)
		return tti_fail_quiet(TUTTI_ESYS, "unix socket: %m (see ulimit -n)");
	while (connect(*out, (struct sockaddr *)&address, length) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || tti_now_ns() >= deadline_ns)
			return tti_fail_quiet(TUTTI_EUNSUPPORTED,
					      "connecting to the socket of process %d: %m",
					      (int)offer->pid);
		nanosleep(&nap, NULL); /* more have asked than the socket can hold */
	}
	if (!tti_fd_is_same_user(*out))
		return tti_fail_quiet(TUTTI_EUNSUPPORTED, "the socket is of another user");
	return TUTTI_OK;
}

static tutti_status ask(const struct tti_fd_offer *offer, int socket, int64_t deadline_ns, int *fd)
{
	struct pollfd entry = { .fd = socket, .events = POLLIN };
	tutti_status status = TUTTI_AGAIN;
	char byte;

	TTI_TRY(tti_fd_send_all(socket, offer->key, sizeof(offer->key), deadline_ns, NULL));
	while (status == TUTTI_AGAIN) {
		const int wait_ms = tti_left_ms(deadline_ns, ACCEPT_MS);

		if (!wait_ms)
			return tti_fail_quiet(TUTTI_ETIMEOUT, "process %d did not answer in %d s",
					      (int)offer->pid, ACCEPT_MS / 1000);
		(void)poll(&entry, 1, wait_ms);
		status = tti_fd_take(socket, &byte, sizeof(byte), fd);
	}
	if (status == TUTTI_EPEER)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "process %d has withdrawn the offer, or has ended",
				      (int)offer->pid);
	return status;
}

tutti_status tti_fd_accept(const struct tti_fd_offer *offer, int *fd)
{
	const int64_t deadline_ns = tti_deadline(ACCEPT_MS);
	const char *why;
	tutti_status status;
	int socket;

	*fd = take_by_pidfd(offer, &why);
	if (*fd >= 0)
		return TUTTI_OK;
	tti_log(TTI_LOG_TRACE, TTI_GPU, "a file of process %d comes over a socket: %s",
		(int)offer->pid, why);
	status = reach(offer, deadline_ns, &socket);
	if (status == TUTTI_OK)
		status = ask(offer, socket, deadline_ns, fd);
	tti_fd_close(&socket);
	return status;
}
