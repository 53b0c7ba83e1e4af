/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of a process: memory that belongs to no communicator, between processes; what a forked
 * child has of it; what is left of it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "tutti/inspect.h"

#define COUNT   ((size_t)1 << 18)
#define BYTES   (2 * COUNT * sizeof(int))
#define WAIT_MS 60000

static bool is_in_place(tutti_comm_t comm)
{
	struct tutti_call_report report;

	return tutti_comm_last_call(comm, &report) == TUTTI_OK &&
	       !strcmp(report.algorithm, "memory");
}

/* A sum of what lies in `memory`, in place where all lies; TUTTI_EINTERNAL: it is wrong. */
static tutti_status sum(tutti_comm_t comm, int rank, int n, int *memory, bool in_place)
{
	int *const send = memory, *const recv = memory + COUNT;
	tutti_status st;

	for (size_t i = 0; i < COUNT; i++)
		send[i] = rank + (int)(i % 1000);
	st = tutti_all_reduce(send, recv, COUNT, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (recv[i] != n * (int)(i % 1000) + n * (n - 1) / 2)
			st = TUTTI_EINTERNAL;
	return st == TUTTI_OK && is_in_place(comm) != in_place ? TUTTI_EUNSUPPORTED : st;
}

static void run(int n, tutti_status (*call)(struct crew *, int, tutti_comm_t))
{
	struct crew *crew = crew_create(n, "shm", call);

	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
	for (int rank = 0; rank < n; rank++)
		if (crew->rank[rank].status != TUTTI_OK || !crew->rank[rank].calls)
			fail_msg("rank %d: %d, %s", rank, crew->rank[rank].status,
				 crew->rank[rank].text);
	crew_free(crew);
}

static void *free_it(void *memory)
{
	return tutti_mem_free(memory, NULL) == TUTTI_OK ? NULL : memory;
}

static tutti_status free_in_a_thread(void *memory)
{
	pthread_t thread;
	void *result = memory;

	if (pthread_create(&thread, NULL, free_it, memory) || pthread_join(thread, &result))
		return TUTTI_ESYS;
	return result ? TUTTI_EINTERNAL : TUTTI_OK;
}

/* Communicators that were made before and after the allocation use it; it outlives both. */
static tutti_status any_communicator(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_comm_t other = NULL;
	int *memory = NULL, *more = NULL;
	tutti_status st = tutti_mem_alloc((void **)&memory, BYTES, NULL);

	if (st == TUTTI_OK)
		st = sum(comm, rank, crew->n, memory, true);
	if (st == TUTTI_OK)
		st = tutti_comm_dup(comm, &other, NULL);
	if (st == TUTTI_OK)
		st = sum(other, rank, crew->n, memory, true);
	if (st == TUTTI_OK)
		st = tutti_mem_alloc((void **)&more, BYTES, other);
	if (st == TUTTI_OK)
		st = sum(comm, rank, crew->n, more, true);
	if (st == TUTTI_OK)
		st = tutti_comm_destroy(other);
	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (more[i] != rank + (int)(i % 1000))
			st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = sum(comm, rank, crew->n, more, true);
	if (st == TUTTI_OK)
		st = free_in_a_thread(memory);
	if (st == TUTTI_OK)
		st = tutti_mem_free(more, comm);
	if (st == TUTTI_OK && tutti_mem_free(more, NULL) != TUTTI_EINVAL)
		st = TUTTI_EINTERNAL;
	crew->stop = 1;
	return st;
}

static void of_any_communicator(void **state)
{
	(void)state;
	run(2, any_communicator);
	run(4, any_communicator);
}

/* -- After the communicator, and forks: what ranks say by their exit ----------- */

/* Rank 0 tells the other one the id by a pipe: the parent of both has no threads. */
static tutti_status get_comm(int rank, const int *ends, tutti_comm_t *comm)
{
	tutti_unique_id id;

	if (rank == 0 && (tutti_get_unique_id(&id) != TUTTI_OK ||
			  write(ends[1], &id, sizeof(id)) != (ssize_t)sizeof(id)))
		return TUTTI_ESYS;
	if (rank == 1 && read(ends[0], &id, sizeof(id)) != (ssize_t)sizeof(id))
		return TUTTI_ESYS;
	return tutti_comm_init_rank(comm, 2, id, rank);
}

/* Ranks 0 and 1, in processes of their own, run `use` after both have a communicator. */
static void run_pair(bool (*use)(int rank, tutti_comm_t comm))
{
	int ends[2];
	pid_t pids[2];

	assert_int_equal(pipe(ends), 0);
	for (int rank = 0; rank < 2; rank++) {
		pids[rank] = fork();
		if (pids[rank] == 0) {
			tutti_comm_t comm = NULL;

			alarm(WAIT_MS / 1000);
			_exit(get_comm(rank, ends, &comm) != TUTTI_OK ? 2 : !use(rank, comm));
		}
	}
	for (int rank = 0; rank < 2; rank++) {
		int status = -1;

		assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
		assert_int_equal(status, 0);
	}
}

static bool after_the_end(int rank, tutti_comm_t comm)
{
	int *memory = NULL;
	bool good = tutti_mem_alloc((void **)&memory, BYTES, comm) == TUTTI_OK &&
		    sum(comm, rank, 2, memory, true) == TUTTI_OK &&
		    tutti_comm_destroy(comm) == TUTTI_OK;

	for (size_t i = 0; i < COUNT && good; i++)
		good = memory[i] == rank + (int)(i % 1000) &&
		       memory[COUNT + i] == 2 * (int)(i % 1000) + 1;
	return good && tutti_mem_free(memory, NULL) == TUTTI_OK;
}

static void memory_outlives_its_communicator(void **state)
{
	(void)state;
	run_pair(after_the_end);
}

/* In a child: what it has, what it may do, and that the parent does not see what it writes to
 * `copied`. Its own allocations are its own. */
static int child_of_fork(int *copied, int *shared, int *untouched)
{
	int *own = NULL, *again = NULL;

	if (copied[0] != 10 || copied[COUNT] != 11 || shared[0] != 20 || untouched[5])
		return 10;
	copied[0] = 100;
	shared[0] = 200;
	untouched[7] = 1;
	if (tutti_mem_alloc((void **)&own, BYTES, NULL) != TUTTI_OK || own[0])
		return 11;
	own[0] = 1;
	/* Freeing the parent's takes nothing from it. */
	if (tutti_mem_free(copied, NULL) != TUTTI_OK || tutti_mem_free(shared, NULL) != TUTTI_OK)
		return 12;
	if (tutti_mem_alloc((void **)&again, BYTES, NULL) != TUTTI_OK || again[0] || again == own)
		return 13;
	return tutti_mem_free(own, NULL) == TUTTI_OK ? 0 : 14;
}

static bool wait_for(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool forks(int rank, tutti_comm_t comm)
{
	int *copied = NULL, *shared = NULL, *untouched = NULL, ends[2], go = 0;
	pid_t pid;

	if (tutti_mem_alloc((void **)&copied, BYTES, NULL) != TUTTI_OK ||
	    tutti_mem_alloc((void **)&shared, BYTES, NULL) != TUTTI_OK ||
	    tutti_mem_alloc((void **)&untouched, BYTES, NULL) != TUTTI_OK ||
	    tutti_mem_copy_on_fork(copied) != TUTTI_OK ||
	    tutti_mem_copy_on_fork(untouched) != TUTTI_OK ||
	    tutti_mem_copy_on_fork(copied + 1) != TUTTI_EINVAL ||
	    sum(comm, rank, 2, copied, true) != TUTTI_OK || pipe(ends))
		return false;
	copied[0] = 10;
	copied[COUNT] = 11;
	shared[0] = 20;
	pid = fork();
	if (pid == 0)
		_exit(read(ends[0], &go, sizeof(go)) == (ssize_t)sizeof(go)
			      ? child_of_fork(copied, shared, untouched)
			      : 9);
	/* The child has what was there when it was forked. */
	copied[0] = -1;
	copied[COUNT] = -2;
	untouched[5] = -3;
	if (write(ends[1], &go, sizeof(go)) != (ssize_t)sizeof(go) || !wait_for(pid))
		return false;
	if (copied[0] != -1 || copied[COUNT] != -2 || shared[0] != 200 || untouched[7])
		return false;
	/* The parent's is still reached in place. */
	return sum(comm, rank, 2, copied, true) == TUTTI_OK &&
	       tutti_mem_free(copied, NULL) == TUTTI_OK && tutti_comm_destroy(comm) == TUTTI_OK;
}

static void a_child_has_a_copy(void **state)
{
	(void)state;
	run_pair(forks);
}

/* Without a file for the copy the child has nothing, and the parent loses nothing. */
static void no_copy_no_access(void **state)
{
	int *memory = NULL, status = 0;
	struct rlimit limit, none;
	pid_t pid;

	(void)state;
	assert_int_equal(tutti_mem_alloc((void **)&memory, BYTES, NULL), TUTTI_OK);
	assert_int_equal(tutti_mem_copy_on_fork(memory), TUTTI_OK);
	memory[0] = 5;
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		memory[0] = 6;
		_exit(0);
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
	assert_int_equal(memory[0], 5);
	assert_int_equal(tutti_mem_free(memory, NULL), TUTTI_OK);
}

/* -- What is left --------------------------------------------------------------- */

/* The inode of the heap of a process, or 0; or whether it has that one, mapped or open. */
static unsigned long find_heap(pid_t pid, unsigned long wanted)
{
	char path[64], line[512], name[256];
	unsigned long inode, found = 0;
	struct stat stat_of;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && !found && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%*s %*s %*s %*s %lu /memfd:%255s", &inode, name) == 2 &&
		    strstr(name, "tutti-heap") && (!wanted || inode == wanted))
			found = inode;
	if (maps)
		(void)fclose(maps);
	for (int fd = 0; wanted && !found && fd < 64; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		if (stat(path, &stat_of) == 0 && stat_of.st_ino == wanted &&
		    readlink(path, name, sizeof(name)) > 17 &&
		    !strncmp(name, "/memfd:tutti-heap", 17))
			found = wanted;
	}
	return found;
}

/* Processes of this machine that hold the memory of that heap. */
static int count_holders(unsigned long inode)
{
	DIR *dir = opendir("/proc");
	int n = 0;

	assert_non_null(dir);
	for (const struct dirent *at = readdir(dir); at; at = readdir(dir))
		n += atoi(at->d_name) > 0 && find_heap(atoi(at->d_name), inode) == inode;
	closedir(dir);
	return n;
}

static void the_kill_leaves_nothing(void **state)
{
	unsigned long inode;
	int ends[2], go = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		char *memory = NULL;

		if (tutti_mem_alloc((void **)&memory, BYTES, NULL) != TUTTI_OK)
			_exit(1);
		memset(memory, 1, BYTES);
		(void)!write(ends[1], &go, sizeof(go));
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &go, sizeof(go)), sizeof(go));
	inode = find_heap(pid, 0);
	assert_int_not_equal(inode, 0);
	assert_int_equal(count_holders(inode), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(count_holders(inode), 0);
}

