/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of another process that the kernel copies: what arrives, and what each refusal says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "shm_world.h"

#define PAGES 1024
#define PAGE  4096u
#define OTHER 12345 /* a user that is not root */

static const struct tti_memory_ops *const ops = &tti_shm_memory_ops;

/* What the ranks tell each other; shared by all processes. */
static struct board {
	struct tti_memory_name name[4];
	uint64_t address[4];
} * board;

static void *map_pages(size_t n)
{
	void *const pages =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	return pages;
}

static uint8_t pattern(int rank, size_t i)
{
	return (uint8_t)(i * 7 + i / 251 + (size_t)rank * 31 + 1);
}

static void fill(uint8_t *data, int rank, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		data[i] = pattern(rank, i);
}

static void run_with(int n, enum tti_reach_wish reach,
		     void (*body)(struct world *, struct tti_port *),
		     void (*before)(struct world *, int))
{
	struct world *const world = world_create(n, body);

	world->reach = reach;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(board != MAP_FAILED);
	world_run_processes(world, before);
	munmap(board, sizeof(*board));
	world_free(world);
}

static void run(int n, void (*body)(struct world *, struct tti_port *))
{
	run_with(n, TTI_WISH_SLOTS, body, NULL);
}

static bool says(const char *words)
{
	return strstr(tti_error_text(), words) != NULL;
}

/* -- Copies ---------------------------------------------------------------- */

/* All ranks read from the right and then write to the right, ranges that begin and end anywhere. */
static void copies(struct world *world, struct tti_port *port)
{
	static const size_t lengths[] = { 0, 1, 4095, 4097, 65536, 3000001 };
	const int n = world->n, right = (port->rank + 1) % n, left = (port->rank + n - 1) % n;
	const size_t nbytes = PAGES * (size_t)PAGE;
	uint8_t *const own = map_pages(PAGES), *const into = map_pages(PAGES);
	struct tti_remote there;

	CHECK(port->plain == TTI_REACH_COPIED);
	fill(own, port->rank, nbytes);
	CHECK(ops->name(port, own, nbytes, &board->name[port->rank]));
	CHECK(board->name[port->rank].reach == TTI_REACH_COPIED);
	world_sync(world);
	CHECK(ops->find(port, right, &board->name[right], nbytes, &there) == TUTTI_OK);
	CHECK(!there.mapped);
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		for (size_t at = 0; at < 9000; at += 2999) {
			into[lengths[k]] = 99;
			CHECK(ops->read(port, right, into, there.address + at, lengths[k]) ==
			      TUTTI_OK);
			for (size_t i = 0; i < lengths[k]; i++)
				CHECK(into[i] == pattern(right, at + i));
			CHECK(into[lengths[k]] == 99);
		}
	world_sync(world);
	CHECK(ops->write(port, right, there.address + 100, into + 50, 123456) == TUTTI_OK);
	fill(into, port->rank, nbytes);
	CHECK(ops->write(port, right, there.address + 200, into, 1000001) == TUTTI_OK);
	world_sync(world);
	for (size_t i = 0; i < 1000001; i++)
		CHECK(own[200 + i] == pattern(left, i));
	CHECK(own[99] == pattern(port->rank, 99));
	CHECK(own[1000201] == pattern(port->rank, 1000201));
	world_sync(world);
}

static void processes_copy_from_each_other(void **state)
{
	(void)state;
	run_with(3, TTI_WISH_COPIED, copies, NULL);
}

/* Of one process, where nothing needs to be allowed. */
static void threads_copy_from_each_other(void **state)
{
	struct world *const world = world_create(3, copies);

	(void)state;
	board = calloc(1, sizeof(*board));
	assert_non_null(board);
	world->reach = TTI_WISH_COPIED;
	world_run_threads(world);
	free(board);
	world_free(world);
}

/* -- Names ----------------------------------------------------------------- */

static void names(struct world *world, struct tti_port *port)
{
	void *const plain = map_pages(1);
	const struct tti_memory_name copied = { .at = 4096, .reach = TTI_REACH_COPIED };
	const struct tti_memory_name nowhere = { .at = UINT64_MAX - 4, .reach = TTI_REACH_MAPPED };
	const struct tti_memory_name unpassed = { .at = 4096, .reach = TTI_REACH_MAPPED };
	struct tti_memory_name name;
	struct tti_remote there;

	CHECK(!ops->name(port, plain, PAGE, &name));
	CHECK(ops->find(port, 1 - port->rank, &copied, 8, &there) == TUTTI_EPROTO);
	/* Where no heap is, and of a heap that was not passed. */
	CHECK(ops->find(port, 1 - port->rank, &nowhere, 8, &there) == TUTTI_EPROTO);
	CHECK(ops->find(port, 1 - port->rank, &unpassed, 8, &there) == TUTTI_EPROTO);
	port->plain = TTI_REACH_COPIED;
	CHECK(ops->name(port, plain, PAGE, &name) && name.reach == TTI_REACH_COPIED);
	CHECK(!ops->name(port, NULL, PAGE, &name));
	world_sync(world);
}

static void ordinary_memory_has_a_name_where_all_agreed(void **state)
{
	(void)state;
	run(2, names);
}

/* -- Refusals -------------------------------------------------------------- */

