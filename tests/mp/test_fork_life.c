/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of ranks, as they live: they end in every way there is, stay, run another program, or make a
 * communicator of their own. Their parent and its peers go on as if they were not there. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "util/sanitizer.h"

#define N       3
#define FORKS   1 /* the rank that forks */
#define WAIT_MS 60000
#define VALUE   7.0f
#define LONG    300000 /* floats: more than goes through slots at once */

/* A child of a sanitized process may find its heap locked, by a thread that it has not. */
#define CAN_ALLOCATE !TTI_SANITIZED

static struct shared {
	_Atomic int has_forked; /* once per life of the crew */
	_Atomic int is_over;
	_Atomic int has_id;
	tutti_unique_id id;
	char text[512]; /* what a child found wrong */
} * shared;

static tutti_status sum_of(tutti_comm_t comm, size_t count)
{
	float *const a = malloc(2 * count * sizeof(*a)), *const b = a + count;
	tutti_status st;
	int n;

	for (size_t i = 0; i < count; i++)
		a[i] = 1;
	st = tutti_comm_count(comm, &n);
	if (st == TUTTI_OK)
		st = tutti_all_reduce(a, b, count, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
	for (size_t i = 0; i < count && st == TUTTI_OK; i++)
		st = b[i] == (float)n ? TUTTI_OK : TUTTI_EINTERNAL;
	free(a);
	return st;
}

/* Some of all that a communicator has: links of all kinds, and one that descends from it. */
static tutti_status use(tutti_comm_t comm)
{
	tutti_comm_t child = NULL;
	tutti_status st = sum_of(comm, 1);

	if (st == TUTTI_OK)
		st = sum_of(comm, LONG);
	if (st == TUTTI_OK)
		st = tutti_comm_dup(comm, &child, NULL);
	if (st == TUTTI_OK)
		st = sum_of(child, 1);
	if (st == TUTTI_OK)
		st = tutti_comm_destroy(child);
	return st;
}

/* What a child has of the library's, of a kind: how many. */
static int count_files(const char *const *kinds)
{
	DIR *const list = opendir("/proc/self/fd");
	int n = 0;

	for (struct dirent *entry; list && (entry = readdir(list));) {
		char path[300], target[300];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		target[len < 0 ? 0 : len] = '\0';
		for (int i = 0; kinds[i]; i++)
			n += atoi(entry->d_name) > 2 && strstr(target, kinds[i]) == target;
	}
	if (list)
		closedir(list);
	return list ? n : -1;
}

static int count_maps(void)
{
	FILE *const maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:tutti") != NULL;
	if (maps)
		fclose(maps);
	return maps ? n : -1;
}

/* Runs in a child, which ends with its result. */
typedef int (*life)(void *arg);

static pid_t begin_life(life live, void *arg)
{
	const pid_t pid = fork();

	if (pid == 0) {
		alarm(WAIT_MS / 1000);
		_exit(live(arg));
	}
	return pid;
}

static int end_life(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* -- They end ------------------------------------------------------------------------- */

static int leave(void *arg)
{
	(void)arg;
	return 0;
}

static int leave_by_exit(void *arg)
{
	(void)arg;
	exit(0);
}

static int die(void *arg)
{
	signal(*(const int *)arg, SIG_DFL);
	return raise(*(const int *)arg);
}

static tutti_status end_in_all_ways(tutti_comm_t comm)
{
	static int segv = SIGSEGV, killed = SIGKILL, term = SIGTERM;
	static const struct {
		life live;
		int *arg;
	} ways[] = { { leave, NULL },
		     { leave_by_exit, NULL },
		     { die, &segv },
		     { die, &killed },
		     { die, &term } };
	tutti_status st = TUTTI_OK;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways) && st == TUTTI_OK; i++) {
		/* It would call a leak what threads of its parent hold. */
		if (TTI_SANITIZED && ways[i].live == leave_by_exit)
			continue;
		(void)end_life(begin_life(ways[i].live, ways[i].arg));
		st = use(comm);
	}
	return st;
}

static int nways(void)
{
	return TTI_SANITIZED ? 4 : 5;
}

static tutti_status children_end(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = use(comm);

	if (st == TUTTI_OK && rank == FORKS)
		st = end_in_all_ways(comm);
	for (int i = 0; i < nways() && st == TUTTI_OK && rank != FORKS; i++)
		st = use(comm);
	crew->stop = 1;
	return st;
}

/* -- They stay ------------------------------------------------------------------------- */

static void complain(const char *what, int n)
{
	snprintf(shared->text, sizeof(shared->text), "%s: %d", what, n);
}

static int stay(void *arg)
{
	static const char *const kinds[] = { "socket:", "/memfd:tutti", NULL };
	const float *const memory = *(float **)arg;

	if (CAN_ALLOCATE && count_files(kinds) != 0)
		complain("sockets and shared memory that are open", count_files(kinds));
	if (CAN_ALLOCATE && !memory && count_maps() != 0)
		complain("mappings", count_maps());
	if (memory && *memory != VALUE)
		complain("memory that its parent allocated", (int)*memory);
	shared->has_forked++;
	while (!shared->is_over)
		crew_nap_us(1000);
	return 0;
}