/* This program again, as main() says, with so much of a heap. */
static void run_with(const char *heap, const char *what)
{
	const pid_t pid = fork();

	if (pid == 0) {
		setenv("TUTTI_SHM_HEAP", heap, 1);
		execl("/proc/self/exe", "mp_heap", what, (char *)NULL);
		_exit(9);
	}
	assert_true(wait_for(pid));
}

static bool use_and_free(size_t nbytes)
{
	char *memory = NULL;

	if (tutti_mem_alloc((void **)&memory, nbytes, NULL) != TUTTI_OK || memory[nbytes - 1])
		return false;
	memset(memory, 1, nbytes);
	return tutti_mem_copy_on_fork(memory) == TUTTI_OK &&
	       tutti_mem_free(memory + 4096, NULL) == TUTTI_EINVAL &&
	       tutti_mem_free(memory, NULL) == TUTTI_OK &&
	       tutti_mem_free(memory, NULL) == TUTTI_EINVAL;
}

static bool with_a_limit(void)
{
	struct rlimit limit;

	/* Any limit forbids a heap: this one is as good as none. */
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = RLIM_INFINITY - 1;
	return !setrlimit(RLIMIT_AS, &limit) && use_and_free(1 << 20);
}

static bool with_little(void)
{
	char *memory = NULL, *more = NULL;

	return tutti_mem_alloc((void **)&memory, 1 << 20, NULL) == TUTTI_OK &&
	       tutti_mem_alloc((void **)&more, 15 << 20, NULL) == TUTTI_OK &&
	       tutti_mem_alloc((void **)&more, 1 << 16, NULL) == TUTTI_ENOMEM &&
	       strstr(tutti_last_error(NULL), "raise TUTTI_SHM_HEAP") &&
	       tutti_mem_free(memory, NULL) == TUTTI_OK && use_and_free(1 << 20);
}

