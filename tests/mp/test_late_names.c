/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of the host at which ranks meet appears late, as it does where a service's name follows the
 * start of its containers, or never, or can be no name at all. The resolver is one of the test's: it stands
 * in front of the system's. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "support/port.h"
#include "tutti/tutti.h"

#define NAME    "job-0.headless.example"
#define WAIT_S  60
#define LATE_MS "5000"

static struct shared {
	_Atomic int asked; /* for NAME */
	int appears;       /* at which question; 0: never */
	int error;         /* until then */
	int system_error;  /* errno with that */
	bool interrupts;   /* whether ranks do, once they wait */
	int64_t config_ms; /* config.boot_timeout_ms of ranks */
	tutti_status status[2];
	char text[2][1024];
} * shared;

/* Takes the place of libc's. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	int (*const real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
			 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
	/* Of this process: each rank waits, however late another one comes. */
	static _Atomic int nasked;
	const int number = ++nasked;

	shared->asked++;
	if (strcmp(name, NAME) != 0)
		return real(name, service, hints, out);
	if (!shared->appears || number < shared->appears)
		return errno = shared->system_error, shared->error;
	return real("127.0.0.1", service, hints, out);
}

static int interrupt(void *arg)
{
	(void)arg;
	return shared->asked > 1;
}

static void be_a_rank(int rank, int n, const char *log)
{
	char number[16];
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	int one = 1, sum = 0;

	alarm(WAIT_S);
	config.boot_timeout_ms = shared->config_ms;
	snprintf(number, sizeof(number), "%d", rank);
	setenv("TUTTI_RANK", number, 1);
	snprintf(number, sizeof(number), "%d", n);
	setenv("TUTTI_NRANKS", number, 1);
	setenv("TUTTI_COMM_SECRET", "the secret of this test", 1);
	setenv("TUTTI_DEBUG", "WARN", 1);
	if (log)
		setenv("TUTTI_DEBUG_FILE", log, 1);
	if (shared->interrupts)
		tutti_set_interrupt(interrupt, NULL);
	shared->status[rank] = tutti_comm_init_env(&comm, &config);
	snprintf(shared->text[rank], sizeof(shared->text[rank]), "%s", tutti_last_error(NULL));
	if (shared->status[rank] == TUTTI_OK)
		shared->status[rank] =
			tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	if (shared->status[rank] == TUTTI_OK && sum != n)
		shared->status[rank] = TUTTI_EINTERNAL;
	tutti_comm_destroy(comm);
}

static void run_ranks(int n, const char *address, const char *log)
{
	pid_t pids[2];

	shared->asked = 0;
	setenv("TUTTI_COMM_ID", address, 1);
	for (int rank = 0; rank < n; rank++) {
		shared->status[rank] = TUTTI_AGAIN;
		pids[rank] = fork();
		if (pids[rank] == 0) {
			be_a_rank(rank, n, log);
			_exit(0);
		}
	}
	for (int rank = 0; rank < n; rank++)
		assert_int_equal(waitpid(pids[rank], NULL, 0), pids[rank]);
}

static int count_lines(const char *path, const char *text)
{
	FILE *const file = fopen(path, "r");
	char line[2048];
	int n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return n;
}

/* Each rank says once that it waits. */
static void late_names(void **state)
{
	static const int errors[] = { EAI_NONAME, EAI_AGAIN };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		char address[64], log[] = "/tmp/tutti-test-XXXXXX";

		close(mkstemp(log));
		shared->error = errors[i];
		shared->appears = 7;
		snprintf(address, sizeof(address), "%s:%d", NAME, port_for_later());
		run_ranks(2, address, log);
		for (int rank = 0; rank < 2; rank++)
			if (shared->status[rank] != TUTTI_OK)
				fail_msg("rank %d: %s", rank, shared->text[rank]);
		assert_int_equal(count_lines(log, NAME), 2);
		unlink(log);
	}
}

static void wrong_names(void **state)
{
	(void)state;
	shared->error = EAI_NONAME;
	shared->appears = 0;
	setenv("TUTTI_BOOT_TIMEOUT_MS", LATE_MS, 1);
	run_ranks(1, NAME ":4711", NULL);
	unsetenv("TUTTI_BOOT_TIMEOUT_MS");
	assert_int_equal(shared->status[0], TUTTI_ETIMEOUT);
	assert_non_null(strstr(shared->text[0], "no address of the host in \"" NAME
						":4711\" within " LATE_MS " ms"));
	assert_non_null(strstr(shared->text[0], gai_strerror(EAI_NONAME)));
	assert_non_null(strstr(shared->text[0], "TUTTI_COMM_ID"));
	assert_true(shared->asked > 1);
}

static void the_config_says_how_long(void **state)
{
	(void)state;
	shared->error = EAI_NONAME;
	shared->appears = 0;
	shared->config_ms = 700;
	run_ranks(1, NAME ":4711", NULL);
	shared->config_ms = 0;
	assert_int_equal(shared->status[0], TUTTI_ETIMEOUT);
	assert_non_null(strstr(shared->text[0], "within 700 ms"));
}

/* With the boot timeout that there is: nobody waits for it. */
static void no_names(void **state)
{
	static const char *const addresses[] = { "300.1.2.3:4711", "[fe80::zz]:4711", "a..b:4711",
						 ".a:4711",        "a b:4711",        "a/b:4711" };

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		run_ranks(1, addresses[i], NULL);
		if (shared->status[0] != TUTTI_EINVAL || shared->asked > 1 ||
		    !strstr(shared->text[0], addresses[i]))
			fail_msg("%s: %s, %s", addresses[i], tutti_status_name(shared->status[0]),
				 shared->text[0]);
	}
}

/* The system's own trouble is no fault of the name, and named. */
static void no_resolver(void **state)
{
	(void)state;
	shared->error = EAI_SYSTEM;
	shared->system_error = EMFILE;
	shared->appears = 0;
	run_ranks(1, NAME ":4711", NULL);
	assert_int_equal(shared->status[0], TUTTI_ESYS);
	assert_non_null(strstr(shared->text[0], NAME));
	assert_non_null(strstr(shared->text[0], strerror(EMFILE)));
	assert_int_equal(shared->asked, 1);
}

/* Long before the boot timeout, which is longer than the rank may live. */
static void interrupted(void **state)
{
	(void)state;
	shared->error = EAI_NONAME;
	shared->appears = 0;
	shared->interrupts = true;
	setenv("TUTTI_BOOT_TIMEOUT_MS", "600000", 1);
	run_ranks(1, NAME ":4711", NULL);
	unsetenv("TUTTI_BOOT_TIMEOUT_MS");
	shared->interrupts = false;
	assert_int_equal(shared->status[0], TUTTI_EABORTED);
	assert_non_null(strstr(shared->text[0], NAME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_names),
		cmocka_unit_test(wrong_names),
		cmocka_unit_test(the_config_says_how_long),
		cmocka_unit_test(no_names),
		cmocka_unit_test(no_resolver),
		cmocka_unit_test(interrupted),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
