/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of memory that is gone, was changed, or is not to be had. */
#include "owner.h"

#include <sys/resource.h>

#include "engine/process.h"

/* -- Handles that are good no more -------------------------------------------------------- */

static void killed_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 2 * MIB, .byte = 3 });
	const struct reply other =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .slot = 1 });
	char *at;
	char *again;

	(void)arg;
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	kill_owner(&owner);
	for (size_t i = 0; i < 2 * MIB; i++)
		CHECK(at[i] == 3);
	memset(at, 4, 2 * MIB);
	FAILS(TTI_CUDA_EHANDLE, "has ended",
	      tti_cuda_memory_open_handle(got.handle, (void **)&again));
	FAILS(TTI_CUDA_EHANDLE, "has ended",
	      tti_cuda_memory_open_handle(other.handle, (void **)&again));
	GOOD(tti_cuda_memory_close_handle(at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void a_mapping_outlives_its_process_and_a_handle_does_not(void **state)
{
	(void)state;
	alone_run(killed_body, NULL);
}

static void freed_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	struct reply again;
	char *at;

	(void)arg;
	(void)ask(&owner, (struct request){ .order = FREE });
	FAILS(TTI_CUDA_EHANDLE, "has freed", tti_cuda_memory_open_handle(got.handle, (void **)&at));
	/* The same place, but another allocation. */
	again = ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 4 });
	FAILS(TTI_CUDA_EHANDLE, "has freed", tti_cuda_memory_open_handle(got.handle, (void **)&at));
	GOOD(tti_cuda_memory_open_handle(again.handle, (void **)&at));
	CHECK(at[0] == 4);
	GOOD(tti_cuda_memory_close_handle(at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	end_owner(&owner);
}

static void a_handle_ends_with_its_allocation(void **state)
{
	(void)state;
	alone_run(freed_body, NULL);
}

static void file_body(void *arg)
{
	static const char *const words[] = { [FILE_GONE] = "closed the memory",
					     [FILE_IS_FIFO] = "not the memory any more",
					     [FILE_IS_OTHER] = "not the memory of device 0" };
	const enum order order = *(const enum order *)arg;
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	char *at;

	(void)ask(&owner, (struct request){ .order = order });
	FAILS(TTI_CUDA_EHANDLE, words[order],
	      tti_cuda_memory_open_handle(got.handle, (void **)&at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	end_owner(&owner);
}

static void a_file_that_was_replaced_is_not_mapped(void **state)
{
	(void)state;
	for (enum order order = FILE_GONE; order <= FILE_IS_OTHER; order++)
		alone_run(file_body, &order);
}

/* The layout is handle.c's: check at 4, of what follows. */
#define PID_AT  8
#define SIZE_AT 40

static void set_check(uint8_t handle[64])
{
	const uint32_t check = tti_cuda_process_hash(TTI_CUDA_HASH_BEGIN, handle + 8, 56);

	memcpy(handle + 4, &check, 4);
}

/* Whether a handle names a thread of the process, which the sanitizers have more of than one. */
static bool is_thread(pid_t pid, const uint8_t handle[64])
{
	char path[64];
	int32_t thread;

	memcpy(&thread, handle + PID_AT, sizeof(thread));
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, thread);
	return access(path, F_OK) == 0;
}

static void bits_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	char *at;

	(void)arg;
	for (unsigned bit = 0; bit < 512; bit++) {
		uint8_t handle[64];

		memcpy(handle, got.handle, 64);
		handle[bit / 8] ^= (uint8_t)(1u << bit % 8);
		FAILS(TTI_CUDA_EINVAL, "no handle of memory",
		      tti_cuda_memory_open_handle(handle, (void **)&at));
		if (bit < 64)
			continue;
		set_check(handle); /* as somebody would who forges one */
		if (tti_cuda_memory_open_handle(handle, (void **)&at) != 0)
			continue;
		/* The number of a thread of that process, or another size: the same memory. */
		CHECK(bit / 64 == SIZE_AT / 8 || is_thread(owner.pid, handle));
		CHECK(at[0] == 3);
		GOOD(tti_cuda_memory_close_handle(at));
	}
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	end_owner(&owner);
}

static void a_changed_handle_is_refused(void **state)
{
	(void)state;
	alone_run(bits_body, NULL);
}

static void forged_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	uint64_t start;
	uint8_t handle[64];
	char *at;

	(void)arg;
	memcpy(handle, got.handle, 64);
	memcpy(&start, handle + 16, 8);
	start--;
	memcpy(handle + 16, &start, 8);
	set_check(handle);
	FAILS(TTI_CUDA_EHANDLE, "another one has its number",
	      tti_cuda_memory_open_handle(handle, (void **)&at));
	memcpy(handle, got.handle, 64);
	handle[60] ^= 1;
	set_check(handle);
	FAILS(TTI_CUDA_EHANDLE, "another container",
	      tti_cuda_memory_open_handle(handle, (void **)&at));
	end_owner(&owner);
}

