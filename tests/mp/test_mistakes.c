/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes that users make, each as a job of processes: which status every rank gets, what the text
 * says, and that nobody waits for a time limit where the mistake can be known before. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "support/port.h"

#define MOST     3
/* What is known within a second or two, on a machine that is ten times slower. */
#define SOON_NS  INT64_C(20000000000)
/* Of jobs that must not need it, and of those that do. */
#define LONG_MS  "60000"
#define SHORT_MS "4000"

/* Of a rank that does not live to tell. */
#define GONE ((tutti_status)77)

struct want {
	tutti_status status;
	const char *part; /* of the text */
};

struct mistake {
	const char *what;
	int n;                 /* processes; 0: 3           */
	bool waits;            /* who gets ETIMEOUT cannot know it before */
	void (*env)(int rank); /* NULL: as it should be     */
	tutti_status (*run)(int rank, tutti_comm_t comm); /* NULL: init is the mistake */
	struct want want[MOST]; /* those without a part: as the one before */
};

static struct shared {
	_Atomic int flag, nended;
	struct {
		tutti_status status;
		int64_t ns;
		char text[1024];
	} rank[MOST];
} * shared;

static char folder[] = "/tmp/tutti-test-XXXXXX", address[32];
static float a[1 << 20], b[1 << 20];

static void set(const char *name, const char *value)
{
	setenv(name, value, 1);
}

static void await_flag(void)
{
	while (!shared->flag)
		crew_nap_us(500);
}

/* -- Calls that do not fit together --------------------------------------------------- */

