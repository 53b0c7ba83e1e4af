/* SPDX-License-Identifier: BSD-3-Clause */
/* Who asks for encryption gets it: the variable or the program. The environment is read once per process, so
 * each case is a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/comm.h"
#include "core/lifetime.h"

/* Whether a communicator is encrypted where the variable and the program say so; variable NULL: unset. */
static int is_encrypted(const char *variable, int field)
{
	int status = -1;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		tutti_config config = TUTTI_CONFIG_INIT;
		struct tti_comm *comm;

		config.encrypt = field;
		if (variable)
			setenv("TUTTI_ENCRYPT", variable, 1);
		else
			unsetenv("TUTTI_ENCRYPT");
		comm = tti_comm_create(0, 1, &config);
		_exit(comm ? comm->encrypt : 2);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void who_asks_for_it_gets_it(void **state)
{
	(void)state;
	assert_int_equal(is_encrypted(NULL, 0), 0);
	assert_int_equal(is_encrypted(NULL, 1), 1);
	assert_int_equal(is_encrypted("0", 0), 0);
	assert_int_equal(is_encrypted("0", 1), 1);
	assert_int_equal(is_encrypted("1", 0), 1);
	assert_int_equal(is_encrypted("1", 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_for_it_gets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
