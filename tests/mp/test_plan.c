/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are processes agree on one plan, or all of them end with the same error. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/sanitizer.h"
#include "tutti/inspect.h"

#define N      4
#define SECOND INT64_C(1000000000)

/* What is set for which rank. */
struct setting {
	int rank; /* -1: all */
	const char *variable, *value;
};
static const struct setting *settings;

/* In place of a variable: the core that the rank is bound to. */
#define BIND "bind"

static void bind_to(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		abort();
}

static void prepare(struct crew *crew, int rank)
{
	(void)crew;
	for (const struct setting *s = settings; s->variable; s++) {
		if (s->rank != rank && s->rank >= 0)
			continue;
		if (strcmp(s->variable, BIND) == 0)
			bind_to((size_t)atoi(s->value));
		else
			setenv(s->variable, s->value, 1);
	}
}

static tutti_status reduce_once(struct crew *crew, int rank, tutti_comm_t comm)
{
	float in = (float)rank + 1, out = 0;
	const tutti_status st =
		tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);

	atomic_store(&crew->stop, 1);
	return st == TUTTI_OK && out != N * (N + 1) / 2.0f ? TUTTI_EINTERNAL : st;
}

static struct crew *start(const struct setting *set)
{
	struct crew *crew = crew_create(N, NULL, reduce_once);

	settings = set;
	crew->prepare = prepare;
	crew->timeout_ms = 100000;
	return crew;
}

/* All ranks end with that status, soon, and `words` are in the text of each. */
static void all_fail(const struct setting *set, tutti_status status, const char *words)
{
	struct crew *crew = start(set);
	const int64_t begin = crew_now_ns();

	assert_int_not_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 100000, -1), 0);
	for (int rank = 0; rank < N; rank++) {
		const struct crew_rank *own = &crew->rank[rank];

		if (own->status != status || !strstr(own->text, words))
			fail_msg("rank %d has %s \"%s\", not %s \"%s\"", rank,
				 tutti_status_name((tutti_status)own->status), own->text,
				 tutti_status_name(status), words);
		assert_true(own->failed_ns - begin < 50 * SECOND);
	}
	crew_free(crew);
}

#define AZURE TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml"
#define AMD   TEST_DATA "/topologies/rccl__topo_8p_rome_n4_1.xml"

static void other_topologies(void **state)
{
	const struct setting other[] = { { -1, "TUTTI_TOPO_FILE", AZURE },
					 { 2, "TUTTI_TOPO_FILE", AMD },
					 { 0 } };
	const struct setting none[] = { { 1, "TUTTI_TOPO_FILE", AZURE }, { 0 } };
	const struct setting missing[] = { { -1, "TUTTI_TOPO_FILE", AZURE },
					   { 3, "TUTTI_TOPO_FILE", "/does/not/exist" },
					   { 0 } };
	const struct setting roots[] = { { -1, "TUTTI_SYSFS_ROOT", "/" },
					 { 3, "TUTTI_SYSFS_ROOT", "/." },
					 { 0 } };
	const struct setting level[] = { { 1, "TUTTI_PXN_DISABLE", "1" }, { 0 } };
	const struct setting reach[] = { { 1, "TUTTI_REACH", "slots" }, { 0 } };

	(void)state;
	all_fail(other, TUTTI_EPLAN, "the TUTTI_TOPO_FILE of rank 2 (B) is not that of rank 0 (A)");
	all_fail(none, TUTTI_EPLAN, "rank 0 has no TUTTI_TOPO_FILE and rank 1 has one");
	all_fail(missing, TUTTI_EINVAL, "/does/not/exist: No such file");
	all_fail(roots, TUTTI_EPLAN, "rank 3 has another TUTTI_SYSFS_ROOT than rank 0");
	all_fail(level, TUTTI_EPLAN, "rank 1 has another TUTTI_PXN_DISABLE than rank 0");
	all_fail(reach, TUTTI_EINVAL, "rank 1 has another TUTTI_REACH than rank 0");
}