/* Both children live until the communicator of their parent is gone. */
static tutti_status children_stay(struct crew *crew, int rank, tutti_comm_t comm)
{
	float *memory = NULL;
	tutti_comm_t second = NULL;
	tutti_status st = use(comm);

	if (st == TUTTI_OK && rank == FORKS)
		(void)begin_life(stay, &memory);
	if (st == TUTTI_OK)
		st = tutti_mem_alloc((void **)&memory, sizeof(*memory), comm);
	if (st == TUTTI_OK && rank == FORKS) {
		*memory = VALUE;
		(void)begin_life(stay, &memory);
		while (shared->has_forked < 2)
			crew_nap_us(1000);
	}
	if (st == TUTTI_OK)
		st = use(comm);
	if (st == TUTTI_OK)
		st = tutti_comm_split(comm, 0, N - rank, &second, NULL);
	if (st == TUTTI_OK)
		st = use(second);
	if (st == TUTTI_OK)
		st = tutti_mem_free(memory, comm);
	if (st == TUTTI_OK)
		st = tutti_comm_destroy(second);
	crew->stop = 1;
	return st;
}

/* -- They run another program ----------------------------------------------------------- */

#define COUNT_FILES "--count-files"

static int run_a_program(void *arg)
{
	static char name[] = "child", what[] = COUNT_FILES;
	char *const args[] = { name, what, NULL };

	(void)arg;
	execv("/proc/self/exe", args);
	return 255;
}

static tutti_status a_program_has_nothing(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = use(comm);

	if (st == TUTTI_OK && rank == FORKS) {
		const int n = end_life(begin_life(run_a_program, NULL));

		if (n != 0)
			complain("files that are open in a program", n);
	}
	if (st == TUTTI_OK)
		st = use(comm);
	crew->stop = 1;
	return st;
}

/* -- They make their own ------------------------------------------------------------------ */

struct own {
	int rank, n;
	const char *transport;
};

/* A member of the family: two children and, as rank 2, their parent. */
static tutti_status meet(const struct own *own)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	tutti_status st;

	config.transport = own->transport;
	st = tutti_comm_init_rank_config(&comm, own->n, shared->id, own->rank, &config);
	if (st == TUTTI_OK)
		st = tutti_group_start();
	if (st == TUTTI_OK)
		st = tutti_group_end();
	if (st == TUTTI_OK)
		st = use(comm);
	return st == TUTTI_OK ? tutti_comm_destroy(comm) : st;
}

static int meet_in_child(void *arg)
{
	const tutti_status st = meet(arg);

	if (st != TUTTI_OK)
		snprintf(shared->text, sizeof(shared->text), "child %d: %s: %s",
			 ((struct own *)arg)->rank, tutti_status_name(st), tutti_last_error(NULL));
	return st != TUTTI_OK;
}

/* Forked with a group open, and with all that its parent had. */
static tutti_status children_meet(struct crew *crew, int rank, tutti_comm_t comm)
{
	struct own own = { 0, N, crew->transport };
	pid_t pids[2];
	tutti_status st = use(comm);

	if (st == TUTTI_OK && rank == FORKS) {
		st = tutti_get_unique_id(&shared->id);
		if (st == TUTTI_OK)
			st = tutti_group_start();
		for (; own.rank < 2; own.rank++)
			pids[own.rank] = begin_life(meet_in_child, &own);
		if (st == TUTTI_OK)
			st = tutti_group_end();
		if (st == TUTTI_OK)
			st = meet(&own);
		for (int i = 0; i < 2; i++)
			(void)end_life(pids[i]);
	}
	if (st == TUTTI_OK)
		st = use(comm);
	crew->stop = 1;
	return st;
}

/* -- All of them ---------------------------------------------------------------------------- */

struct test {
	char *transport;
	tutti_status (*call)(struct crew *, int, tutti_comm_t);
};

static void children_live(void **state)
{
	const struct test *test = *state;
	struct crew *crew;

	if (test->call == children_meet && !CAN_ALLOCATE)
		skip();
	crew = crew_create(N, test->transport, test->call);
	memset(shared, 0, sizeof(*shared));
	fflush(NULL);
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
	shared->is_over = 1;
	for (int rank = 0; rank < N; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
	assert_string_equal(shared->text, "");
	crew_free(crew);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "socket:", "anon_inode:", "/memfd:", NULL };
	static char shm[] = "shm", tcp[] = "tcp";
	static struct test end[] = { { shm, children_end }, { tcp, children_end } };
	static struct test stays[] = { { shm, children_stay }, { tcp, children_stay } };
	static struct test program[] = { { shm, a_program_has_nothing },
					 { tcp, a_program_has_nothing } };
	static struct test own[] = { { shm, children_meet }, { tcp, children_meet } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(children_live, &end[0]),
		cmocka_unit_test_prestate(children_live, &end[1]),
		cmocka_unit_test_prestate(children_live, &stays[0]),
		cmocka_unit_test_prestate(children_live, &stays[1]),
		cmocka_unit_test_prestate(children_live, &program[0]),
		cmocka_unit_test_prestate(children_live, &program[1]),
		cmocka_unit_test_prestate(children_live, &own[0]),
		cmocka_unit_test_prestate(children_live, &own[1]),
	};

	if (argc == 2 && !strcmp(argv[1], COUNT_FILES))
		return count_files(kinds);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
