/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory between threads: every collective on it against the serial result, with
 * registered and other buffers mixed, in groups and on streams; what may go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/world.h"

/* How the ranks come by their buffers. */
enum kind { ALLOCATED, REGISTERED, MIXED, KINDS };

#define MOST ((size_t)(SANITIZED ? 1 : 3) << 20)

static const char *last_algorithm(tutti_comm_t comm)
{
	struct tutti_call_report report;

	return CHECK_OK(tutti_comm_last_call(comm, &report)) ? report.algorithm : "";
}

/* MIXED: the highest rank has other memory, so all go another way. */
static char *get_memory(tutti_comm_t comm, enum kind kind, int rank, int n, tutti_reg_t *reg)
{
	void *memory = NULL;

	*reg = NULL;
	if (kind == ALLOCATED || (kind == MIXED && rank < n - 1)) {
		CHECK_OK(tutti_mem_alloc(&memory, MOST, comm));
		return memory;
	}
	memory = malloc(MOST);
	CHECK(memory != NULL);
	if (kind == REGISTERED)
		CHECK_OK(tutti_register(comm, memory, MOST, reg));
	return memory;
}

static void drop_memory(tutti_comm_t comm, enum kind kind, int rank, int n, tutti_reg_t reg,
			char *memory)
{
	CHECK_OK(tutti_deregister(comm, reg));
	if (kind == ALLOCATED || (kind == MIXED && rank < n - 1))
		CHECK_OK(tutti_mem_free(memory, comm));
	else
		free(memory);
}

struct job {
	enum kind kind;
	bool shared; /* all ranks share memory */
};

/* The case's number says everything but how much: in an all to all each rank may be in place or
 * not. */
static struct call call_at(int coll, size_t k, int rank, int n)
{
	static const size_t counts[] = { 1, 100, 4097, 30001 };
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64 };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX };

	return (struct call){ .coll = (tutti_collective)coll,
			      .type = types[k % 3],
			      .op = (int)ops[k % 2],
			      .count = counts[k / 4],
			      .root = (int)k % n,
			      .in_place = coll == TUTTI_ALL_TO_ALL ? (k >> rank % 3) & 1 : k & 2,
			      .spread = (enum call_spread)(k % CALL_SPREADS),
			      .seed = k };
}

/* Whether a call is run where the data lies, if it moves anything. Of some the root's buffers
 * alone count. */
static bool is_registered(const struct call *call, enum kind kind, int n)
{
	const bool is_root_s = call->coll == TUTTI_GATHER || call->coll == TUTTI_SCATTER;

	return (call->coll == TUTTI_HANDOFF ||
		tti_algorithm_find(tti_collective_get(call->coll)->program, "memory")) &&
	       (kind != MIXED || (is_root_s && call->root != n - 1));
}

/* Where each sender decides. */
static bool goes_by_transfers(tutti_collective coll)
{
	return coll == TUTTI_SEND_RECV || coll == TUTTI_ALL_TO_ALL_V || coll == TUTTI_GATHER_V ||
	       coll == TUTTI_SCATTER_V;
}

static bool moves_something(const struct call *call)
{
	if (call->coll == TUTTI_BARRIER)
		return false;
	return (!operation_of(call->coll)->uneven && call->coll != TUTTI_HANDOFF) ||
	       call->spread == CALL_EQUAL || call->spread == CALL_ONE_HAS_ALL ||
	       (call->count > 1 && call->spread != CALL_NOTHING);
}

static void all_calls(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct job *job = arg;
	tutti_reg_t reg;
	char *memory = get_memory(comm, job->kind, rank, n, &reg);

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT && memory; coll++)
		for (size_t k = 0; k < 16; k++) {
			const struct call call = call_at(coll, k, rank, n);

			if (call_bytes(&call, n) + 8 > MOST)
				continue;
			/* Not always where the memory begins. */
			call_and_check(&call, comm, rank, n, memory + (k % 2 ? 8 : 0));
			/* See pairs(); and not all are on a side of a handoff. */
			if (goes_by_transfers(call.coll) ||
			    (call.coll == TUTTI_HANDOFF && job->kind == MIXED))
				continue;
			if (!job->shared || !is_registered(&call, job->kind, n))
				CHECK(strcmp(last_algorithm(comm), "memory") != 0);
			else if (moves_something(&call) && job->kind != MIXED)
				CHECK(!strcmp(last_algorithm(comm), "memory"));
		}
	drop_memory(comm, job->kind, rank, n, reg, memory);
}

