/* SPDX-License-Identifier: BSD-3-Clause */
/* Where rank 0 listens when the ranks meet by MASTER_ADDR and MASTER_PORT: on the port after that, which
 * torchrun's own store has, or on the one that TUTTI_MASTER_PORT names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "support/port.h"
#include "tutti/tutti.h"

#define WAIT_S 60

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static bool is_served(int port)
{
	const struct sockaddr_in place = at(port);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool could = connect(fd, (const struct sockaddr *)&place, sizeof(place)) == 0;

	close(fd);
	return could;
}

static pid_t begin_rank(const char *rank, int port, int own_port)
{
	const pid_t pid = fork();
	tutti_comm_t comm = NULL;
	char number[16];
	tutti_status st;

	if (pid != 0)
		return pid;
	alarm(WAIT_S);
	setenv("RANK", rank, 1);
	setenv("WORLD_SIZE", "2", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	snprintf(number, sizeof(number), "%d", port);
	setenv("MASTER_PORT", number, 1);
	snprintf(number, sizeof(number), "%d", own_port);
	if (own_port)
		setenv("TUTTI_MASTER_PORT", number, 1);
	setenv("TUTTI_COMM_SECRET", "the secret of this test", 1);
	st = tutti_comm_init_env(&comm, NULL);
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	if (st != TUTTI_OK)
		fprintf(stderr, "rank %s: %s\n", rank, tutti_last_error(comm));
	tutti_comm_destroy(comm);
	_exit(st != TUTTI_OK);
}

static void listens_at(int port, int own_port, int expected, int other)
{
	const int64_t limit_ns = crew_now_ns() + (int64_t)WAIT_S * 1000000000;
	pid_t pids[2] = { begin_rank("0", port, own_port) };
	int status;

	while (!is_served(expected) && crew_now_ns() < limit_ns)
		crew_nap_us(1000);
	assert_false(is_served(other));
	pids[1] = begin_rank("1", port, own_port);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static void the_next_port(void **state)
{
	const int port = ports_for_later(3);

	(void)state;
	listens_at(port, 0, port + 1, port);
}

static void the_named_port(void **state)
{
	const int port = ports_for_later(3);

	(void)state;
	listens_at(port, port + 2, port + 2, port + 1);
	listens_at(port, port, port, port + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_port),
		cmocka_unit_test(the_named_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
