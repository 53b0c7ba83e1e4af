/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is allocated and freed in the order of streams. */
#include "alone.h"

#include <pthread.h>
#include <semaphore.h>

#include "engine/graph.h"
#include "engine/pool.h"

enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };

static uint64_t get(const struct tti_cuda_pool *pool, int attribute)
{
	uint64_t value;

	GOOD(tti_cuda_pool_get(pool, attribute, &value));
	return value;
}

static struct tti_cuda_stream *new_stream(void)
{
	struct tti_cuda_stream *stream;

	GOOD(tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, &stream));
	return stream;
}

/* A job that a stream waits in until it is let on. */
static int wait_in_stream(void *arg)
{
	while (sem_wait(arg) < 0)
		CHECK(errno == EINTR);
	return 0;
}

static void block(struct tti_cuda_stream *stream, sem_t *until)
{
	CHECK(sem_init(until, 0, 0) == 0);
	GOOD(tti_cuda_stream_push(stream, &(struct tti_cuda_job){ wait_in_stream, NULL, until,
								  TTI_CUDA_NODE_HOST, NULL }));
}

static void end_stream(struct tti_cuda_stream *stream)
{
	GOOD(tti_cuda_stream_synchronize(stream));
	GOOD(tti_cuda_stream_destroy(stream));
}

static size_t free_bytes(void)
{
	size_t nfree;
	size_t total;

	tti_cuda_memory_info(&nfree, &total);
	return nfree;
}

/* -- Allocations -------------------------------------------------------------------------- */

static void order_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_range range;
	sem_t until;
	char *at;

	(void)arg;
	GOOD(tti_cuda_pool_alloc(NULL, 10000, stream, (void **)&at));
	CHECK(tti_cuda_memory_find(at + 9999, &range) && range.is_pool);
	CHECK(range.base == at && range.nbytes == 10000 && range.type == TTI_CUDA_DEVICE);
	memset(at, 1, 10000);
	block(stream, &until);
	GOOD(tti_cuda_pool_free(at, stream));
	CHECK(tti_cuda_memory_find(at, &range)); /* the stream has not come there */
	memset(at, 2, 10000);
	CHECK(get(tti_cuda_pool_default(0), USED) == 10000);
	CHECK(sem_post(&until) == 0);
	GOOD(tti_cuda_stream_synchronize(stream));
	CHECK(!tti_cuda_memory_find(at, &range));
	CHECK(get(tti_cuda_pool_default(0), USED) == 0 && free_bytes() == 64 * MIB);
	end_stream(stream);
}

static void memory_is_freed_when_the_stream_comes_there(void **state)
{
	(void)state;
	alone_run(order_body, NULL);
}

static void same_stream_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_stream *const other = new_stream();
	struct tti_cuda_range before;
	struct tti_cuda_range range;
	sem_t until;
	void *elsewhere;
	void *again;
	void *at;

	(void)arg;
	GOOD(tti_cuda_pool_alloc(NULL, 40 * MIB, stream, &at));
	CHECK(tti_cuda_memory_find(at, &before));
	block(stream, &until);
	GOOD(tti_cuda_pool_free(at, stream));
	FAILS(TTI_CUDA_ENOMEM, "were asked for",
	      tti_cuda_pool_alloc(NULL, 40 * MIB, other, &elsewhere));
	/* What comes in the same stream is behind all that used it. */
	GOOD(tti_cuda_pool_alloc(NULL, 30 * MIB, stream, &again));
	CHECK(again == at && tti_cuda_memory_find(at, &range));
	CHECK(range.id != before.id && range.nbytes == 30 * MIB);
	CHECK(sem_post(&until) == 0);
	GOOD(tti_cuda_stream_synchronize(stream));
	CHECK(tti_cuda_memory_find(again, &range)); /* the free before was of the other */
	GOOD(tti_cuda_pool_free(again, stream));
	end_stream(stream);
	end_stream(other);
	CHECK(free_bytes() == 64 * MIB);
}

