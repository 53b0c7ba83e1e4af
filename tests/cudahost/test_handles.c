/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of memory, between real processes: one has the memory, another maps it. */
#include "owner.h"

/* -- Opening ------------------------------------------------------------------------------ */

static void share_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 3 * MIB + 5, .byte = 3 });
	struct tti_cuda_range range;
	char *at;

	(void)arg;
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	CHECK(tti_cuda_memory_find(at + 3 * MIB, &range));
	CHECK(range.base == at && range.nbytes == 3 * MIB + 5 && range.type == TTI_CUDA_DEVICE);
	for (size_t i = 0; i < range.nbytes; i++)
		CHECK(at[i] == 3);
	memset(at, 4, range.nbytes);
	CHECK(ask(&owner, (struct request){ .order = PEEK, .nbytes = 1 }).byte == 4);
	(void)ask(&owner, (struct request){ .order = FILL, .nbytes = 1, .byte = 5 });
	CHECK(at[0] == 5 && at[1] == 4);
	GOOD(tti_cuda_memory_close_handle(at));
	CHECK(!tti_cuda_memory_find(at, &range) && alone_maps() == 0 && alone_nfiles() == 0);
	end_owner(&owner);
}

static void both_processes_see_the_same_bytes(void **state)
{
	(void)state;
	alone_run(share_body, NULL);
}

static void guard_body(void *arg)
{
	struct owner owner;
	struct reply got;
	char *at;

	(void)arg;
	CHECK(setenv("TUTTI_CUDAHOST_GUARD", "1", 1) == 0);
	owner = start_owner(0);
	got = ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	CHECK(!alone_can_access(at, false));
	CHECK(*(char *)tti_cuda_memory_reach(at + 99) == 3);
	*(char *)tti_cuda_memory_reach(at + 99) = 4;
	CHECK(ask(&owner, (struct request){ .order = PEEK, .nbytes = 100 }).byte == 4);
	GOOD(tti_cuda_memory_close_handle(at));
	end_owner(&owner);
}

static void opened_memory_is_guarded_too(void **state)
{
	(void)state;
	alone_run(guard_body, NULL);
}

static void inside_body(void *arg)
{
	struct owner owner = start_owner(0);
	struct reply got;
	char *at;

	(void)arg;
	(void)ask(&owner, (struct request){ .order = ALLOC, .nbytes = 5000, .slot = 1, .byte = 1 });
	got = ask(&owner, (struct request){ .order = ALLOC_INSIDE, .nbytes = 5000, .byte = 2 });
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	GOOD(tti_cuda_memory_check(at, 5000));
	CHECK(at[0] == 2 && at[4999] == 2);
	GOOD(tti_cuda_memory_close_handle(at));
	end_owner(&owner);
}

static void a_handle_is_of_the_whole_allocation(void **state)
{
	(void)state;
	alone_run(inside_body, NULL);
}

static void twice_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	char *at;
	char *again;

	(void)arg;
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&again));
	CHECK(at == again && alone_maps() == 1);
	GOOD(tti_cuda_memory_close_handle(at));
	CHECK(at[99] == 3);
	GOOD(tti_cuda_memory_close_handle(at));
	CHECK(alone_maps() == 0);
	FAILS(TTI_CUDA_EINVAL, "closed already", tti_cuda_memory_close_handle(at));
	end_owner(&owner);
}

static void opened_twice_it_is_mapped_once_and_closed_twice(void **state)
{
	(void)state;
	alone_run(twice_body, NULL);
}