static void write_file(char *path, const char *text)
{
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void plans_that_are_none(void **state)
{
	char one[] = "/tmp/tutti-plan-XXXXXX", two[] = "/tmp/tutti-plan-XXXXXX";
	const struct setting broken[] = { { -1, "TUTTI_PLAN_FILE", one }, { 0 } };
	const struct setting differing[] = { { -1, "TUTTI_PLAN_FILE", one },
					     { 1, "TUTTI_PLAN_FILE", two },
					     { 0 } };

	(void)state;
	write_file(one, "{\n\"nodes\": 1,\n\"ranks\": 4}");
	write_file(two, "{\n\"nodes\": 2,\n\"ranks\": 4}");
	all_fail(broken, TUTTI_EPLAN, "cannot be used: ");
	all_fail(differing, TUTTI_EPLAN, "the TUTTI_PLAN_FILE of rank 1 (B) is not that of rank 0");
	unlink(one);
	unlink(two);
}

static void other_tuning(void **state)
{
	char one[] = "/tmp/tutti-tune-XXXXXX", two[] = "/tmp/tutti-tune-XXXXXX";
	const struct setting tuned[] = { { -1, "TUTTI_TUNE_FILE", one },
					 { 2, "TUTTI_TUNE_FILE", two },
					 { 0 } };

	(void)state;
	write_file(one, "choose all_reduce inf ring\n");
	write_file(two, "choose all_reduce inf direct\n");
	all_fail(tuned, TUTTI_EINVAL, "the TUTTI_TUNE_FILE of rank 2 is not that of rank 0");
	unlink(one);
	unlink(two);
}

/* -- Faults ------------------------------------------------------------------------ */

/* Two hosts, so that there is something to plan. */
#define TWO_HOSTS                                                                              \
	{ 0, "TUTTI_HOST_ID", "a" }, { 1, "TUTTI_HOST_ID", "a" }, { 2, "TUTTI_HOST_ID", "b" }, \
	{                                                                                      \
		3, "TUTTI_HOST_ID", "b"                                                        \
	}

static void faults_of_one_rank(void **state)
{
	const struct setting shape[] = { TWO_HOSTS, { 3, "TUTTI_FAULT", "core.shape:1" }, { 0 } };
	const struct setting topo[] = { TWO_HOSTS, { 2, "TUTTI_FAULT", "core.topo:1" }, { 0 } };

	(void)state;
	all_fail(shape, TUTTI_EPLAN, "rank 3 makes other programs from the plan than rank 0");
	all_fail(topo, TUTTI_EINTERNAL, "core.topo: injected fault");
}

/* Whatever allocation fails on whatever rank, nobody is left behind: those that wait for
 * a rank that did not even get as far as the bootstrap do so no longer than it says. */
static void no_memory_on_one_rank(void **state)
{
	const int step = SANITIZED ? 97 : 11;

	(void)state;
	for (int pass = 1; pass < 3000; pass += step) {
		char fault[32];
		const struct setting set[] = { TWO_HOSTS,
					       { (pass / step) % N, "TUTTI_FAULT", fault },
					       { -1, "TUTTI_DEBUG", "NONE" },
					       { -1, "TUTTI_BOOT_TIMEOUT_MS", "1500" },
					       { 0 } };
		struct crew *crew;
		int nfailed = 0;

		(void)snprintf(fault, sizeof(fault), "mem:%d", pass);
		crew = start(set);
		(void)crew_start(crew);
		assert_int_equal(crew_wait(crew, 100000, -1), 0);
		for (int rank = 0; rank < N; rank++)
			nfailed += crew->rank[rank].status != TUTTI_OK;
		crew_free(crew);
		/* The fault may be on a rank that allocates less, or after init. */
		if (nfailed == 0 && pass > 1500)
			break;
	}
}

/* -- Plans that work ------------------------------------------------------------------ */

struct seen {
	char json[N][16384], text[N][4096];
};
static struct seen *seen;

static tutti_status keep_plan(struct crew *crew, int rank, tutti_comm_t comm)
{
	char *json = NULL, *text = NULL;
	tutti_status st = reduce_once(crew, rank, comm);

	if (st == TUTTI_OK)
		st = tutti_comm_plan(comm, 1, &json);
	if (st == TUTTI_OK)
		st = tutti_comm_plan(comm, 0, &text);
	if (st == TUTTI_OK) {
		(void)snprintf(seen->json[rank], sizeof(seen->json[rank]), "%s", json);
		(void)snprintf(seen->text[rank], sizeof(seen->text[rank]), "%s", text);
	}
	free(json);
	free(text);
	return st;
}

/* Run it and see that all ranks hold the same plan. */
static void run_and_look(const struct setting *set)
{
	struct crew *crew = start(set);

	/* In memory that the ranks share with the test. */
	crew->call = keep_plan;
	memset(seen, 0, sizeof(*seen));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < N; rank++) {
		assert_int_equal(crew->rank[rank].status, TUTTI_OK);
		assert_string_equal(seen->json[rank], seen->json[0]);
		assert_string_equal(seen->text[rank], seen->text[0]);
	}
	crew_free(crew);
}

static void hosts(void **state)
{
	const struct setting set[] = { { 0, "TUTTI_HOST_ID", "a" },
				       { 1, "TUTTI_HOST_ID", "b" },
				       { 2, "TUTTI_HOST_ID", "c" },
				       { 3, "TUTTI_HOST_ID", "a" },
				       { 0 } };

	(void)state;
	run_and_look(set);
	assert_non_null(strstr(seen->json[0], "\"nodes\":3"));
	assert_non_null(strstr(seen->text[0], "4 ranks on 3 nodes, ring "));
	assert_non_null(strstr(seen->text[0], "; in use: 1 ring, 2 trees, 3 groups\n"));
	assert_non_null(strstr(seen->text[0], ": ranks 0 3; NIC "));
}