static void every_collective(void **state)
{
	static const int ranks[] = { 2, 3, 8 };
	static const struct job jobs[] = { { ALLOCATED, true },
					   { REGISTERED, true },
					   { MIXED, true } };

	(void)state;
	for (size_t r = 0; r < 3; r++)
		for (size_t k = 0; k < 3; k++) {
			const struct world world = { .n = ranks[r], .transport = "shm" };
			struct job job = jobs[k];

			assert_int_equal(world_run(&world, all_calls, &job), 0);
		}
}

/* Over TCP, and alone, it is memory as any other. */
static void elsewhere(void **state)
{
	struct job job = { ALLOCATED, false };
	const struct world tcp = { .n = 3, .transport = "tcp" }, alone = { .n = 1 };

	(void)state;
	assert_int_equal(world_run(&tcp, all_calls, &job), 0);
	assert_int_equal(world_run(&alone, all_calls, &job), 0);
}

/* After many calls that found nothing registered few ask; one that finds it changes that. */
static void seldom(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t count = 50000;
	void *plain = calloc(count, sizeof(int)), *memory = NULL;
	int used = 0;

	(void)rank;
	(void)n;
	(void)arg;
	CHECK_OK(tutti_mem_alloc(&memory, count * sizeof(int), comm));
	for (int i = 0; i < 40; i++)
		CHECK_OK(tutti_all_reduce(plain, plain, count, TUTTI_INT32, TUTTI_MAX, comm, NULL));
	/* Calls of another kind ask as ever. */
	CHECK_OK(tutti_broadcast(memory, memory, count, TUTTI_INT32, 0, comm, NULL));
	CHECK(!strcmp(last_algorithm(comm), "memory"));
	for (int i = 0; i < 8; i++) {
		CHECK_OK(tutti_all_reduce(memory, memory, count, TUTTI_INT32, TUTTI_MAX, comm,
					  NULL));
		used += !strcmp(last_algorithm(comm), "memory");
	}
	CHECK(used >= 1);
	for (int i = 0; i < 16; i++) {
		void *buffer = i % 2 ? memory : plain;

		CHECK_OK(tutti_all_reduce(buffer, buffer, count, TUTTI_INT32, TUTTI_MAX, comm,
					  NULL));
		CHECK((i % 2 != 0) == !strcmp(last_algorithm(comm), "memory"));
	}
	CHECK_OK(tutti_mem_free(memory, comm));
	free(plain);
}

static void seldom_asked(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, seldom, NULL), 0);
}

/* A rank on no side, where nothing is left for it to move; and the same sides with other counts. */
static void to_themselves(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const size_t counts[] = { 3, 4097, 70001, 4097 };
	static const int ranks[] = { 0, 1 };
	const tutti_side side = { ranks, 2, 0 };
	const size_t most = 70001;
	int *memory = NULL;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_mem_alloc((void **)&memory, 2 * most * sizeof(*memory), comm));
	for (size_t i = 0; memory && i < most; i++)
		memory[i] = (int)i;
	for (size_t k = 0; memory && k < 4; k++) {
		int *const copy = memory + most;
		int wrong = 0;

		memset(copy, 0, most * sizeof(*copy));
		CHECK_OK(tutti_handoff(memory, copy, counts[k], TUTTI_INT32, &side, &side, comm,
				       NULL));
		CHECK(!strcmp(last_algorithm(comm), "memory"));
		for (size_t i = 0; i < most; i++)
			wrong += copy[i] != (rank < 2 && i < counts[k] ? (int)i : 0);
		CHECK(wrong == 0);
	}
	CHECK_OK(tutti_mem_free(memory, comm));
}

static void handoff_to_themselves(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, to_themselves, NULL), 0);
}

/* Each sender offers what it has registered, whatever memory others have; but in place what is
 * sent must be out before anything is received. */
