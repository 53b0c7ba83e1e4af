/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

/* With more it takes minutes until all have met: each connects to others while all others of its
 * core want to run. */
#define RANKS_PER_CORE 256

/* Texts of calls begin with the name of the call. */
static void report(const struct rank *rank, const char *what, tutti_status status)
{
	const char *const why = tool_why(rank->comm, status);
	const size_t len = strlen(what);
	const bool has_name = !strncmp(why, what, len) && why[len] == ':';

	tool_fail("rank %d: %s%s%s", rank->rank, has_name ? "" : what, has_name ? "" : ": ", why);
}

bool ranks_is_good(struct rank *rank, tutti_status status, const char *what)
{
	const unsigned bit = 1u << (-(int)status % 32);

	if (status == TUTTI_OK)
		return true;
	if (!rank->failed && (!rank->page || !(atomic_fetch_or(&rank->page->said, bit) & bit)))
		report(rank, what, status);
	rank->failed = true;
	return false;
}

bool ranks_are_few(int nranks)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (nranks <= RANKS_PER_CORE * cores)
		return true;
	tool_bad_usage("-n %d: %ld cores here run at most %ld ranks, %d each", nranks, cores,
		       RANKS_PER_CORE * cores, RANKS_PER_CORE);
	return false;
}

int ranks_be(const struct ranks *ranks, struct ranks_page *page, tutti_comm_t comm)
{
	struct rank rank = { .page = page, .comm = comm };
	int code = TOOL_FINDING;

	if (ranks_is_good(&rank, tutti_comm_rank(comm, &rank.rank), "asking for the rank") &&
	    ranks_is_good(&rank, tutti_comm_count(comm, &rank.n), "asking for the ranks"))
		code = ranks->main(ranks->self, &rank);
	if (rank.failed)
		(void)tutti_comm_abort(comm);
	else
		ranks_is_good(&rank, tutti_comm_destroy(comm), "leaving");
	return rank.failed ? TOOL_FINDING : code;
}

/* The id is made by rank 0: it starts a thread, which must not be before a
 * fork. The others wait for it here. */
static bool share_id(struct ranks_page *page, int rank)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	tutti_status status;

	if (rank == 0) {
		status = tutti_get_unique_id(&page->id);
		if (status)
			tool_fail("rank 0: making the id: %s", tool_why(NULL, status));
		atomic_store(&page->id_ready, status ? -1 : 1);
	}
	while (atomic_load(&page->id_ready) == 0)
		nanosleep(&nap, NULL);
	return atomic_load(&page->id_ready) > 0;
}

static int forked_rank(const struct ranks *ranks, struct ranks_page *page, int rank)
{
	tutti_status status;
	tutti_comm_t comm;

	if (!share_id(page, rank))
		return TOOL_FINDING;
	status = tutti_comm_init_rank(&comm, ranks->nranks, page->id, rank);
	if (!ranks_is_good(&(struct rank){ .page = page, .rank = rank }, status, "joining"))
		return TOOL_FINDING;
	return ranks_be(ranks, page, comm);
}

/* Before the library looks: an address of the user's is that of another job. */
static bool leave_other_jobs(void)
{
	return unsetenv("TUTTI_COMM_ID") == 0 && unsetenv("TUTTI_COMM_SECRET") == 0;
}

static int run_processes(const struct ranks *ranks)
{
	struct ranks_page *page;
	struct launch launch;
	int code = TOOL_FINDING;
	pid_t pid;

	page = mmap(NULL, ranks->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (page == MAP_FAILED)
		return tool_fail("mmap of %zu bytes: %s", ranks->page_bytes, strerror(errno));
	if (!launch_open(&launch, tool_verb(), ranks->nranks, false))
		goto done;
	launch.quiet_on_failure = true;
	launch_bind(&launch);
	for (int rank = 0; rank < ranks->nranks; rank++) {
		pid = launch_fork(&launch, rank);
		if (pid == 0) {
			code = forked_rank(ranks, page, rank);
			goto done;
		}
		if (pid < 0) {
			launch_end(&launch, SIGTERM, TOOL_FINDING);
			break;
		}
	}
	code = launch_wait(&launch);
	/* A rank's death is a finding; being interrupted ourselves is not. */
	if (code > TOOL_USAGE && !launch.interrupted)
		code = TOOL_FINDING;
done:
	launch_close(&launch);
	munmap(page, ranks->page_bytes);
	return code;
}

static int run_launched(const struct ranks *ranks)
{
	tutti_comm_t comm;
	const tutti_status status = tutti_comm_init_env(&comm, NULL);

	if (status == TUTTI_EUSAGE)
		return tool_bad_usage("%s; or give -n RANKS to start ranks on this machine",
				      tool_why(NULL, status));
	if (status)
		return tool_fail("joining: %s", tool_why(NULL, status));
	return ranks_be(ranks, NULL, comm);
}

int ranks_run(const struct ranks *ranks)
{
	if (!ranks->nranks)
		return run_launched(ranks);
	if (!leave_other_jobs())
		return tool_fail("out of memory");
	return run_processes(ranks);
}