static void a_stream_gets_what_it_has_freed_and_no_other_does(void **state)
{
	(void)state;
	alone_run(same_stream_body, NULL);
}

static void zero_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	void *at = &at;

	(void)arg;
	GOOD(tti_cuda_pool_alloc(NULL, 0, stream, &at));
	CHECK(!at);
	GOOD(tti_cuda_pool_free(NULL, stream));
	FAILS(TTI_CUDA_EINVAL, "no pool of memory",
	      tti_cuda_pool_alloc((void *)&at, 1, stream, &at));
	end_stream(stream);
}

static void no_bytes_are_no_memory(void **state)
{
	(void)state;
	alone_run(zero_body, NULL);
}

static void mixed_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_range range;
	uint8_t handle[64];
	sem_t until;
	void *plain;
	void *pooled;
	void *host;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(100, &plain));
	GOOD(tti_cuda_pool_alloc(NULL, 100, stream, &pooled));
	GOOD(tti_cuda_memory_alloc_host(1, 0, TTI_CUDA_HOST, &host));
	FAILS(TTI_CUDA_EINVAL, "memory of a pool", tti_cuda_memory_get_handle(pooled, handle));
	FAILS(TTI_CUDA_EINVAL, "cudaFreeHost", tti_cuda_pool_free(host, stream));
	FAILS(TTI_CUDA_EINVAL, "lies inside", tti_cuda_pool_free((char *)plain + 1, stream));
	block(stream, &until);
	GOOD(tti_cuda_pool_free(plain, stream)); /* what cudaMalloc() gave */
	FAILS(TTI_CUDA_EINVAL, "freed in a stream already", tti_cuda_pool_free(plain, stream));
	FAILS(TTI_CUDA_EINVAL, "freed in a stream already", tti_cuda_memory_free(plain));
	GOOD(tti_cuda_memory_free(pooled)); /* at once */
	CHECK(!tti_cuda_memory_find(pooled, &range) && get(tti_cuda_pool_default(0), USED) == 0);
	CHECK(sem_post(&until) == 0);
	GOOD(tti_cuda_stream_synchronize(stream));
	FAILS(TTI_CUDA_EINVAL, "or not any more", tti_cuda_pool_free(plain, stream));
	GOOD(tti_cuda_memory_free_host(host));
	end_stream(stream);
	CHECK(free_bytes() == 64 * MIB);
}

static void memory_is_freed_once_either_way(void **state)
{
	(void)state;
	alone_run(mixed_body, NULL);
}

/* -- What pools keep ---------------------------------------------------------------------- */

static void keep_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_stream *const other = new_stream();
	struct tti_cuda_pool *pool;
	struct tti_cuda_range range;
	void *again;
	void *at;

	(void)arg;
	GOOD(tti_cuda_pool_create(0, &pool));
	GOOD(tti_cuda_pool_set(pool, THRESHOLD, 16 * MIB));
	GOOD(tti_cuda_pool_alloc(pool, 16 * MIB, stream, &at));
	CHECK(get(pool, RESERVED) == 32 * MIB && get(pool, USED) == 16 * MIB);
	GOOD(tti_cuda_pool_free(at, stream));
	GOOD(tti_cuda_stream_synchronize(stream));
	CHECK(get(pool, RESERVED) == 32 * MIB && get(pool, USED) == 0);
	CHECK(free_bytes() == 48 * MIB && !tti_cuda_memory_find(at, &range));
	GOOD(tti_cuda_pool_alloc(pool, 9 * MIB, other, &again));
	CHECK(again == at && get(pool, USED) == 9 * MIB);
	GOOD(tti_cuda_pool_alloc(pool, MIB, other, &at));
	CHECK(get(pool, RESERVED) == 32 * MIB && get(pool, RESERVED_HIGH) == 32 * MIB);
	GOOD(tti_cuda_pool_free(again, other));
	GOOD(tti_cuda_stream_synchronize(other)); /* 17 MiB are more than the threshold */
	CHECK(get(pool, RESERVED) == 32 * MIB && get(pool, USED) == MIB);
	CHECK(get(pool, USED_HIGH) == 16 * MIB && free_bytes() == 63 * MIB);
	GOOD(tti_cuda_pool_set(pool, USED_HIGH, 0));
	GOOD(tti_cuda_pool_set(pool, RESERVED_HIGH, 0));
	CHECK(get(pool, USED_HIGH) == MIB && get(pool, RESERVED_HIGH) == 32 * MIB);
	GOOD(tti_cuda_pool_free(at, other));
	GOOD(tti_cuda_stream_synchronize(other));
	CHECK(get(pool, RESERVED) == 32 * MIB);
	GOOD(tti_cuda_pool_trim(pool, 1)); /* 32 MiB are the least that can be kept */
	CHECK(get(pool, RESERVED) == 32 * MIB && free_bytes() == 63 * MIB);
	GOOD(tti_cuda_pool_trim(pool, 0));
	CHECK(get(pool, RESERVED) == 0 && free_bytes() == 64 * MIB);
	GOOD(tti_cuda_pool_alloc(pool, MIB, stream, &at));
	GOOD(tti_cuda_pool_free(at, stream));
	end_stream(stream);
	CHECK(get(pool, RESERVED) == 32 * MIB);
	GOOD(tti_cuda_pool_destroy(pool));
	CHECK(free_bytes() == 64 * MIB);
	end_stream(other);
}

