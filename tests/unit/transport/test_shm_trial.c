/* SPDX-License-Identifier: BSD-3-Clause */
/* How ordinary memory is reached: all ranks of a domain find the same, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "shm_world.h"

#define N     5
#define OTHER 12345 /* a user that is not root */

/* What each rank found; shared by all processes. */
static struct board {
	struct tti_shm_agreement agreement[N];
	enum tti_reach plain[N];
	struct tti_reach_figures figures[N];
	tutti_status status[N];
	char text[N][512];
} * board;

static const struct tti_shm_agreement *agreement_of(const struct tti_port *port)
{
	return tti_shm_seg_agreement(&((const struct tti_shm_port *)port)->seg);
}

static void note(struct world *world, struct tti_port *port)
{
	const int rank = port->rank;

	board->status[rank] = tti_transport_shm.settle(port);
	snprintf(board->text[rank], sizeof(board->text[rank]), "%s", tti_error_text());
	memcpy(&board->agreement[rank], agreement_of(port), sizeof(board->agreement[rank]));
	board->plain[rank] = port->plain;
	board->figures[rank] = port->figures;
	world_sync(world);
}

/* All ranks settle alike; the agreement is board->agreement[0]. */
static void settle(enum tti_reach_wish reach, const struct tti_reach_figures *measured,
		   void (*before)(struct world *, int))
{
	struct world *const world = world_create(N, note);

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(board != MAP_FAILED);
	world->own_settle = true;
	world->reach = reach;
	world->measured = measured;
	world_run_processes(world, before);
	for (int rank = 0; rank < N; rank++) {
		assert_int_equal(board->status[rank], board->status[0]);
		assert_memory_equal(&board->agreement[rank], &board->agreement[0],
				    sizeof(board->agreement[0]));
		assert_int_equal(board->plain[rank], board->plain[0]);
		assert_memory_equal(&board->figures[rank], &board->figures[0],
				    sizeof(board->figures[0]));
	}
	world_free(world);
}

static void forget(void)
{
	munmap(board, sizeof(*board));
}

static void expect(enum tti_shm_why why, enum tti_reach plain)
{
	assert_int_equal(board->status[0], TUTTI_OK);
	assert_int_equal(board->agreement[0].why, why);
	assert_int_equal(board->plain[0], plain);
	forget();
}

/* -- Without a refusal ----------------------------------------------------- */

static void a_setting_is_followed(void **state)
{
	(void)state;
	settle(TTI_WISH_SLOTS, NULL, NULL);
	expect(TTI_SHM_BY_SETTING, TTI_REACH_SLOTS);
	settle(TTI_WISH_COPIED, NULL, NULL);
	expect(TTI_SHM_BY_SETTING, TTI_REACH_COPIED);
}

static void figures_decide(void **state)
{
	const struct tti_reach_figures fast = { 400, 11000, 12000, 9000, 9000 };
	const struct tti_reach_figures alike = { 400, 20000, 9800, 9000, 9000 };

	(void)state;
	settle(TTI_WISH_AUTO, &fast, NULL);
	assert_memory_equal(&board->figures[0], &fast, sizeof(fast));
	expect(TTI_SHM_BY_FIGURES, TTI_REACH_COPIED);
	settle(TTI_WISH_AUTO, &alike, NULL);
	expect(TTI_SHM_BY_FIGURES, TTI_REACH_SLOTS);
}

/* What is measured depends on the machine, and on a busy one nothing may be. */
static void figures_are_measured(void **state)
{
	const struct tti_reach_figures *figures;
	bool measured;

	(void)state;
	settle(TTI_WISH_AUTO, NULL, NULL);
	figures = &board->figures[0];
	measured = board->agreement[0].why == TTI_SHM_BY_FIGURES;
	if (measured) {
		assert_true(figures->call_ns && figures->copied_64k && figures->copied_512k &&
			    figures->slots_64k && figures->slots_512k);
		assert_int_equal(board->plain[0],
				 figures->copied_512k * UINT64_C(100) >
						 figures->slots_512k * UINT64_C(110)
					 ? TTI_REACH_COPIED
					 : TTI_REACH_SLOTS);
	}
	expect(measured ? TTI_SHM_BY_FIGURES : TTI_SHM_UNMEASURED, board->plain[0]);
}