/* Before the library was used for anything else, that is with no handlers of forks but the heap's. */
static bool first_of_all(void)
{
	int *memory = NULL;
	tutti_unique_id id;
	tutti_comm_t comm;
	pid_t pid;

	alarm(WAIT_MS / 1000);
	if (tutti_mem_alloc((void **)&memory, BYTES, NULL) != TUTTI_OK ||
	    tutti_mem_copy_on_fork(memory) != TUTTI_OK || tutti_get_unique_id(&id) != TUTTI_OK ||
	    tutti_comm_init_rank(&comm, 1, id, 0) != TUTTI_OK)
		return false;
	memory[0] = 1;
	pid = fork();
	if (pid == 0) {
		memory[0]++;
		_exit(memory[0] != 2);
	}
	return wait_for(pid) && memory[0] == 1 && tutti_comm_destroy(comm) == TUTTI_OK;
}

static void programs_of_their_own(void **state)
{
	(void)state;
	run_with("1024G", "any");
	run_with("1024G", "limit");
	run_with("0", "any");
	run_with("16M", "little");
	run_with("1024G", "first");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_any_communicator),
		cmocka_unit_test(memory_outlives_its_communicator),
		cmocka_unit_test(a_child_has_a_copy),
		cmocka_unit_test(no_copy_no_access),
		cmocka_unit_test(the_kill_leaves_nothing),
		cmocka_unit_test(programs_of_their_own),
	};

	/* Parameters are read once, so these are programs of their own. */
	if (argc > 1)
		return !(!strcmp(argv[1], "little")  ? with_little()
			 : !strcmp(argv[1], "limit") ? with_a_limit()
			 : !strcmp(argv[1], "first") ? first_of_all()
						     : use_and_free(1 << 20));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