static void a_pool_keeps_as_much_as_its_threshold(void **state)
{
	(void)state;
	alone_run(keep_body, NULL);
}

static void policy_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_stream *const other = new_stream();
	struct tti_cuda_pool *const pool = tti_cuda_pool_default(0);
	void *elsewhere;
	void *again;
	void *at;

	(void)arg;
	GOOD(tti_cuda_pool_set(pool, THRESHOLD, UINT64_MAX));
	GOOD(tti_cuda_pool_set(pool, 2, 0));
	GOOD(tti_cuda_pool_alloc(pool, MIB, stream, &at));
	GOOD(tti_cuda_pool_free(at, stream));
	GOOD(tti_cuda_stream_synchronize(stream));
	GOOD(tti_cuda_pool_alloc(pool, MIB, other, &elsewhere));
	GOOD(tti_cuda_pool_alloc(pool, MIB, stream, &again));
	CHECK(elsewhere != at && again == at);
	GOOD(tti_cuda_pool_free(elsewhere, stream));
	GOOD(tti_cuda_pool_free(again, stream));
	end_stream(stream);
	end_stream(other);
}

static void what_others_freed_is_not_used_where_that_is_forbidden(void **state)
{
	(void)state;
	alone_run(policy_body, NULL);
}

static void reclaim_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_pool *const pool = tti_cuda_pool_default(0);
	void *at;

	(void)arg;
	GOOD(tti_cuda_pool_set(pool, THRESHOLD, UINT64_MAX));
	GOOD(tti_cuda_pool_alloc(pool, 60 * MIB, stream, &at));
	GOOD(tti_cuda_pool_free(at, stream));
	GOOD(tti_cuda_stream_synchronize(stream));
	CHECK(free_bytes() == 4 * MIB);
	GOOD(tti_cuda_memory_alloc(50 * MIB, &at));
	CHECK(get(pool, RESERVED) == 0);
	GOOD(tti_cuda_memory_free(at));
	end_stream(stream);
}

static void what_pools_keep_is_given_to_those_who_need_it(void **state)
{
	(void)state;
	alone_run(reclaim_body, NULL);
}