static void pairs(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_collective colls[] = { TUTTI_SEND_RECV, TUTTI_ALL_TO_ALL_V,
						  TUTTI_GATHER_V, TUTTI_SCATTER_V };
	const enum kind kind = *(const enum kind *)arg;
	tutti_reg_t reg;
	char *memory = get_memory(comm, kind, rank, n, &reg);

	for (size_t k = 0; k < 16 && memory; k++) {
		const struct call call = { .coll = colls[k % 4],
					   .type = TUTTI_INT32,
					   .count = k < 8 ? 20001 : 3,
					   .root = 1,
					   .in_place = k & 4,
					   .seed = k };
		const bool sends = call.coll == TUTTI_SEND_RECV ? !call.in_place || rank < n - 1
				   : call.coll == TUTTI_ALL_TO_ALL_V ? !call.in_place
				   : call.coll == TUTTI_GATHER_V     ? rank != call.root
								     : rank == call.root;
		const bool offers = sends && (kind != MIXED || rank < n - 1);

		call_and_check(&call, comm, rank, n, memory);
		CHECK(offers == !strcmp(last_algorithm(comm), "memory"));
	}
	drop_memory(comm, kind, rank, n, reg, memory);
}

static void by_pairs(void **state)
{
	(void)state;
	for (int n = 2; n <= 5; n += 3)
		for (enum kind kind = ALLOCATED; kind < KINDS; kind++) {
			const struct world world = { .n = n, .transport = "shm" };

			assert_int_equal(world_run(&world, pairs, &kind), 0);
		}
}

/* Several transfers one way, offered and not; and both ways between two ranks. */
static void several(tutti_comm_t comm, int rank, int n, void *arg)
{
	enum { COUNT = 40000 };
	const int to = (rank + 1) % n, from = (rank + n - 1) % n;
	int *plain = calloc(6 * COUNT, sizeof(int)), *shared = NULL;

	(void)arg;
	CHECK_OK(tutti_mem_alloc((void **)&shared, 6 * COUNT * sizeof(int), comm));
	for (int round = 0; round < 5; round++) {
		CHECK_OK(tutti_group_start());
		for (int i = 0; i < 4; i++) {
			int *send = (i & 1 ? shared : plain) + (i / 2) * COUNT;
			int *recv = (i & 2 ? shared : plain) + (2 + i) * COUNT;

			for (int k = 0; k < COUNT; k++)
				send[k] = rank * 1000 + round * 10 + i + k;
			CHECK_OK(tutti_recv(recv, COUNT, TUTTI_INT32, from, comm, NULL));
			CHECK_OK(tutti_send(send, COUNT, TUTTI_INT32, to, comm, NULL));
		}
		CHECK_OK(tutti_group_end());
		for (int i = 0; i < 4; i++) {
			const int *recv = (i & 2 ? shared : plain) + (2 + i) * COUNT;
			int wrong = 0;

			for (int k = 0; k < COUNT; k++)
				wrong += recv[k] != from * 1000 + round * 10 + i + k;
			CHECK(wrong == 0);
		}
	}
	CHECK_OK(tutti_mem_free(shared, comm));
	free(plain);
}

static void several_at_once(void **state)
{
	(void)state;
	for (int n = 2; n <= 4; n++) {
		const struct world world = { .n = n, .transport = "shm" };

		assert_int_equal(world_run(&world, several, NULL), 0);
	}
}

static bool is_zero(const char *memory, size_t nbytes)
{
	size_t i = 0;

	while (i < nbytes && !memory[i])
		i++;
	return i == nbytes;
}

/* Memory comes and goes; what others had mapped of it before is not what they see later. */
static void anew(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)arg;
	for (int round = 0; round < 12; round++) {
		const struct call call = { .coll = round % 2 ? TUTTI_ALL_REDUCE : TUTTI_ALL_GATHER,
					   .type = TUTTI_INT32,
					   .count = 1000 + 7000 * (size_t)(round % 3) };
		/* Ranks allocate otherwise than each other. */
		const size_t before = (size_t)((rank + round) % 3) * 70000;
		void *gap = NULL, *memory = NULL;

		if (before)
			CHECK_OK(tutti_mem_alloc(&gap, before, comm));
		CHECK_OK(tutti_mem_alloc(&memory, call_bytes(&call, n), comm));
		CHECK(is_zero(memory, call_bytes(&call, n)));
		call_and_check(&call, comm, rank, n, memory);
		CHECK(!strcmp(last_algorithm(comm), "memory"));
		CHECK_OK(tutti_mem_free(gap, comm));
		CHECK_OK(tutti_mem_free(memory, comm));
	}
}

