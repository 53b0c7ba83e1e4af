/* SPDX-License-Identifier: BSD-3-Clause */
/* The traffic class of what goes over TCP: of a communicator, of its children, by the variable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tutti/tutti.h"

#define ONE     0x68
#define ANOTHER 0x20

static int get_option(int fd, int level, int option)
{
	int value = -1;
	socklen_t nbytes = sizeof(value);

	return getsockopt(fd, level, option, &value, &nbytes) == 0 ? value : -1;
}

/* Connections of this process whose packets have this class. */
static int count_connections(int traffic_class)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_storage peer;
		socklen_t nbytes = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &nbytes) != 0 ||
		    get_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP)
			continue;
		if (get_option(fd, IPPROTO_IP, IP_TOS) == traffic_class &&
		    (get_option(fd, SOL_SOCKET, SO_DOMAIN) != AF_INET6 ||
		     get_option(fd, IPPROTO_IPV6, IPV6_TCLASS) == traffic_class))
			n++;
	}
	return n;
}

static tutti_status call_both(tutti_comm_t comms[2])
{
	float from[2] = { 1, 2 }, to[2];
	tutti_status st = tutti_group_start();

	for (int rank = 0; rank < 2 && st == TUTTI_OK; rank++)
		st = tutti_all_reduce(&from[rank], &to[rank], 1, TUTTI_FLOAT32, TUTTI_SUM,
				      comms[rank], NULL);
	if (tutti_group_end() != TUTTI_OK || st != TUTTI_OK)
		return st != TUTTI_OK ? st : TUTTI_EINTERNAL;
	return to[0] == 3 && to[1] == 3 ? TUTTI_OK : TUTTI_EINTERNAL;
}

static tutti_status begin_two(tutti_comm_t comms[2], int traffic_class)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.transport = "tcp";
	config.traffic_class = traffic_class;
	return tutti_comm_init_all(comms, 2, &config);
}

static void end_two(tutti_comm_t comms[2])
{
	tutti_comm_destroy(comms[0]);
	tutti_comm_destroy(comms[1]);
}

struct copy {
	tutti_comm_t of, made;
	const tutti_config *config;
	tutti_status status;
};

static void *make_copy(void *self)
{
	struct copy *copy = self;

	copy->status = tutti_comm_dup(copy->of, &copy->made, copy->config);
	return NULL;
}

static void dup_both(tutti_comm_t of[2], const tutti_config *config, tutti_comm_t out[2])
{
	struct copy copies[2] = { { .of = of[0], .config = config },
				  { .of = of[1], .config = config } };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, make_copy, &copies[1]), 0);
	(void)make_copy(&copies[0]);
	pthread_join(thread, NULL);
	for (int rank = 0; rank < 2; rank++) {
		assert_int_equal(copies[rank].status, TUTTI_OK);
		out[rank] = copies[rank].made;
	}
}

/* Before this process has read its own variables. */
static void the_variable_wins(void **state)
{
	pid_t pid;
	int how;

	(void)state;
	pid = fork();
	if (pid == 0) {
		tutti_comm_t comms[2];

		setenv("TUTTI_TRAFFIC_CLASS", "32", 1);
		if (begin_two(comms, ONE) != TUTTI_OK || call_both(comms) != TUTTI_OK)
			_exit(1);
		_exit(count_connections(ANOTHER) >= 2 && count_connections(ONE) == 0 ? 0 : 2);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
}

static void connections_of_data_have_it(void **state)
{
	tutti_config other = TUTTI_CONFIG_INIT;
	tutti_comm_t comms[2], copies[2], others[2];
	int n;

	(void)state;
	other.traffic_class = ANOTHER;
	assert_int_equal(begin_two(comms, ONE), TUTTI_OK);
	assert_int_equal(call_both(comms), TUTTI_OK);
	n = count_connections(ONE);
	assert_true(n >= 2); /* both ends are here */
	dup_both(comms, NULL, copies);
	assert_int_equal(call_both(copies), TUTTI_OK);
	assert_int_equal(count_connections(ONE), 2 * n);
	dup_both(comms, &other, others);
	assert_int_equal(call_both(others), TUTTI_OK);
	assert_int_equal(count_connections(ONE), 2 * n);
	assert_int_equal(count_connections(ANOTHER), n);
	end_two(others);
	end_two(copies);
	end_two(comms);
	assert_int_equal(count_connections(ONE), 0);
}

static void without_it_they_have_the_systems(void **state)
{
	tutti_comm_t comms[2];

	(void)state;
	assert_int_equal(begin_two(comms, 0), TUTTI_OK);
	assert_int_equal(call_both(comms), TUTTI_OK);
	assert_true(count_connections(0) >= 2);
	end_two(comms);
}

static void what_cannot_be_is_refused(void **state)
{
	tutti_comm_t comms[2];

	(void)state;
	assert_int_equal(begin_two(comms, 256), TUTTI_EINVAL);
	assert_non_null(strstr(tutti_last_error(NULL), "config.traffic_class is 256"));
	assert_int_equal(begin_two(comms, -1), TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_variable_wins),
		cmocka_unit_test(connections_of_data_have_it),
		cmocka_unit_test(without_it_they_have_the_systems),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	setenv("TUTTI_TCP_LANES", "1", 1); /* none comes later */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