static void attributes_body(void *arg)
{
	struct tti_cuda_pool *pool;
	uint64_t value;

	(void)arg;
	GOOD(tti_cuda_pool_create(1, &pool));
	CHECK(tti_cuda_pool_device(pool) == 1);
	for (int policy = 1; policy <= 3; policy++) {
		CHECK(get(pool, policy) == 1);
		GOOD(tti_cuda_pool_set(pool, policy, 0));
		CHECK(get(pool, policy) == 0);
		FAILS(TTI_CUDA_EINVAL, "cannot be set", tti_cuda_pool_set(pool, policy, 2));
	}
	CHECK(get(pool, THRESHOLD) == 0);
	GOOD(tti_cuda_pool_set(pool, THRESHOLD, UINT64_MAX));
	CHECK(get(pool, THRESHOLD) == UINT64_MAX);
	FAILS(TTI_CUDA_EINVAL, "cannot be set", tti_cuda_pool_set(pool, RESERVED, 0));
	FAILS(TTI_CUDA_EINVAL, "cannot be set", tti_cuda_pool_set(pool, USED, 0));
	FAILS(TTI_CUDA_EINVAL, "cannot be set", tti_cuda_pool_set(pool, USED_HIGH, 1));
	FAILS(TTI_CUDA_EINVAL, "cannot be set", tti_cuda_pool_set(pool, 0, 0));
	FAILS(TTI_CUDA_EINVAL, "9 is no attribute", tti_cuda_pool_get(pool, 9, &value));
	FAILS(TTI_CUDA_EINVAL, "0 is no attribute", tti_cuda_pool_get(pool, 0, &value));
	GOOD(tti_cuda_pool_destroy(pool));
	FAILS(TTI_CUDA_EINVAL, "was destroyed", tti_cuda_pool_get(pool, 1, &value));
	FAILS(TTI_CUDA_EINVAL, "was destroyed", tti_cuda_pool_destroy(pool));
	CHECK(tti_cuda_pool_device(pool) == -1);
}

static void attributes_have_their_values(void **state)
{
	(void)state;
	alone_run(attributes_body, NULL);
}

static void current_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_pool *const first = tti_cuda_pool_default(0);
	struct tti_cuda_pool *pool;
	void *at, *more;

	(void)arg;
	CHECK(first && first == tti_cuda_pool_current(0) && first != tti_cuda_pool_default(1));
	CHECK(!tti_cuda_pool_default(2) && strstr(tti_cuda_error_text(), "no device 2"));
	FAILS(TTI_CUDA_EINVAL, "default pool", tti_cuda_pool_destroy(first));
	GOOD(tti_cuda_pool_create(0, &pool));
	FAILS(TTI_CUDA_EDEVICE, "no device 5", tti_cuda_pool_create(5, &pool));
	FAILS(TTI_CUDA_EINVAL, "current one of device 1", tti_cuda_pool_set_current(1, pool));
	GOOD(tti_cuda_pool_set_current(0, pool));
	CHECK(tti_cuda_pool_current(0) == pool && tti_cuda_pool_default(0) == first);
	GOOD(tti_cuda_pool_alloc(NULL, 100, stream, &at));
	CHECK(get(pool, USED) == 100 && get(first, USED) == 0);
	tti_cuda_pool_set_most(pool, 1);
	FAILS(TTI_CUDA_ENOMEM, "has 100 of 33554432 in use",
	      tti_cuda_pool_alloc(pool, 32 * MIB, stream, &more));
	GOOD(tti_cuda_pool_destroy(pool)); /* the memory lives on */
	CHECK(tti_cuda_pool_current(0) == first);
	memset(at, 1, 100);
	GOOD(tti_cuda_pool_free(at, stream));
	GOOD(tti_cuda_pool_set_current(0, NULL));
	end_stream(stream);
	CHECK(free_bytes() == 64 * MIB);
}

static void the_current_pool_is_what_was_set_or_the_default(void **state)
{
	(void)state;
	alone_run(current_body, NULL);
}

/* -- Graphs ------------------------------------------------------------------------------- */

static int fill(void *arg)
{
	memset(arg, 8, 100);
	return 0;
}

/* Allocates, fills, and with `frees` frees 100 bytes. */
static struct tti_cuda_graph *capture(struct tti_cuda_stream *stream, bool frees, char **at)
{
	struct tti_cuda_graph *graph;

