/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/middle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 256
#define PIECE 4096
#define TAIL  32

struct pair {
	int fd[2];             /* who connected, whom it wanted; -1: no more */
	uint8_t tail[2][TAIL]; /* the end of what passed, for a text that is cut */
};

static struct middle *in_use;

static int really_connect(int fd, const void *to, socklen_t len)
{
	return (int)syscall(SYS_connect, fd, to, len);
}

/* First to the middle, which is told where to, and says by one byte whether somebody listens there. */
int middle_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_in box = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int type = 0, flags, result;
	uint8_t listens = 0;
	socklen_t size = sizeof(type);

	if (!in_use || to->sa_family != AF_INET ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM)
		return really_connect(fd, to, len);
	box.sin_port = (in_port_t)atomic_load(&in_use->port);
	flags = fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	result = really_connect(fd, &box, sizeof(box));
	if (!result && (send(fd, to, sizeof(box), MSG_NOSIGNAL) != sizeof(box) ||
			recv(fd, &listens, 1, MSG_WAITALL) != 1 || !listens))
		result = -1;
	fcntl(fd, F_SETFL, flags);
	if (result < 0)
		errno = ECONNREFUSED;
	return result;
}

/* -- In the middle ------------------------------------------------------------------- */

static uint64_t next_random(struct middle *middle)
{
	middle->seed = middle->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return middle->seed >> 33;
}

static void meet(struct pair *pair, int listener)
{
	struct sockaddr_in to;
	uint8_t listens = 1;
	const struct timeval patience = { .tv_sec = 5 };
	const int yes = 1;

	pair->fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	pair->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (recv(pair->fd[0], &to, sizeof(to), MSG_WAITALL) != sizeof(to) ||
	    really_connect(pair->fd[1], &to, sizeof(to)))
		listens = 0;
	if (send(pair->fd[0], &listens, 1, MSG_NOSIGNAL) != 1 || !listens) {
		close(pair->fd[0]);
		close(pair->fd[1]);
		pair->fd[0] = -1;
		return;
	}
	memset(pair->tail, 0, sizeof(pair->tail));
	for (int i = 0; i < 2; i++) {
		setsockopt(pair->fd[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		setsockopt(pair->fd[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	}
}

static void hang_up(struct pair *pair)
{
	close(pair->fd[0]);
	close(pair->fd[1]);
	pair->fd[0] = -1;
}

static void send_on(const struct pair *pair, int to, const uint8_t *data, size_t nbytes)
{
	while (nbytes > 0) {
		const ssize_t n = send(pair->fd[to], data, nbytes, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		data += n;
		nbytes -= (size_t)n;
	}
}

static void look(struct middle *middle, uint8_t tail[TAIL], const uint8_t *data, size_t nbytes)
{
	uint8_t all[TAIL + PIECE];
	const size_t n = strlen(middle->text);

	memcpy(all, tail, TAIL);
	memcpy(all + TAIL, data, nbytes);
	if (memmem(all, TAIL + nbytes, middle->text, n))
		atomic_store(&middle->found, 1);
	memcpy(tail, all + nbytes, TAIL);
}

static void attack(struct middle *middle, struct pair *pair, int to, uint8_t *data, size_t nbytes)
{
	const size_t at = next_random(middle) % nbytes;
	const size_t n = 1 + next_random(middle) % (nbytes - at);
	uint8_t made_up[64];

	atomic_store(&middle->attacked, 1);
	for (size_t i = 0; i < sizeof(made_up); i++)
		made_up[i] = (uint8_t)next_random(middle);
	switch (middle->attack) {
	case MIDDLE_FLIP_FIRST:
		data[0] ^= (uint8_t)(1 << next_random(middle) % 8);
		send_on(pair, to, data, nbytes);
		break;
	case MIDDLE_FLIP:
		data[at] ^= (uint8_t)(1 << next_random(middle) % 8);
		send_on(pair, to, data, nbytes);
		break;
	case MIDDLE_DROP:
		send_on(pair, to, data, at);
		send_on(pair, to, data + at + n, nbytes - at - n);
		break;
	case MIDDLE_REPLAY:
		send_on(pair, to, data, nbytes);
		send_on(pair, to, data, nbytes);
		break;
	case MIDDLE_REORDER:
		send_on(pair, to, data + at, nbytes - at);
		send_on(pair, to, data, at);
		break;
	case MIDDLE_INSERT:
		send_on(pair, to, data, at);
		send_on(pair, to, made_up, 1 + n % sizeof(made_up));
		send_on(pair, to, data + at, nbytes - at);
		break;
	case MIDDLE_TAKE_OVER:
		shutdown(pair->fd[1 - to], SHUT_RDWR);
		send_on(pair, to, made_up, sizeof(made_up));
		send_on(pair, to, data, nbytes);
		break;
	case MIDDLE_READ:
	case MIDDLE_ATTACKS:
		break;
	}
}

static void pass_on(struct middle *middle, struct pair *pair, int from)
{
	uint8_t data[PIECE];
	const ssize_t n = recv(pair->fd[from], data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(pair);
		return;
	}
	look(middle, pair->tail[from], data, (size_t)n);
	atomic_fetch_add(&middle->bytes, (uint64_t)n);
	if (atomic_fetch_add(&middle->pieces, 1) >= middle->victim &&
	    middle->attack != MIDDLE_READ && !atomic_load(&middle->attacked))
		attack(middle, pair, 1 - from, data, (size_t)n);
	else
		send_on(pair, 1 - from, data, (size_t)n);
}

static void serve(struct middle *middle, int listener)
{
	static struct pair pairs[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		pairs[i].fd[0] = -1;
	for (;;) {
		struct pollfd fds[2 * PAIRS + 1];

		for (int i = 0; i < PAIRS; i++)
			for (int side = 0; side < 2; side++)
				fds[2 * i + side] = (struct pollfd){
					.fd = pairs[i].fd[0] < 0 ? -1 : pairs[i].fd[side],
					.events = POLLIN,
				};
		fds[2 * PAIRS] = (struct pollfd){ .fd = listener, .events = POLLIN };
		(void)poll(fds, 2 * PAIRS + 1, -1);
		for (int i = 0; i < PAIRS; i++)
			for (int side = 0; side < 2; side++)
				if (fds[2 * i + side].revents && pairs[i].fd[0] >= 0)
					pass_on(middle, &pairs[i], side);
		for (int i = 0; i < PAIRS && fds[2 * PAIRS].revents; i++)
			if (pairs[i].fd[0] < 0) {
				meet(&pairs[i], listener);
				break;
			}
	}
}

struct middle *middle_start(enum middle_attack how, uint64_t victim, uint64_t seed,
			    const char *text)
{
	struct middle *middle = mmap(NULL, sizeof(*middle), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	pid_t pid;

	if (middle == MAP_FAILED || bind(listener, (struct sockaddr *)&at, len) ||
	    listen(listener, PAIRS) || getsockname(listener, (struct sockaddr *)&at, &len))
		abort();
	middle->attack = how;
	middle->victim = victim;
	middle->seed = seed;
	strncpy(middle->text, text, sizeof(middle->text) - 1);
	atomic_store(&middle->port, at.sin_port);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(middle, listener);
	}
	if (pid < 0)
		abort();
	middle->pid = pid;
	close(listener);
	in_use = middle;
	return middle;
}

void middle_stop(struct middle *middle)
{
	in_use = NULL;
	kill(middle->pid, SIGKILL);
	waitpid(middle->pid, NULL, 0);
	munmap(middle, sizeof(*middle));
}
