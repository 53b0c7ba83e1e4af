/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks may be on this host: the card of a rank, its socket, and connecting to it. */
#include "transport/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/shm/heap.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"
#include "util/fd_pass.h"
#include "util/fork.h"
#include "util/hash.h"
#include "util/thread.h"

tutti_status tti_shm_fail(const struct tti_shm_port *port, tutti_status status, int peer,
			  const char *what)
{
	char cause[256];

	snprintf(cause, sizeof(cause), "%s", tti_error_text());
	if (peer < 0)
		return tti_fail(status, "shared memory, rank %d, %s: %s", port->base.rank, what,
				cause);
	return tti_fail(status, "shared memory, rank %d, %s rank %d: %s", port->base.rank, what,
			peer, cause);
}

/* bsearch: the place of a rank among the candidates, -1: it is none. */
static int compare_ranks(const void *a, const void *b)
{
	const int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

int tti_shm_find_candidate(const struct tti_shm_port *port, int rank)
{
	const int *const found = bsearch(&rank, port->candidate, (size_t)port->n,
					 sizeof(port->candidate[0]), compare_ranks);

	return found ? (int)(found - port->candidate) : -1;
}

struct tti_shm_card tti_shm_card_get(const struct tti_card *cards, int rank)
{
	struct tti_shm_card card;

	memcpy(&card, cards[rank].bytes, sizeof(card));
	card.name[sizeof(card.name) - 1] = '\0';
	return card;
}

/* A file of one line, "" if it cannot be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd < 0 ? 0 : read(fd, buf, size - 1);

	buf[got > 0 ? got : 0] = '\0';
	tti_fd_close(&fd);
}

static uint64_t hash_text(const char *text)
{
	const uint64_t hash = text && *text ? tti_hash_bytes(text, strlen(text)) : 0;

	return text && *text && !hash ? 1 : hash;
}

static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
	const size_t len = strnlen(name, TTI_SHM_NAME - 1);

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	memcpy(out->sun_path + 1, name, len); /* a leading 0: abstract, in no directory */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static int open_socket(void)
{
	if (tti_fault("shm.socket")) {
		errno = EMFILE;
		return -1;
	}
	return tti_fork_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
}

/* A random number of this process, another one in each child; 0: it cannot be had. It stays at *at
 * as long as the process lives. */
static uint64_t process_number(uint64_t *at)
{
	static struct {
		uint64_t number, for_anybody;
	} words;
	static pid_t owner;
	uint64_t result;

	*at = (uint64_t)(uintptr_t)&words.number;
	tti_fork_lock();
	if (owner != getpid()) {
		words.number = 0;
		if (getrandom(&words.number, sizeof(words.number), 0) ==
		    (ssize_t)sizeof(words.number))
			owner = getpid();
	}
	result = words.number;
	tti_fork_unlock();
	return result;
}

int tti_shm_ptrace_scope(void)
{
	char text[16];

	read_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	return *text ? atoi(text) : -1;
}

/* Let Yama give access to TUTTI_PTRACER and its descendants: with the launcher of the job, to its
 * ranks alone. Whether that helped is tried (shm_trial.h). It lasts as long as the process. */
static void let_in(const struct tti_shm_port *port)
{
	if (port->config.ptracer && port->config.reach != TTI_WISH_SLOTS &&
	    tti_shm_ptrace_scope() == 1)
		(void)prctl(PR_SET_PTRACER, (unsigned long)port->config.ptracer, 0, 0, 0);
}

/* 0: not known. */
static uint64_t namespace_number(const char *path)
{
	struct stat info;

	return stat(path, &info) ? 0 : (uint64_t)info.st_ino;
}

tutti_status tti_shm_listen(struct tti_shm_port *port, struct tti_card *out)
{
	struct tti_shm_card card = { .magic = TTI_SHM_CARD_MAGIC, .version = TTI_SHM_CARD_VERSION };
	struct sockaddr_un address;
	char boot[64];
	uint64_t random[2];
	socklen_t len;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return tti_fail(TUTTI_ESYS, "getrandom: %m");
	snprintf(port->name, sizeof(port->name), "tutti-%016llx", (unsigned long long)random[0]);
	tti_fd_raise_limit();
	port->listener = open_socket();
	if (port->listener < 0)
		return tti_fail(TUTTI_ESYS, "unix socket: %m (see ulimit -n)");
	len = address_of(port->name, &address);
	if (bind(port->listener, (struct sockaddr *)&address, len) < 0 ||
	    listen(port->listener, SOMAXCONN) < 0)
		return tti_fail(TUTTI_ESYS, "listening on the abstract unix socket %s: %m",
				port->name);

	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	card.boot_hash = hash_text(boot);
	card.host_hash = hash_text(port->config.host_id);
	card.netns = namespace_number("/proc/self/ns/net");
	card.pid_ns = namespace_number("/proc/self/ns/pid");
	card.slot_bytes = port->config.slot_bytes;
	card.cores = (uint32_t)tti_cpu_online();
	card.slots = (uint32_t)port->config.slots;
	card.pid = (uint32_t)getpid();
	card.uid = (uint32_t)geteuid();
	card.process = process_number(&card.process_at);
	card.heap_bytes = tti_heap_limit(port->config.heap_bytes);
	card.heap_key = random[1];
	let_in(port);
	memcpy(card.name, port->name, sizeof(card.name));
	memset(out, 0, sizeof(*out));
	memcpy(out->bytes, &card, sizeof(card));
	return TUTTI_OK;
}

tutti_status tti_shm_reach(const char *name, int *fd)
{
	struct sockaddr_un address;
	const socklen_t len = address_of(name, &address);

	*fd = open_socket();
	if (*fd < 0)
		return tti_fail_quiet(TUTTI_ESYS, "unix socket: %m (see ulimit -n)");
	if (!connect(*fd, (struct sockaddr *)&address, len)) {
		if (!tti_fd_is_same_user(*fd))
			tti_fd_close(fd);
		return TUTTI_OK;
	}
	if (errno == EAGAIN) {
		tti_fd_close(fd);
		return TUTTI_AGAIN;
	}
	tti_fd_close(fd);
	return TUTTI_OK;
}