static void come_and_go(void **state)
{
	const struct world world = { .n = 4, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, anew, NULL), 0);
}

/* In a group and on a stream; freeing waits for what is queued. */
static void queued(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t count = 50000;
	void *memory = NULL;
	int *send, *recv;
	tutti_stream_t stream;

	(void)arg;
	(void)rank;
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_mem_alloc(&memory, 3 * count * sizeof(int), comm));
	send = memory;
	recv = send + count;
	for (size_t i = 0; i < count; i++)
		send[i] = 1;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_all_reduce(send, recv, count, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK_OK(tutti_all_reduce(recv, recv + count, count, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK(tutti_mem_free(memory, comm) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK(recv[0] == n && recv[count - 1] == n);
	CHECK(recv[count] == n * n && recv[2 * count - 1] == n * n);
	CHECK_OK(tutti_all_reduce(recv, recv, count, TUTTI_INT32, TUTTI_MAX, comm, stream));
	CHECK_OK(tutti_mem_free(memory, comm));
	CHECK_OK(tutti_stream_destroy(stream));
}

static void groups_and_streams(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, queued, NULL), 0);
}

static void misuse(tutti_comm_t comm, int rank, int n, void *arg)
{
	char own[64] = { 0 };
	void *memory = NULL;
	tutti_reg_t reg = NULL;

	(void)rank;
	(void)n;
	(void)arg;
	CHECK(tutti_mem_alloc(NULL, 1, comm) == TUTTI_EINVAL);
	CHECK(tutti_mem_alloc(&memory, 0, comm) == TUTTI_EINVAL);
	CHECK(tutti_mem_alloc(&memory, SIZE_MAX - 5, comm) == TUTTI_ENOMEM);
	CHECK(strstr(tutti_last_error(comm), "TUTTI_SHM_HEAP") != NULL);
	CHECK_OK(tutti_mem_free(NULL, comm));
	CHECK(tutti_mem_free(own, comm) == TUTTI_EINVAL);
	CHECK_OK(tutti_mem_alloc(&memory, 1, comm));
	CHECK(tutti_mem_free((char *)memory + 4096, comm) == TUTTI_EINVAL);
	CHECK_OK(tutti_mem_free(memory, comm));
	CHECK(tutti_mem_free(memory, comm) == TUTTI_EINVAL);
	CHECK(tutti_register(comm, NULL, 4, &reg) == TUTTI_EINVAL);
	CHECK(tutti_register(comm, own, 0, &reg) == TUTTI_EINVAL);
	CHECK(tutti_register(comm, own, SIZE_MAX, &reg) == TUTTI_EINVAL);
	CHECK(tutti_register(comm, own, sizeof(own), NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_deregister(comm, NULL));
	CHECK_OK(tutti_register(comm, own, sizeof(own), &reg));
	CHECK_OK(tutti_deregister(comm, reg));
	CHECK_OK(tutti_barrier(comm, NULL));
}

static void wrong_use(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, misuse, NULL), 0);
}

/* A registration belongs to one communicator: others, with shared memory or without, refuse it, and
 * it stays. What nobody deregistered goes with its communicator. */