static void another_process_of_that_number_is_not_looked_into(void **state)
{
	(void)state;
	alone_run(forged_body, NULL);
}

/* -- Permission --------------------------------------------------------------------------- */

static void permission_body(void *arg)
{
	struct owner owner;
	struct reply got;
	char *at;

	(void)arg;
	if (getuid() != 0)
		_exit(ALONE_UNTESTED); /* it takes two users */
	owner = start_owner(0);
	got = ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	CHECK(setresuid(65534, 65534, 65534) == 0);
	FAILS(TTI_CUDA_EPOOL, "run both as one user",
	      tti_cuda_memory_open_handle(got.handle, (void **)&at));
	close(owner.socket);
	_exit(0);
}

static void another_users_memory_is_refused_with_the_remedy(void **state)
{
	(void)state;
	alone_run(permission_body, NULL);
}

static void hidden_body(void *arg)
{
	struct owner owner;
	struct reply got;
	char *at;

	(void)arg;
	if (getuid() != 0)
		_exit(ALONE_UNTESTED);
	owner = start_owner(65534);
	got = ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	CHECK(setresuid(65534, 65534, 65534) == 0);
	GOOD(tti_cuda_memory_open_handle(got.handle, (void **)&at));
	CHECK(at[99] == 3);
	GOOD(tti_cuda_memory_close_handle(at));
	(void)ask(&owner, (struct request){ .order = HIDE });
	FAILS(TTI_CUDA_EPOOL, "PR_SET_DUMPABLE",
	      tti_cuda_memory_open_handle(got.handle, (void **)&at));
	close(owner.socket);
	_exit(0);
}

static void a_process_that_hides_is_refused_with_the_remedy(void **state)
{
	(void)state;
	alone_run(hidden_body, NULL);
}

static void no_files_body(void *arg)
{
	struct owner owner = start_owner(0);
	const struct reply got =
		ask(&owner, (struct request){ .order = ALLOC, .nbytes = 100, .byte = 3 });
	const int next = dup(0);
	const struct rlimit limit = { (rlim_t)next, (rlim_t)next };
	char *at;

	(void)arg;
	close(next);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(tti_cuda_memory_open_handle(got.handle, (void **)&at) == TTI_CUDA_ESYS);
	CHECK(strstr(tti_cuda_error_text(), "Too many open files"));
	close(owner.socket);
	_exit(0);
}

static void without_a_free_descriptor_nothing_is_opened(void **state)
{
	(void)state;
	alone_run(no_files_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_outlives_its_process_and_a_handle_does_not),
		cmocka_unit_test(a_handle_ends_with_its_allocation),
		cmocka_unit_test(a_file_that_was_replaced_is_not_mapped),
		cmocka_unit_test(a_changed_handle_is_refused),
		cmocka_unit_test(another_process_of_that_number_is_not_looked_into),
		cmocka_unit_test(another_users_memory_is_refused_with_the_remedy),
		cmocka_unit_test(a_process_that_hides_is_refused_with_the_remedy),
		cmocka_unit_test(without_a_free_descriptor_nothing_is_opened),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