/* Ranks 0 to 2 on one core, the others on another. */
static void share_cores(struct world *world, int rank)
{
	const size_t which = rank > 2;
	cpu_set_t all, one;

	(void)world;
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	for (size_t cpu = 0, at = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && at++ == which)
			CPU_SET(cpu, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

static void note_meetings(struct world *world, struct tti_port *port)
{
	CHECK(tti_transport_shm.settle(port) == TUTTI_OK);
	for (int rank = 0; rank < N; rank++) {
		const struct tti_shm_port *shm = (struct tti_shm_port *)port;

		CHECK((rank == 0 || rank == 3) ==
		      (atomic_load(&tti_shm_seg_trial(&shm->seg, rank)->met) > 0));
	}
	world_sync(world);
}

/* Two on one core would copy one after the other, out of one cache. */
static void ranks_of_two_cores_measure(void **state)
{
	struct world *world;
	cpu_set_t all;

	(void)state;
	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		skip();
	world = world_create(N, note_meetings);
	world->own_settle = true;
	world->reach = TTI_WISH_AUTO;
	world_run_processes(world, share_cores);
	world_free(world);
}

static void threads(struct world *world, struct tti_port *port)
{
	CHECK(agreement_of(port)->why == TTI_SHM_BY_THREADS);
	world_sync(world);
}

static void threads_need_no_kernel(void **state)
{
	struct world *const world = world_create(3, threads);

	(void)state;
	world_run_threads(world);
	world_free(world);
}

/* -- Measuring ------------------------------------------------------------- */

/* The other rank never comes, or goes in the middle. */
static void measures_alone(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	struct tti_shm_trial *const other = tti_shm_seg_trial(&shm->seg, 1);

	if (port->rank == 0) {
		tti_shm_measure(shm, 1, true);
		CHECK(!agreement_of(port)->figures.call_ns);
		/* It came to two meetings and left. */
		atomic_store(&tti_shm_seg_trial(&shm->seg, 0)->gave_up, 0);
		atomic_store(&other->met, 2);
		tti_shm_measure(shm, 1, true);
		CHECK(!agreement_of(port)->figures.call_ns);
		CHECK(tti_shm_seg_trial(&shm->seg, 0)->gave_up);
	}
	world_sync(world);
}

static void nobody_waits_for_long_to_measure(void **state)
{
	struct world *const world = world_create(2, measures_alone);

	(void)state;
	world->reach = TTI_WISH_SLOTS;
	world_run_processes(world, NULL);
	world_free(world);
}

/* -- Refusals -------------------------------------------------------------- */

static void expect_refusal(void (*before)(struct world *, int), int rank, int peer, int error,
			   const char *words)
{
	settle(TTI_WISH_AUTO, NULL, before);
	assert_int_equal(board->agreement[0].rank, rank);
	assert_int_equal(board->agreement[0].peer, peer);
	assert_int_equal(board->agreement[0].error, error);
	expect(TTI_SHM_BY_REFUSAL, TTI_REACH_SLOTS);

	settle(TTI_WISH_COPIED, NULL, before);
	assert_int_equal(board->status[0], TUTTI_EUNSUPPORTED);
	for (int k = 0; k < N; k++) {
		assert_non_null(strstr(board->text[k], "TUTTI_REACH=copied"));
		assert_non_null(strstr(board->text[k], words));
	}
	forget();
}

/* Rank 2 may not read, or not write. */
static void forbid(long call, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = 4, .filter = filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void forbid_reading(struct world *world, int rank)
{
	(void)world;
	if (rank == 2)
		forbid(SYS_process_vm_readv, EPERM);
}

static void forbid_writing(struct world *world, int rank)
{
	(void)world;
	if (rank == 2)
		forbid(SYS_process_vm_writev, ENOSYS);
}

static void a_filter_of_system_calls_refuses(void **state)
{
	(void)state;
	expect_refusal(forbid_reading, 2, 3, EPERM, "rank 2 may not copy");
	expect_refusal(forbid_writing, 2, 3, ENOSYS, "CONFIG_CROSS_MEMORY_ATTACH");
}

/* Nobody of its own user may look into rank 3. */
static void hide(struct world *world, int rank)
{
	(void)world;
	CHECK(!setresuid(OTHER, OTHER, OTHER));
	CHECK(!prctl(PR_SET_DUMPABLE, rank != 3, 0, 0, 0));
}

static void a_process_that_hides_refuses(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	/* 4 places on from rank 4, the first that tries. */
	expect_refusal(hide, 1, 3, EPERM, "the process of rank 3");
}

/* Rank 4 is the first process of a namespace of its own. */
static void go_into_a_namespace(struct world *world, int rank)
{
	int status = 0;
	pid_t pid;

	(void)world;
	if (rank != 4)
		return;
	CHECK(!unshare(CLONE_NEWPID));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		return;
	CHECK(waitpid(pid, &status, 0) == pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void another_pid_namespace_refuses(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	expect_refusal(go_into_a_namespace, 0, 4, ESRCH, "pid namespace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_setting_is_followed),
		cmocka_unit_test(figures_decide),
		cmocka_unit_test(figures_are_measured),
		cmocka_unit_test(ranks_of_two_cores_measure),
		cmocka_unit_test(threads_need_no_kernel),
		cmocka_unit_test(nobody_waits_for_long_to_measure),
		cmocka_unit_test(a_filter_of_system_calls_refuses),
		cmocka_unit_test(a_process_that_hides_refuses),
		cmocka_unit_test(another_pid_namespace_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