static void other_communicator(tutti_comm_t comm, int rank, int n, void *arg)
{
	static char own[2][4096];
	tutti_comm_t alone = NULL, all = NULL;
	tutti_reg_t reg = NULL, left = NULL;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_comm_split(comm, rank, 0, &alone, NULL));
	CHECK_OK(tutti_comm_dup(comm, &all, NULL));
	CHECK_OK(tutti_register(comm, own[rank], sizeof(own[0]), &reg));
	CHECK(tutti_deregister(alone, reg) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(alone), "is no registration of this communicator") != NULL);
	CHECK(tutti_deregister(all, reg) == TUTTI_EINVAL);
	CHECK_OK(tutti_deregister(comm, reg));
	CHECK(tutti_deregister(comm, reg) == TUTTI_EINVAL);
	CHECK_OK(tutti_register(alone, own[rank], sizeof(own[0]), &reg));
	CHECK(tutti_deregister(comm, reg) == TUTTI_EINVAL);
	CHECK_OK(tutti_deregister(alone, reg));
	CHECK_OK(tutti_register(all, own[rank], sizeof(own[0]), &left));
	CHECK_OK(tutti_comm_destroy(alone));
	CHECK_OK(tutti_comm_destroy(all));
	CHECK(tutti_deregister(all, left) == TUTTI_EUSAGE);
}

static void registered_elsewhere(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, other_communicator, NULL), 0);
}

/* Where the data lies or by slots: in a fixed order the bits are the same, of every type. */
static void same_bits(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_BFLOAT16, TUTTI_FLOAT64 };
	const tutti_op op = tutti_op_reproducible(TUTTI_SUM);
	unsigned char *memory = NULL, *plain = malloc(1 << 16);
	uint32_t x = 12345 + (uint32_t)rank;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_mem_alloc((void **)&memory, 1 << 17, comm));
	for (size_t t = 0; t < 3 && CHECK(plain != NULL); t++) {
		const size_t count = (1 << 16) / tutti_type_size(types[t]);

		/* Exponents near 1, so that all sums are numbers and every rounding counts. */
		for (size_t i = 0; i < 1 << 16; i++) {
			x = x * 1664525 + 1013904223;
			memory[i] = i % 2 ? (unsigned char)(x >> 31 << 7 | 0x3f)
					  : (unsigned char)(x >> 24);
		}
		CHECK_OK(tutti_all_reduce(memory, plain, count, types[t], op, comm, NULL));
		CHECK(strcmp(last_algorithm(comm), "memory") != 0);
		CHECK_OK(tutti_all_reduce(memory, memory + (1 << 16), count, types[t], op, comm,
					  NULL));
		CHECK(!strcmp(last_algorithm(comm), "memory"));
		CHECK(!memcmp(plain, memory + (1 << 16), 1 << 16));
	}
	CHECK_OK(tutti_mem_free(memory, comm));
	free(plain);
}

static void reproducible(void **state)
{
	const struct world world = { .n = 5, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, same_bits, NULL), 0);
}

/* A call of another size is found out at the first message here, too. */
static void differing(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t count = 40000 + (rank == 1);
	void *memory = NULL;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_mem_alloc(&memory, 1 << 20, comm));
	CHECK(tutti_all_reduce(memory, memory, count, TUTTI_INT32, TUTTI_SUM, comm, NULL) ==
	      TUTTI_EMISMATCH);
	/* It is still there. */
	memset(memory, 1, 1 << 20);
	CHECK_OK(tutti_mem_free(memory, comm));
}

static void mismatch(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, differing, NULL), 0);
}

/* An offer of another length is found out like a message. */
static void differing_pair(tutti_comm_t comm, int rank, int n, void *arg)
{
	void *memory = NULL;
	tutti_status st;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_mem_alloc(&memory, 1 << 20, comm));
	if (rank == 0)
		st = tutti_send(memory, 40001, TUTTI_INT32, 1, comm, NULL);
	else
		st = tutti_recv(memory, 40000, TUTTI_INT32, 0, comm, NULL);
	CHECK(st == TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "called different things") != NULL);
	CHECK_OK(tutti_mem_free(memory, comm));
}

static void mismatch_of_two(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, differing_pair, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective),
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(seldom_asked),
		cmocka_unit_test(by_pairs),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(groups_and_streams),
		cmocka_unit_test(reproducible),
		cmocka_unit_test(wrong_use),
		cmocka_unit_test(registered_elsewhere),
		cmocka_unit_test(mismatch),
		cmocka_unit_test(mismatch_of_two),
		cmocka_unit_test(handoff_to_themselves),
	};

	/* Calls of any size ask, so that parts of 0 and 1 elements are tried. */
	if (setenv("TUTTI_REGISTERED_LEAST", "0", 1))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