static void own_body(void *arg)
{
	struct owner owner = start_owner(0);
	uint8_t handle[64];
	struct reply got;
	void *at;
	void *other;
	void *host;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(100, &at));
	GOOD(tti_cuda_memory_get_handle(at, handle));
	FAILS(TTI_CUDA_ECONTEXT, "has the memory already",
	      tti_cuda_memory_open_handle(handle, &other));
	FAILS(TTI_CUDA_EINVAL, "nothing is allocated", tti_cuda_memory_get_handle(&at, handle));
	GOOD(tti_cuda_memory_alloc_host(10, 0, TTI_CUDA_HOST, &host));
	FAILS(TTI_CUDA_EINVAL, "not what cudaMalloc() gave",
	      tti_cuda_memory_get_handle(host, handle));
	GOOD(tti_cuda_memory_free_host(host));
	got = ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	GOOD(tti_cuda_memory_open_handle(got.handle, &other));
	FAILS(TTI_CUDA_EINVAL, "of another process", tti_cuda_memory_get_handle(other, handle));
	FAILS(TTI_CUDA_EINVAL, "cudaIpcCloseMemHandle", tti_cuda_memory_free(other));
	FAILS(TTI_CUDA_EINVAL, "no handle was opened", tti_cuda_memory_close_handle(at));
	FAILS(TTI_CUDA_EINVAL, "no handle was opened",
	      tti_cuda_memory_close_handle((char *)other + 1));
	GOOD(tti_cuda_memory_close_handle(other));
	GOOD(tti_cuda_memory_free(at));
	end_owner(&owner);
}

static void only_memory_of_others_is_opened_and_own_memory_exported(void **state)
{
	(void)state;
	alone_run(own_body, NULL);
}

/* -- A random model ----------------------------------------------------------------------- */

#define SLOTS 24

struct known {
	uint8_t handle[64];
	char byte;
	bool is_live;
	char *at; /* opened */
	uint64_t nbytes;
	int count;
};

static void step(const struct owner *owner, struct known *known, uint32_t slot, uint32_t *seed)
{
	char *at;

	switch (alone_random(seed) % 4) {
	case 0: /* freed only when it is not open, as CUDA has it */
		if (known->is_live && !known->count) {
			(void)ask(owner, (struct request){ .order = FREE, .slot = slot });
			known->is_live = false;
		} else if (!known->is_live) {
			known->byte = (char)alone_random(seed);
			known->nbytes = 1 + alone_random(seed) % 20000;
			memcpy(known->handle,
			       ask(owner,
				   (struct request){ ALLOC, known->nbytes, slot, known->byte })
				       .handle,
			       64);
			known->is_live = true;
		}
		break;
	case 3:
		if (known->count) {
			CHECK(known->at[known->nbytes - 1] == known->byte);
			GOOD(tti_cuda_memory_close_handle(known->at));
			known->count--;
		}
		break;
	default:
		if (!known->is_live) {
			/* one that was never made is no handle, and one whose memory is gone is */
			CHECK(tti_cuda_memory_open_handle(known->handle, (void **)&at) ==
			      (known->nbytes ? TTI_CUDA_EHANDLE : TTI_CUDA_EINVAL));
			break;
		}
		GOOD(tti_cuda_memory_open_handle(known->handle, (void **)&at));
		CHECK(!known->count || at == known->at);
		CHECK(at[0] == known->byte && at[known->nbytes - 1] == known->byte);
		known->at = at;
		known->count++;
	}
}

static void model_body(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;
	struct owner owner = start_owner(0);
	struct known known[SLOTS] = { 0 };

	for (int i = 0; i < 1500; i++) {
		const uint32_t slot = alone_random(&seed) % SLOTS;

		step(&owner, &known[slot], slot, &seed);
	}
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		while (known[slot].count-- > 0)
			GOOD(tti_cuda_memory_close_handle(known[slot].at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	end_owner(&owner);
}

static void a_handle_is_never_of_other_memory(void **state)
{
	pid_t pids[3];

	(void)state;
	for (uintptr_t i = 0; i < 3; i++)
		pids[i] = alone_start(model_body, (void *)(i + 1));
	for (int i = 0; i < 3; i++)
		assert_int_equal(alone_wait(pids[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_processes_see_the_same_bytes),
		cmocka_unit_test(opened_memory_is_guarded_too),
		cmocka_unit_test(a_handle_is_of_the_whole_allocation),
		cmocka_unit_test(opened_twice_it_is_mapped_once_and_closed_twice),
		cmocka_unit_test(only_memory_of_others_is_opened_and_own_memory_exported),
		cmocka_unit_test(a_handle_is_never_of_other_memory),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