	GOOD(tti_cuda_capture_begin(stream, TTI_CUDA_CAPTURE_RELAXED, NULL, NULL, 0));
	GOOD(tti_cuda_pool_alloc(NULL, 100, stream, (void **)at));
	GOOD(tti_cuda_stream_push(
		stream, &(struct tti_cuda_job){ fill, NULL, *at, TTI_CUDA_NODE_HOST, NULL }));
	if (frees)
		GOOD(tti_cuda_pool_free(*at, stream));
	GOOD(tti_cuda_capture_end(stream, &graph));
	return graph;
}

static void graph_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_node *nodes[3];
	struct tti_cuda_graph *graph;
	struct tti_cuda_exec *exec;
	struct tti_cuda_range range;
	size_t n = 3;
	char *at;

	(void)arg;
	graph = capture(stream, true, &at);
	GOOD(tti_cuda_graph_nodes(graph, nodes, &n));
	CHECK(n == 3 && tti_cuda_node_kind(nodes[0]) == TTI_CUDA_NODE_ALLOC);
	CHECK(tti_cuda_node_kind(nodes[2]) == TTI_CUDA_NODE_FREE);
	GOOD(tti_cuda_graph_instantiate(graph, &exec));
	GOOD(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 3; i++) {
		memset(at, 0, 100);
		GOOD(tti_cuda_exec_launch(exec, stream));
		GOOD(tti_cuda_stream_synchronize(stream));
		CHECK(at[0] == 8 && at[99] == 8);
	}
	CHECK(tti_cuda_memory_find(at, &range) && range.is_pool && free_bytes() < 64 * MIB);
	GOOD(tti_cuda_exec_destroy(exec));
	end_stream(stream);
	CHECK(!tti_cuda_memory_find(at, &range) && free_bytes() == 64 * MIB);
}

static void memory_of_a_graph_lives_with_it(void **state)
{
	(void)state;
	alone_run(graph_body, NULL);
}

static void graph_free_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_graph *graph;
	struct tti_cuda_exec *exec;
	void *foreign;
	char *at;

	(void)arg;
	graph = capture(stream, false, &at);
	GOOD(tti_cuda_graph_instantiate(graph, &exec));
	GOOD(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 2; i++) {
		GOOD(tti_cuda_exec_launch(exec, stream));
		GOOD(tti_cuda_pool_free(at, stream)); /* by the program, once a launch */
		GOOD(tti_cuda_stream_synchronize(stream));
		CHECK(tti_cuda_memory_free(at) == TTI_CUDA_EINVAL);
		GOOD(tti_cuda_exec_launch(exec, stream));
		GOOD(tti_cuda_stream_synchronize(stream));
		GOOD(tti_cuda_memory_free(at));
	}
	GOOD(tti_cuda_exec_destroy(exec));

	GOOD(tti_cuda_memory_alloc(1, &foreign));
	GOOD(tti_cuda_capture_begin(stream, TTI_CUDA_CAPTURE_RELAXED, NULL, NULL, 0));
	FAILS(TTI_CUDA_EINVAL, "that is captured", tti_cuda_pool_free(foreign, stream));
	GOOD(tti_cuda_pool_alloc(NULL, 1, stream, (void **)&at));
	GOOD(tti_cuda_pool_free(at, stream));
	FAILS(TTI_CUDA_EINVAL, "freed already", tti_cuda_pool_free(at, stream));
	GOOD(tti_cuda_capture_end(stream, &graph));
	GOOD(tti_cuda_graph_destroy(graph));
	GOOD(tti_cuda_memory_free(foreign));
	end_stream(stream);
	CHECK(free_bytes() == 64 * MIB);
}

static void memory_of_a_graph_is_freed_once_a_launch(void **state)
{
	(void)state;
	alone_run(graph_free_body, NULL);
}