/* One host with two sockets, as a file says: even cores are on the one, odd on the other. */
static void sockets(void **state)
{
	char file[] = "/tmp/tutti-topo-XXXXXX";
	const struct setting bound[] = { { -1, "TUTTI_TOPO_FILE", file },
					 { 0, BIND, "0" },
					 { 1, BIND, "1" },
					 { 2, BIND, "0" },
					 { 3, BIND, "1" },
					 { 0 } };
	const struct setting unbound[] = { { -1, "TUTTI_TOPO_FILE", file }, { 0 } };
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		skip();
	write_file(file, "<system version=\"1\">"
			 "<cpu numaid=\"0\" affinity=\"55555555,55555555\" tutti_package=\"0\"/>"
			 "<cpu numaid=\"1\" affinity=\"aaaaaaaa,aaaaaaaa\" tutti_package=\"1\"/>"
			 "</system>");
	run_and_look(bound);
	assert_non_null(strstr(seen->json[0], "[\"HOST0\",\"HOST1\",\"HOST0\",\"HOST1\"]"));
	assert_non_null(strstr(seen->json[0], "\"ranks\":[0,2,1,3]"));
	assert_non_null(strstr(seen->text[0], ", 2 groups\n"));
	run_and_look(unbound);
	assert_non_null(strstr(seen->json[0], "[\"HOST0\",\"HOST0\",\"HOST1\",\"HOST1\"]"));
	unlink(file);
}

/* What a communicator made of another goes by: of hosts a, b and c with ranks 0 and 3 on a,
 * those of b, c and rank 0, or those of a alone. */
static tutti_status keep_plan_of_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	static const int colour[N] = { 0, 0, 0, TUTTI_NOCOLOR };
	tutti_comm_t three = NULL, host = NULL;
	char *text = NULL, *json = NULL;
	tutti_status st = tutti_comm_split(comm, colour[rank], -rank, &three, NULL);

	atomic_store(&crew->stop, 1);
	if (st == TUTTI_OK)
		st = tutti_comm_split(comm, rank == 0 || rank == 3, 0, &host, NULL);
	if (st == TUTTI_OK && three)
		st = tutti_comm_plan(three, 0, &text);
	if (st == TUTTI_OK && three)
		st = tutti_comm_plan(three, 1, &json);
	if (st == TUTTI_OK && !three)
		st = tutti_comm_plan(host, 0, &text);
	if (st == TUTTI_OK) {
		(void)snprintf(seen->json[rank], sizeof(seen->json[rank]), "%s", json ? json : "");
		(void)snprintf(seen->text[rank], sizeof(seen->text[rank]), "%s", text);
		st = tutti_comm_destroy(host);
	}
	if (st == TUTTI_OK && three)
		st = tutti_comm_destroy(three);
	free(json);
	free(text);
	return st;
}

static void children(void **state)
{
	const struct setting set[] = { { 0, "TUTTI_HOST_ID", "a" },
				       { 1, "TUTTI_HOST_ID", "b" },
				       { 2, "TUTTI_HOST_ID", "c" },
				       { 3, "TUTTI_HOST_ID", "a" },
				       { 0 } };
	struct crew *crew = start(set);

	(void)state;
	crew->call = keep_plan_of_child;
	memset(seen, 0, sizeof(*seen));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < N; rank++)
		assert_int_equal(crew->rank[rank].status, TUTTI_OK);
	assert_non_null(strstr(seen->text[0], "3 ranks of a communicator with a plan, which holds "
					      "as far as they go: 1 ring, 2 trees, 3 groups\n"));
	assert_non_null(strstr(seen->text[0], "\nring, share 1"));
	assert_non_null(strstr(seen->text[0], "group 2: ranks "));
	assert_non_null(strstr(seen->text[0], "parent<child:"));
	assert_string_equal(seen->text[0], seen->text[2]);
	assert_string_equal(seen->json[1], "null\n");
	assert_string_equal(seen->text[3],
			    "nothing to plan: all of its ranks are on one host and go "
			    "by number\n");
	crew_free(crew);
}

/* A plan that a rank tells is one that may be told to all. */
static void saved(void **state)
{
	char file[] = "/tmp/tutti-plan-XXXXXX";
	const struct setting first[] = { TWO_HOSTS, { 0 } };
	const struct setting again[] = { TWO_HOSTS, { -1, "TUTTI_PLAN_FILE", file }, { 0 } };
	char *kept;

	(void)state;
	run_and_look(first);
	kept = strdup(seen->json[0]);
	write_file(file, kept);
	run_and_look(again);
	assert_string_equal(seen->json[0], kept);
	free(kept);
	unlink(file);
}

/* What needs no plan has none. */
static void one_numa_node(void **state)
{
	const struct setting set[] = { { 0 } };

	(void)state;
	if (access("/sys/devices/system/node/node1", F_OK) == 0)
		skip();
	run_and_look(set);
	assert_string_equal(seen->json[0], "null\n");
	assert_non_null(strstr(seen->text[0], "nothing to plan"));
}

static int set_up(void **state)
{
	(void)state;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(seen, sizeof(*seen));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_topologies),
		cmocka_unit_test(plans_that_are_none),
		cmocka_unit_test(other_tuning),
		cmocka_unit_test(faults_of_one_rank),
		cmocka_unit_test(no_memory_on_one_rank),
		cmocka_unit_test(hosts),
		cmocka_unit_test(sockets),
		cmocka_unit_test(saved),
		cmocka_unit_test(one_numa_node),
		cmocka_unit_test(children),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