static tutti_status counts_differ(int rank, tutti_comm_t comm)
{
	return tutti_all_reduce(a, b, rank == 1 ? 11 : 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static tutti_status types_differ(int rank, tutti_comm_t comm)
{
	return tutti_all_reduce(a, b, 10, rank == 1 ? TUTTI_INT32 : TUTTI_FLOAT32, TUTTI_SUM, comm,
				NULL);
}

static tutti_status operations_differ(int rank, tutti_comm_t comm)
{
	return tutti_all_reduce(a, b, 10, TUTTI_FLOAT32, rank == 1 ? TUTTI_MAX : TUTTI_SUM, comm,
				NULL);
}

static tutti_status collectives_differ(int rank, tutti_comm_t comm)
{
	if (rank == 1)
		return tutti_broadcast(a, b, 10, TUTTI_FLOAT32, 0, comm, NULL);
	return tutti_all_reduce(a, b, 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static tutti_status roots_differ(int rank, tutti_comm_t comm)
{
	const tutti_status st = tutti_broadcast(a, b, 10, TUTTI_FLOAT32, rank, comm, NULL);

	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

static tutti_status one_root_is_none(int rank, tutti_comm_t comm)
{
	const tutti_status st =
		tutti_broadcast(a, b, 10, TUTTI_FLOAT32, rank == 1 ? 3 : 0, comm, NULL);

	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

static tutti_status sends_more(int rank, tutti_comm_t comm)
{
	const tutti_status st = rank == 0 ? tutti_send(a, 20, TUTTI_FLOAT32, 1, comm, NULL)
					  : tutti_recv(b, 10, TUTTI_FLOAT32, 0, comm, NULL);

	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

/* -- Arguments ------------------------------------------------------------------------ */

static tutti_status no_buffer(int rank, tutti_comm_t comm)
{
	(void)rank;
	return tutti_all_reduce(NULL, b, 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static tutti_status no_comm(int rank, tutti_comm_t comm)
{
	(void)rank;
	(void)comm;
	return tutti_all_reduce(a, b, 10, TUTTI_FLOAT32, TUTTI_SUM, NULL, NULL);
}

static tutti_status no_type(int rank, tutti_comm_t comm)
{
	(void)rank;
	return tutti_all_reduce(a, b, 10, (tutti_type)99, TUTTI_SUM, comm, NULL);
}

static tutti_status overlap(int rank, tutti_comm_t comm)
{
	(void)rank;
	return tutti_all_reduce(a, a + 5, 10, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static tutti_status in_a_group(int rank, tutti_comm_t comm)
{
	tutti_status first, st = tutti_group_start();

	(void)rank;
	if (st != TUTTI_OK)
		return st;
	first = tutti_comm_destroy(comm);
	st = tutti_group_end();
	return first == TUTTI_OK ? st : first;
}

/* -- Objects -------------------------------------------------------------------------- */

static tutti_status use_destroyed(int rank, tutti_comm_t comm)
{
	const tutti_status st = tutti_comm_destroy(comm);

	(void)rank;
	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

static tutti_status destroy_twice(int rank, tutti_comm_t comm)
{
	const tutti_status st = tutti_comm_destroy(comm);

	(void)rank;
	return st == TUTTI_OK ? tutti_comm_destroy(comm) : st;
}

static tutti_status destroy_a_stream_twice(int rank, tutti_comm_t comm)
{
	tutti_stream_t stream;
	tutti_status st = tutti_stream_create(&stream);

	(void)rank;
	(void)comm;
	if (st == TUTTI_OK)
		st = tutti_stream_destroy(stream);
	return st == TUTTI_OK ? tutti_stream_destroy(stream) : st;
}

static tutti_status use_a_destroyed_stream(int rank, tutti_comm_t comm)
{
	tutti_stream_t stream;
	tutti_status st = tutti_stream_create(&stream);

	(void)rank;
	if (st == TUTTI_OK)
		st = tutti_stream_destroy(stream);
	return st == TUTTI_OK ? tutti_barrier(comm, stream) : st;
}

static tutti_status use_freed_memory(int rank, tutti_comm_t comm)
{
	const size_t nbytes = 1 << 20;
	float *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return TUTTI_ENOMEM;
	if (rank == 1)
		mprotect(memory, nbytes, PROT_NONE); /* nobody maps something else there */
	return tutti_all_reduce(memory, b, nbytes / 4, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

/* One of the two is told; the other one's call is good once all have come. */
static void *call_beside(void *comm)
{
	if (tutti_barrier(comm, NULL) == TUTTI_EUSAGE &&
	    strstr(tutti_last_error(NULL), "another thread is in a call"))
		shared->flag = 1;
	return NULL;
}

static tutti_status two_threads(int rank, tutti_comm_t comm)
{
	pthread_t thread;

	if (rank != 0) {
		await_flag();
		return tutti_barrier(comm, NULL);
	}
	if (pthread_create(&thread, NULL, call_beside, comm))
		return TUTTI_ESYS;
	call_beside(comm);
	pthread_join(thread, NULL);
	return shared->flag ? TUTTI_OK : TUTTI_EINTERNAL;
}

static tutti_status a_child_uses_it(int rank, tutti_comm_t comm)
{
	pid_t pid;
	int status = 0;

	if (rank == 1) {
		pid = fork();
		if (pid == 0)
			_exit(tutti_barrier(comm, NULL) == TUTTI_EUSAGE ? 0 : 1);
		waitpid(pid, &status, 0);
	}
	return status ? TUTTI_EINTERNAL : tutti_barrier(comm, NULL);
}

/* -- Ranks that are not there --------------------------------------------------------- */

static tutti_status die(int rank, tutti_comm_t comm)
{
	if (rank == 1)
		raise(SIGKILL);
	return tutti_barrier(comm, NULL);
}

static tutti_status end_without_a_word(int rank, tutti_comm_t comm)
{
	if (rank == 1)
		_exit(0);
	return tutti_barrier(comm, NULL);
}

static tutti_status leave(int rank, tutti_comm_t comm)
{
	return rank == 1 ? TUTTI_OK : tutti_barrier(comm, NULL);
}

static void limit_calls(int rank)
{
	(void)rank;
	set("TUTTI_TIMEOUT_MS", "1000");
}

static tutti_status come_late(int rank, tutti_comm_t comm)
{
	tutti_status st;

	while (rank == 1 && shared->flag < 2)
		crew_nap_us(500);
	/* All that the others owe this rank's first call may be there, and that they have given up
	 * not yet be known; no second call of theirs comes. */
	do
		st = tutti_barrier(comm, NULL);
	while (rank == 1 && st == TUTTI_OK);
	shared->flag++;
	return st;
}

static tutti_status both_send_first(int rank, tutti_comm_t comm)
{
	return tutti_send(a, sizeof(a) / sizeof(*a), TUTTI_FLOAT32, 1 - rank, comm, NULL);
}

/* -- Starting ------------------------------------------------------------------------- */

static void meet_by_address(int rank, const char *secret)
{
	(void)rank;
	unsetenv("TUTTI_COMM_FILE");
	set("TUTTI_COMM_ID", address);
	set("TUTTI_COMM_SECRET", secret);
}

static void numbers_differ(int rank)
{
	set("TUTTI_NRANKS", rank == 1 ? "4" : "3");
}

static void one_is_missing(int rank)
{
	(void)rank;
	set("TUTTI_NRANKS", "3");
	set("TUTTI_BOOT_TIMEOUT_MS", SHORT_MS);
}

static void one_comes_twice(int rank)
{
	set("TUTTI_RANK", rank == 0 ? "0" : "1");
}

static void rank_is_too_large(int rank)
{
	set("TUTTI_BOOT_TIMEOUT_MS", SHORT_MS);
	if (rank == 1)
		set("TUTTI_RANK", "7");
}

static void rank_is_no_number(int rank)
{
	set("TUTTI_BOOT_TIMEOUT_MS", SHORT_MS);
	if (rank == 1)
		set("TUTTI_RANK", "one");
}

static void only_the_rank(int rank)
{
	set("TUTTI_BOOT_TIMEOUT_MS", SHORT_MS);
	if (rank == 1)
		unsetenv("TUTTI_NRANKS");
}

static void no_place_to_meet(int rank)
{
	(void)rank;
	unsetenv("TUTTI_COMM_FILE");
}

static void no_such_folder(int rank)
{
	(void)rank;
	set("TUTTI_COMM_FILE", "/nonexistent/id");
	set("TUTTI_BOOT_TIMEOUT_MS", SHORT_MS);
}

static void address_without_a_port(int rank)
{
	meet_by_address(rank, "of sixteen bytes and more");
	set("TUTTI_COMM_ID", "127.0.0.1");
}

static void short_secret(int rank)
{
	meet_by_address(rank, "guess me");
}

static void secrets_differ(int rank)
{
	meet_by_address(rank, rank == 1 ? "this is one secret" : "this is another one");
	/* The one with the other secret finds it out while rank 0 is there to refuse it. */
	set("TUTTI_BOOT_TIMEOUT_MS", rank == 1 ? LONG_MS : "10000");
}

static void no_such_file(int rank)
{
	(void)rank;
	set("TUTTI_TUNE_FILE", "/nonexistent/tune");
}

static void unlike_settings(int rank)
{
	set("TUTTI_SHM_SLOT", rank == 1 ? "64K" : "128K");
}

#define ALL(status, part)                           \
	{                                           \
		{ status, part }, { status, part }, \
		{                                   \
			status, part                \
		}                                   \
	}

/* clang-format off */
static const struct mistake mistakes[] = {
	{ .what = "counts differ", .run = counts_differ,
	  .want = ALL(TUTTI_EMISMATCH, "all_reduce(11 x float32") },
	{ .what = "types differ", .run = types_differ, .want = ALL(TUTTI_EMISMATCH, "int32") },
	{ .what = "operations differ", .run = operations_differ, .want = ALL(TUTTI_EMISMATCH, "max") },
	{ .what = "collectives differ", .run = collectives_differ,
	  .want = ALL(TUTTI_EMISMATCH, "broadcast(") },
	{ .what = "roots differ", .run = roots_differ, .want = ALL(TUTTI_EMISMATCH, "root") },
	{ .what = "a root that is none on one rank", .run = one_root_is_none,
	  .want = { { TUTTI_EPEER, "rank 1" }, { TUTTI_EINVAL, "root 3 of 3 ranks" },
		    { TUTTI_EPEER, "rank 1" } } },
	{ .what = "a send of more than is received", .n = 2, .run = sends_more,
	  .want = ALL(TUTTI_EMISMATCH, "20 x float32") },
	{ .what = "no buffer", .run = no_buffer, .want = ALL(TUTTI_EINVAL, "send buffer of 40 bytes is NULL") },
	{ .what = "no communicator", .run = no_comm,
	  .want = ALL(TUTTI_EINVAL, "the communicator is NULL") },
	{ .what = "a type that is none", .run = no_type, .want = ALL(TUTTI_EINVAL, "type 99") },
	{ .what = "buffers that overlap", .run = overlap, .want = ALL(TUTTI_EINVAL, "overlap") },
	{ .what = "destroyed in a group", .run = in_a_group,
	  .want = ALL(TUTTI_EUSAGE, "inside a group") },
	{ .what = "used after it was destroyed", .run = use_destroyed,
	  .want = ALL(TUTTI_EUSAGE, "was destroyed") },
	{ .what = "destroyed twice", .run = destroy_twice,
	  .want = ALL(TUTTI_EUSAGE, "was destroyed") },
	{ .what = "a stream destroyed twice", .run = destroy_a_stream_twice,
	  .want = ALL(TUTTI_EUSAGE, "was destroyed") },
	{ .what = "a call on a destroyed stream", .run = use_a_destroyed_stream,
	  .want = ALL(TUTTI_EUSAGE, "was destroyed") },
	{ .what = "a buffer that was freed", .run = use_freed_memory,
	  .want = { { TUTTI_EPEER, "rank 1" }, { GONE, "" }, { TUTTI_EPEER, "rank 1" } } },
	{ .what = "two threads at once", .run = two_threads, .want = ALL(TUTTI_OK, "") },
	{ .what = "a forked child uses it", .run = a_child_uses_it, .want = ALL(TUTTI_OK, "") },
	{ .what = "a rank is killed", .run = die,
	  .want = { { TUTTI_EPEER, "rank 1" }, { GONE, "" }, { TUTTI_EPEER, "rank 1" } } },
	{ .what = "a rank ends without a word", .run = end_without_a_word,
	  .want = { { TUTTI_EPEER, "rank 1" }, { GONE, "" }, { TUTTI_EPEER, "rank 1" } } },
	{ .what = "a rank leaves", .run = leave,
	  .want = { { TUTTI_EPEER, "left while" }, { TUTTI_OK, "" },
		    { TUTTI_EPEER, "left while" } } },
	{ .what = "a rank is late", .env = limit_calls, .run = come_late,
	  .want = ALL(TUTTI_ETIMEOUT, "barrier()") },
	{ .what = "two sends wait for each other", .n = 2, .env = limit_calls,
	  .run = both_send_first, .want = ALL(TUTTI_ETIMEOUT, "send(") },
	{ .what = "numbers of ranks differ", .env = numbers_differ,
	  .want = ALL(TUTTI_EMISMATCH, "ranks and") },
	{ .what = "a rank is missing", .n = 2, .waits = true, .env = one_is_missing,
	  .want = ALL(TUTTI_ETIMEOUT, "rank 2 of 3 did not come within 4.") },
	{ .what = "a rank comes twice", .env = one_comes_twice,
	  .want = ALL(TUTTI_EMISMATCH, "rank 1 came twice") },
	{ .what = "a rank out of range", .env = rank_is_too_large,
	  .want = { { TUTTI_EPEER, "gave up: rank is 7" },
		    { TUTTI_EINVAL, "rank is 7" },
		    { TUTTI_EPEER, "gave up: rank is 7" } } },
	{ .what = "a rank that is no number", .waits = true, .env = rank_is_no_number,
	  .want = { { TUTTI_ETIMEOUT, "rank 1 of 3 did not come" },
		    { TUTTI_EUSAGE, "TUTTI_RANK and TUTTI_NRANKS: only one" },
		    { TUTTI_ETIMEOUT, "rank 1 of 3 did not come" } } },
	{ .what = "a rank without their number", .waits = true, .env = only_the_rank,
	  .want = { { TUTTI_ETIMEOUT, "rank 1 of 3 did not come" },
		    { TUTTI_EUSAGE, "TUTTI_RANK and TUTTI_NRANKS: only one" },
		    { TUTTI_ETIMEOUT, "rank 1 of 3 did not come" } } },
	{ .what = "no place to meet", .env = no_place_to_meet,
	  .want = ALL(TUTTI_EUSAGE, "not where the ranks meet") },
	{ .what = "a file in a folder that is not there", .waits = true, .env = no_such_folder,
	  .want = { { TUTTI_ESYS, "cannot create /nonexistent/id" },
		    { TUTTI_ETIMEOUT, "rank 0 has not written" },
		    { TUTTI_ETIMEOUT, "rank 0 has not written" } } },
	{ .what = "an address without a port", .env = address_without_a_port,
	  .want = ALL(TUTTI_EINVAL, "127.0.0.1") },
	{ .what = "a secret that can be guessed", .env = short_secret,
	  .want = ALL(TUTTI_EINVAL, "TUTTI_COMM_SECRET has 8 bytes") },
	{ .what = "secrets differ", .waits = true, .env = secrets_differ,
	  .want = { { TUTTI_ETIMEOUT, "one was turned away, it holds another secret" },
		    { TUTTI_EMISMATCH, "the root of this id holds another secret" },
		    { TUTTI_ETIMEOUT, "one was turned away, it holds another secret" } } },
	{ .what = "a file that is not there", .env = no_such_file,
	  .want = ALL(TUTTI_EINVAL, "/nonexistent/tune") },
	{ .what = "settings differ", .env = unlike_settings,
	  .want = ALL(TUTTI_EINVAL, "TUTTI_SHM_SLOT") },
};
/* clang-format on */

/* -- Running them --------------------------------------------------------------------- */

static void be_rank(const struct mistake *mistake, int rank, int n)
{
	const int64_t began = crew_now_ns();
	tutti_comm_t comm = NULL;
	const char *text;
	tutti_status st;

	/* A rank that comes when rank 0 has failed cannot tell that from an earlier run. */
	crew_nap_us(rank == 0 && !mistake->run ? 300000 : 0);
	st = tutti_comm_init_env(&comm, NULL);
	if (st == TUTTI_OK && mistake->run)
		st = mistake->run(rank, comm);
	text = tutti_last_error(comm);
	/* What is not of the communicator is of the thread. */
	snprintf(shared->rank[rank].text, sizeof(shared->rank[rank].text), "%s",
		 *text ? text : tutti_last_error(NULL));
	shared->rank[rank].ns = crew_now_ns() - began;
	shared->rank[rank].status = st;
	/* A rank that comes later would find nobody at an address. */
	shared->nended++;
	while (!mistake->run && shared->nended < n && crew_now_ns() - began < SOON_NS)
		crew_nap_us(500);
	(void)!tutti_comm_destroy(comm);
}

static pid_t start(const struct mistake *mistake, int rank, int n)
{
	char text[16], path[64];
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGSEGV, SIG_DFL); /* cmocka would go on in the child */
	snprintf(text, sizeof(text), "%d", rank);
	set("TUTTI_RANK", text);
	snprintf(text, sizeof(text), "%d", n);
	set("TUTTI_NRANKS", text);
	snprintf(path, sizeof(path), "%s/id", folder);
	set("TUTTI_COMM_FILE", path);
	set("TUTTI_BOOT_TIMEOUT_MS", LONG_MS);
	if (mistake->env)
		mistake->env(rank);
	be_rank(mistake, rank, n);
	_exit(0);
}

static void find_address(void)
{
	snprintf(address, sizeof(address), "127.0.0.1:%d", port_for_later());
}

/* Rank 0 had failed before this rank looked for it: it reads why. */
static bool came_late(const struct mistake *mistake, int rank)
{
	return !mistake->run && rank > 0 && shared->rank[rank].status == TUTTI_EPEER &&
	       strstr(shared->rank[rank].text, "rank 0 has ended, though");
}

static void every_rank_is_told(void **state)
{
	const struct mistake *mistake = *state;
	const int n = mistake->n ? mistake->n : MOST;
	char path[64];
	pid_t pids[MOST];
	int nwrong = 0;

	memset(shared, 0, sizeof(*shared));
	find_address();
	for (int rank = 0; rank < n; rank++) {
		shared->rank[rank].status = GONE;
		pids[rank] = start(mistake, rank, n);
	}
	for (int rank = 0; rank < n; rank++)
		waitpid(pids[rank], NULL, 0);
	snprintf(path, sizeof(path), "%s/id", folder);
	unlink(path);
	for (int rank = 0; rank < n; rank++) {
		const struct want *want = &mistake->want[rank];

		if ((shared->rank[rank].status == want->status || came_late(mistake, rank)) &&
		    strstr(shared->rank[rank].text, want->part) &&
		    ((mistake->waits && want->status == TUTTI_ETIMEOUT) ||
		     shared->rank[rank].ns < SOON_NS))
			continue;
		print_error("rank %d, %.1f s: %s: %s\n", rank, (double)shared->rank[rank].ns / 1e9,
			    tutti_status_name(shared->rank[rank].status), shared->rank[rank].text);
		nwrong++;
	}
	assert_int_equal(nwrong, 0);
}

int main(void)
{
	enum { N = sizeof(mistakes) / sizeof(mistakes[0]) };
	struct CMUnitTest tests[N];
	int failed;

	for (int i = 0; i < N; i++)
		tests[i] = (struct CMUnitTest){ .name = mistakes[i].what,
						.test_func = every_rank_is_told,
						.initial_state = (void *)(uintptr_t)&mistakes[i] };
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || !mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
