/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says about addresses; it is read once per process, so each
 * case is a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/init/id.h"
#include "boot/net/iface.h"
#include "support/port.h"
#include "util/error.h"

/* The status of what `check` says in a process with these variables. */
static int in_process(const char *ifname, const char *family, const char *comm_id,
		      int (*check)(void))
{
	int status = -1;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ifname)
			setenv("TUTTI_SOCKET_IFNAME", ifname, 1);
		if (family)
			setenv("TUTTI_SOCKET_FAMILY", family, 1);
		if (comm_id)
			setenv("TUTTI_COMM_ID", comm_id, 1);
		_exit(check());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int only_lo(void)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n;

	if (tti_iface_list(addrs, TTI_IFACE_MOST, &n, NULL) != TUTTI_OK || n == 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (strcmp(addrs[i].ifname, "lo") != 0)
			return 2;
	return 0;
}

static int only_ipv4(void)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	uint16_t port = 0;
	size_t n;
	int fd;

	if (tti_iface_list(addrs, TTI_IFACE_MOST, &n, NULL) != TUTTI_OK || n == 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (addrs[i].family != 4)
			return 2;
	return tti_listen(&port, 1, &fd) == TUTTI_OK ? 0 : 3;
}

static int nothing_is_left(void)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n;

	if (tti_iface_list(addrs, TTI_IFACE_MOST, &n, NULL) != TUTTI_EUSAGE)
		return 1;
	return strstr(tti_error_text(), "excluded by TUTTI_SOCKET_IFNAME") &&
			       strstr(tti_error_text(), "lo (127.0.0.1")
		       ? 0
		       : 2;
}

static int id_is_by_hand(void)
{
	tutti_unique_id wire;
	struct tti_id id;

	if (tti_boot_id_create(&wire) != TUTTI_OK || tti_id_decode(&wire, &id) != TUTTI_OK)
		return 1;
	return id.flags == (TTI_ID_BY_HAND | TTI_ID_OPEN) && id.addrs[0].port == htons(4711) ? 0
											     : 2;
}

static void interfaces_are_filtered(void **state)
{
	(void)state;
	assert_int_equal(in_process("lo", NULL, NULL, only_lo), 0);
	assert_int_equal(in_process("=lo", NULL, NULL, only_lo), 0);
	assert_int_equal(in_process("=l", NULL, NULL, nothing_is_left), 0);
	assert_int_equal(in_process("nosuch,not", NULL, NULL, nothing_is_left), 0);
	assert_int_equal(in_process(NULL, "AF_INET", NULL, only_ipv4), 0);
}

static void an_address_makes_the_id(void **state)
{
	(void)state;
	assert_int_equal(in_process(NULL, NULL, "127.0.0.1:4711", id_is_by_hand), 0);
}

static char range[32]; /* of two ports that are free */

static int in_the_range(void)
{
	const int first = atoi(range);
	uint16_t ports[3] = { 0 };
	int fd;

	for (int i = 0; i < 2; i++)
		if (tti_listen(&ports[i], 1, &fd) != TUTTI_OK || ports[i] < first ||
		    ports[i] > first + 1)
			return 1;
	if (ports[0] == ports[1])
		return 2;
	if (tti_listen(&ports[2], 1, &fd) != TUTTI_ESYS)
		return 3;
	return strstr(tti_error_text(), "any of the 2 ports of TUTTI_PORT_RANGE") ? 0 : 4;
}

static int is_no_range(void)
{
	uint16_t port = 0;
	int fd;

	return tti_listen(&port, 1, &fd) == TUTTI_EINVAL ? 0 : 1;
}

static void ports_are_of_the_range(void **state)
{
	static const char *const bad[] = { "40000", "40000-", "2-1", "0-9", "1-65536", "1-2x" };
	const uint16_t first = ports_for_later(2);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("TUTTI_PORT_RANGE", bad[i], 1);
		assert_int_equal(in_process(NULL, NULL, NULL, is_no_range), 0);
	}
	snprintf(range, sizeof(range), "%u-%u", first, first + 1);
	setenv("TUTTI_PORT_RANGE", range, 1);
	assert_int_equal(in_process(NULL, NULL, NULL, in_the_range), 0);
	unsetenv("TUTTI_PORT_RANGE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interfaces_are_filtered),
		cmocka_unit_test(an_address_makes_the_id),
		cmocka_unit_test(ports_are_of_the_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