/* Rank 1 has four pages, of which the upper two are gone, or the third may not be written. */
static void half_mapped(struct world *world, struct tti_port *port)
{
	uint8_t *const own = map_pages(4);
	uint8_t *const into = map_pages(4);
	uint64_t there;

	fill(own, port->rank, 4 * PAGE);
	if (port->rank == 1) {
		CHECK(!munmap(own + 3 * PAGE, PAGE));
		CHECK(!mprotect(own + 2 * PAGE, PAGE, PROT_READ));
		board->address[1] = (uint64_t)(uintptr_t)own;
	}
	world_sync(world);
	if (port->rank == 0) {
		there = board->address[1];
		CHECK(ops->read(port, 1, into, there, 3 * PAGE) == TUTTI_OK);
		CHECK(ops->read(port, 1, into, there + 10, 3 * PAGE) == TUTTI_EINVAL);
		CHECK(says("rank 1") && says("12288 bytes") && says("buffers of both ranks"));
		CHECK(ops->read(port, 1, into, there + 3 * PAGE, 1) == TUTTI_EINVAL);
		CHECK(ops->read(port, 1, into, 0, 1) == TUTTI_EINVAL);
		CHECK(ops->write(port, 1, there, own, 2 * PAGE) == TUTTI_OK);
		CHECK(ops->write(port, 1, there + 10, own, 2 * PAGE) == TUTTI_EINVAL);
		CHECK(says("written there"));
		/* Memory that is not there on this side. */
		CHECK(!munmap(into + 2 * PAGE, 2 * PAGE));
		CHECK(ops->read(port, 1, into, there, 3 * PAGE) == TUTTI_EINVAL);
		CHECK(ops->read(port, 7, into, there, 1) == TUTTI_EINVAL);
	}
	world_sync(world);
}

static void memory_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	run(2, half_mapped);
}

/* The id of rank 1 belongs to another process, which is of the same program. */
static void other_process(struct world *world, struct tti_port *port)
{
	struct tti_shm_port *const shm = (struct tti_shm_port *)port;
	uint64_t word = 5;

	board->address[port->rank] = (uint64_t)(uintptr_t)&word;
	world_sync(world);
	if (port->rank == 0) {
		shm->process[1].pid = shm->process[2].pid;
		CHECK(ops->read(port, 1, &word, board->address[2], 8) == TUTTI_EPEER);
		CHECK(ops->write(port, 1, board->address[2], "12345678", 8) == TUTTI_EPEER);
		CHECK(says("not that of rank 1") && word == 5);
		/* Found once, it is looked for again after a while. */
		shm->process[1].pid = (uint32_t)getpid();
		shm->process[1].number = shm->process[0].number;
		CHECK(ops->read(port, 1, &word, board->address[0], 8) == TUTTI_OK);
		nap_ms(20);
		shm->process[1].pid = shm->process[2].pid;
		CHECK(ops->write(port, 1, board->address[2], "12345678", 8) == TUTTI_EPEER);
		/* Nobody could make a number: nobody is known by it. */
		shm->process[2].number = 0;
		CHECK(ops->read(port, 2, &word, board->address[2], 8) == TUTTI_EPEER);
	}
	world_sync(world);
	CHECK(word == 5);
}

static void another_process_is_not_touched(void **state)
{
	(void)state;
	run(3, other_process);
}

static void ends(struct world *world, struct tti_port *port)
{
	uint64_t word = 5;

	board->address[port->rank] = (uint64_t)(uintptr_t)&word;
	world_sync(world);
	if (port->rank == 1)
		_exit(0);
	/* It ends when it gets to it. */
	while (ops->read(port, 1, &word, board->address[1], 8) == TUTTI_OK)
		nap_ms(1);
	CHECK(ops->read(port, 1, &word, board->address[1], 8) == TUTTI_EPEER);
	CHECK(says("rank 1") && says("is gone"));
}

static void a_process_that_ended_is_a_peer_that_left(void **state)
{
	(void)state;
	run(2, ends);
}

static void expect_refusal(struct world *world, struct tti_port *port)
{
	uint64_t word = 5;

	board->address[port->rank] = (uint64_t)(uintptr_t)&word;
	world_sync(world);
	if (port->rank == 0) {
		CHECK(ops->read(port, 1, &word, board->address[1], 8) == TUTTI_ESYS);
		CHECK(says("rank 1") && says("not permitted") && says("TUTTI_REACH=slots"));
		CHECK(ops->write(port, 1, board->address[1], &word, 8) == TUTTI_ESYS);
	}
	world_sync(world);
}

/* Rank 0 may not make the system calls. */
static void forbid_calls(struct world *world, int rank)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = 5, .filter = filter };

	(void)world;
	if (rank)
		return;
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void a_filter_of_system_calls_refuses(void **state)
{
	(void)state;
	run_with(2, TTI_WISH_SLOTS, expect_refusal, forbid_calls);
}

/* Rank 1 lets nobody of its own user look into it. */
static void hide(struct world *world, int rank)
{
	(void)world;
	CHECK(!setresuid(OTHER, OTHER, OTHER));
	CHECK(!prctl(PR_SET_DUMPABLE, rank != 1, 0, 0, 0));
}

static void a_process_that_hides_refuses(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	run_with(2, TTI_WISH_SLOTS, expect_refusal, hide);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_copy_from_each_other),
		cmocka_unit_test(threads_copy_from_each_other),
		cmocka_unit_test(ordinary_memory_has_a_name_where_all_agreed),
		cmocka_unit_test(memory_that_is_not_there_is_an_error),
		cmocka_unit_test(another_process_is_not_touched),
		cmocka_unit_test(a_process_that_ended_is_a_peer_that_left),
		cmocka_unit_test(a_filter_of_system_calls_refuses),
		cmocka_unit_test(a_process_that_hides_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