static void twice_body(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	struct tti_cuda_graph *graph;
	struct tti_cuda_exec *exec;
	sem_t until;
	char *at;

	(void)arg;
	graph = capture(stream, true, &at);
	GOOD(tti_cuda_graph_instantiate(graph, &exec));
	GOOD(tti_cuda_graph_destroy(graph));
	block(stream, &until);
	GOOD(tti_cuda_exec_launch(exec, stream));
	GOOD(tti_cuda_pool_free(at, stream)); /* the launch has freed it by then */
	CHECK(sem_post(&until) == 0);
	FAILS(TTI_CUDA_EINVAL, "of a graph is freed already", tti_cuda_stream_synchronize(stream));
	GOOD(tti_cuda_exec_destroy(exec));
	GOOD(tti_cuda_stream_destroy(stream));
}

static void freed_twice_the_stream_fails(void **state)
{
	(void)state;
	alone_run(twice_body, NULL);
}

/* -- Threads ------------------------------------------------------------------------------ */

struct job {
	char *at;
	size_t nbytes;
	char byte;
};

static int fill_job(void *arg)
{
	const struct job *const job = arg;

	memset(job->at, job->byte, job->nbytes);
	return 0;
}

static int check_job(void *arg)
{
	const struct job *const job = arg;

	for (size_t i = 0; i < job->nbytes; i++)
		CHECK(job->at[i] == job->byte);
	return 0;
}

/* Nobody else has the memory between what is queued before its end and behind its beginning. */
static void *use_pool(void *arg)
{
	struct tti_cuda_stream *const stream = new_stream();
	uint32_t seed = (uint32_t)(uintptr_t)arg;

	for (int i = 0; i < 300; i++) {
		struct job *const job = malloc(sizeof(*job));
		struct tti_cuda_job queued = { fill_job, NULL, job, TTI_CUDA_NODE_HOST, NULL };
		void *at;

		CHECK(job);
		job->nbytes = 1 + alone_random(&seed) % 50000;
		job->byte = (char)alone_random(&seed);
		GOOD(tti_cuda_pool_alloc(NULL, job->nbytes, stream, &at));
		job->at = at;
		GOOD(tti_cuda_stream_push(stream, &queued));
		queued.run = check_job;
		queued.drop = free;
		GOOD(tti_cuda_stream_push(stream, &queued));
		GOOD(tti_cuda_pool_free(at, stream));
		if (alone_random(&seed) % 16 == 0)
			GOOD(tti_cuda_stream_synchronize(stream));
	}
	end_stream(stream);
	return NULL;
}

static void threads_body(void *arg)
{
	struct tti_cuda_pool *const pool = tti_cuda_pool_default(0);
	pthread_t threads[4];

	GOOD(tti_cuda_pool_set(pool, THRESHOLD, *(const uint64_t *)arg));
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_pool, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(get(pool, USED) == 0 && get(pool, USED_HIGH) > 0);
	GOOD(tti_cuda_pool_trim(pool, 0));
	CHECK(get(pool, RESERVED) == 0 && free_bytes() == 64 * MIB);
}

static void streams_never_share_memory_at_a_time(void **state)
{
	static const uint64_t thresholds[] = { 0, MIB, UINT64_MAX };

	(void)state;
	for (int i = 0; i < 3; i++)
		alone_run(threads_body, (void *)(uintptr_t)&thresholds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_freed_when_the_stream_comes_there),
		cmocka_unit_test(a_stream_gets_what_it_has_freed_and_no_other_does),
		cmocka_unit_test(no_bytes_are_no_memory),
		cmocka_unit_test(memory_is_freed_once_either_way),
		cmocka_unit_test(a_pool_keeps_as_much_as_its_threshold),
		cmocka_unit_test(what_others_freed_is_not_used_where_that_is_forbidden),
		cmocka_unit_test(what_pools_keep_is_given_to_those_who_need_it),
		cmocka_unit_test(attributes_have_their_values),
		cmocka_unit_test(the_current_pool_is_what_was_set_or_the_default),
		cmocka_unit_test(memory_of_a_graph_lives_with_it),
		cmocka_unit_test(memory_of_a_graph_is_freed_once_a_launch),
		cmocka_unit_test(freed_twice_the_stream_fails),
		cmocka_unit_test(streams_never_share_memory_at_a_time),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
