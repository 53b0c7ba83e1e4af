/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that other ranks reach: of the same process, and of another one, which is this program
 * again; and what addresses of the program are. TUTTI_CUDA_SHARE says which way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/program.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/params.h"

#define NBYTES ((size_t)3 << 20)

static struct tti_gpu *gpu;

static bool is_ipc(void)
{
	return tti_params()->cuda_share == 2;
}

static int open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static bool nothing_is_held(void)
{
	static const struct tti_gpu_held none = { .gpus = 1 };
	struct tti_gpu_held held;

	tti_gpu_held(&held);
	return !memcmp(&held, &none, sizeof(held));
}

static int begin(void **state)
{
	(void)state;
	return tti_gpu_open(0, &gpu) != TUTTI_OK;
}

static int end(void **state)
{
	(void)state;
	if (!nothing_is_held())
		return 1;
	tti_gpu_close(gpu);
	return 0;
}

static void says(const char *what)
{
	if (!strstr(tti_error_text(), what))
		fail_msg("\"%s\" is not in \"%s\"", what, tti_error_text());
}

/* -- In one process ---------------------------------------------------------------- */

static void pinned_memory_is_zeroed_and_in_reach(void **state)
{
	void *host, *pages;
	uint64_t at;
	char text[8] = "";

	(void)state;
	assert_int_equal(tti_gpu_pinned_alloc(gpu, NBYTES, &host, &at), TUTTI_OK);
	for (size_t i = 0; i < NBYTES; i++)
		assert_int_equal(((char *)host)[i], 0);
	memcpy(host, "pinned", 7);
	assert_int_equal(tti_gpu_read(gpu, text, at, 7), TUTTI_OK);
	assert_string_equal(text, "pinned");
	tti_gpu_pinned_free(gpu, host);
	tti_gpu_pinned_free(gpu, NULL);

	pages = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	memcpy(pages, "pages", 6);
	assert_int_equal(tti_gpu_pin(gpu, pages, NBYTES, &at), TUTTI_OK);
	assert_int_equal(tti_gpu_read(gpu, text, at, 6), TUTTI_OK);
	assert_string_equal(text, "pages");
	assert_int_equal(tti_gpu_pin(gpu, pages, NBYTES, &at), TUTTI_ESYS);
	says("pinning");
	says("cuMemHostRegister");
	tti_gpu_unpin(gpu, pages);
	munmap(pages, NBYTES);
	assert_true(nothing_is_held());
}

static void wait_until_set(void *arg)
{
	while (!atomic_load((atomic_int *)arg))
		(void)usleep(1000);
}

/* The stream may be another rank's, which waits for what this thread does next. With
 * TUTTI_CUDAHOST_WAIT=1 cuMemAlloc() and cuMemFree() would wait for ever. */
static void memory_is_made_and_freed_while_a_stream_is_busy(void **state)
{
	atomic_int is_set = 0;
	uint64_t at;
	void *stream;

	(void)state;
	assert_int_equal(tti_gpu_stream_create(gpu, false, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_call(gpu, wait_until_set, &is_set, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_alloc(gpu, NBYTES, &at), TUTTI_OK);
	assert_int_equal(tti_gpu_zero(gpu, at, NBYTES), TUTTI_OK);
	tti_gpu_free(gpu, at);
	assert_int_equal(tti_gpu_stream_query(gpu, stream), TUTTI_AGAIN);
	atomic_store(&is_set, 1);
	assert_int_equal(tti_gpu_stream_wait(gpu, stream), TUTTI_OK);
	tti_gpu_stream_destroy(gpu, stream);
	assert_true(nothing_is_held());
}

static void memory_of_this_process_is_the_same_address(void **state)
{
	struct tti_gpu_memory *memory, *seen, *same;
	struct tti_gpu_name name;
	struct tti_gpu *other;
	uint8_t byte = 1;

	(void)state;
	assert_int_equal(tti_gpu_open(1, &other), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &memory), TUTTI_OK);
	assert_true(memory->nbytes >= NBYTES && memory->at % 256 == 0 && !memory->is_local);
	assert_int_equal(memory->share, is_ipc() ? TTI_GPU_BY_IPC : TTI_GPU_BY_FD);
	assert_int_equal(tti_gpu_read(gpu, &byte, memory->at + NBYTES - 1, 1), TUTTI_OK);
	assert_int_equal(byte, 0);
	assert_int_equal(tti_gpu_memory_export(memory, &name), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_import(other, &name, &seen), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_import(gpu, &name, &same), TUTTI_OK);
	assert_true(seen->at == memory->at && seen->is_local && seen->nbytes == memory->nbytes);
	assert_true(same->at == memory->at && same->is_local);
	byte = 77;
	assert_int_equal(tti_gpu_write(other, seen->at + 5, &byte, 1), TUTTI_OK);
	byte = 0;
	assert_int_equal(tti_gpu_read(gpu, &byte, memory->at + 5, 1), TUTTI_OK);
	assert_int_equal(byte, 77);
	tti_gpu_memory_free(same);
	tti_gpu_memory_free(seen);
	tti_gpu_memory_free(memory);
	tti_gpu_memory_free(NULL);
	tti_gpu_close(other);
	assert_true(nothing_is_held());
}

static void names_of_anything_else_are_refused(void **state)
{
	struct tti_gpu_memory *memory = (struct tti_gpu_memory *)&memory;
	struct tti_gpu_name name = { .bytes = { 1, 2, 3 } };

	(void)state;
	assert_int_equal(tti_gpu_memory_import(gpu, &name, &memory), TUTTI_EPROTO);
	assert_null(memory);
}

/* -- Addresses of the program ------------------------------------------------------ */

static void buffers_are_told_apart(void **state)
{
	struct tti_gpu_pointer pointer;
	struct tti_gpu *other;
	static char ordinary[64];
	uint64_t at, host_at;
	void *host;

	(void)state;
	at = program_alloc(gpu, NBYTES);
	assert_int_equal(tti_gpu_pinned_alloc(gpu, NBYTES, &host, &host_at), TUTTI_OK);
	assert_int_equal(
		tti_gpu_buffer(gpu, (void *)(uintptr_t)(at + 16), NBYTES - 16, "input", &pointer),
		TUTTI_OK);
	assert_int_equal(pointer.kind, TTI_GPU_DEVICE);
	assert_int_equal(pointer.ordinal, 0);
	assert_true(pointer.at == at + 16 && pointer.base == at && pointer.nbytes >= NBYTES);
	assert_true(pointer.has_ipc && !pointer.has_fd && pointer.id);
	assert_int_equal(tti_gpu_buffer(gpu, host, NBYTES, "input", &pointer), TUTTI_OK);
	assert_int_equal(pointer.kind, TTI_GPU_PINNED);
	assert_true(pointer.at == host_at && !pointer.has_ipc && !pointer.has_fd);

	assert_int_equal(tti_gpu_pointer(gpu, ordinary, &pointer), TUTTI_OK);
	assert_int_equal(pointer.kind, TTI_GPU_PAGEABLE);
	assert_int_equal(
		tti_gpu_buffer(gpu, ordinary, 64, "sendbuf of tutti_all_reduce()", &pointer),
		TUTTI_EINVAL);
	says("sendbuf of tutti_all_reduce()");
	says("ordinary memory of the host");
	says("cudaHostRegister()");
	assert_int_equal(
		tti_gpu_buffer(gpu, (void *)(uintptr_t)(at + 16), NBYTES, "output", &pointer),
		TUTTI_EINVAL);
	says("leaves its allocation");
	assert_int_equal(tti_gpu_open(1, &other), TUTTI_OK);
	assert_int_equal(tti_gpu_buffer(other, (void *)(uintptr_t)at, 16, "output", &pointer),
			 TUTTI_EINVAL);
	says("is memory of GPU 0, and the communicator's is GPU 1");
	tti_gpu_close(other);
	tti_gpu_pinned_free(gpu, host);
	program_free(gpu, at);
	assert_true(nothing_is_held());
}

/* -- Two processes ----------------------------------------------------------------- */

/* What the second process does: it takes the name from its input, writes its answer beside what it
 * reads, says so, and waits until it is told to end. */
static int other_process(const char *way)
{
	struct tti_gpu_memory *memory;
	struct tti_gpu_name name;
	uint8_t bytes[4], word;
	tutti_status status;
	int files;

	if (!strcmp(way, "socket"))
		tti_fault_set("gpu.pidfd:1");
	if (tti_gpu_open(2, &gpu) != TUTTI_OK ||
	    read(STDIN_FILENO, &name, sizeof(name)) != (ssize_t)sizeof(name))
		return 1;
	files = open_files();
	status = tti_gpu_memory_import(gpu, &name, &memory);
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s\n", tti_error_text());
		return status == TUTTI_EUNSUPPORTED ? 42 : 2;
	}
	if (memory->is_local || memory->is_far ||
	    tti_gpu_read(gpu, bytes, memory->at + 1000, sizeof(bytes)) != TUTTI_OK ||
	    memcmp(bytes, "ping", sizeof(bytes)) != 0 ||
	    tti_gpu_write(gpu, memory->at + NBYTES - 4, "pong", 4) != TUTTI_OK)
		return 3;
	if (write(STDOUT_FILENO, "w", 1) != 1 || read(STDIN_FILENO, &word, 1) != 1)
		return 4;
	tti_gpu_memory_free(memory);
	if (!nothing_is_held() || open_files() != files)
		return 5;
	tti_gpu_close(gpu);
	return 0;
}

struct other {
	pid_t pid;
	int to, from;
};

static struct other start(const char *way)
{
	struct other other;
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	other.pid = fork();
	if (!other.pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		execl("/proc/self/exe", "test_memory", way, (char *)NULL);
		_exit(127);
	}
	assert_true(other.pid > 0);
	close(in[0]);
	close(out[1]);
	other.to = in[1];
	other.from = out[0];
	return other;
}

static int end_of(struct other *other)
{
	int status;

	close(other->to);
	close(other->from);
	assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void exchange(struct tti_gpu_memory *memory, const char *way)
{
	struct other other = start(way);
	struct tti_gpu_name name;
	uint8_t word = 0, bytes[4];

	assert_int_equal(tti_gpu_write(gpu, memory->at + 1000, "ping", 4), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_export(memory, &name), TUTTI_OK);
	assert_int_equal(write(other.to, &name, sizeof(name)), sizeof(name));
	assert_int_equal(read(other.from, &word, 1), 1);
	assert_int_equal(tti_gpu_read(gpu, bytes, memory->at + NBYTES - 4, 4), TUTTI_OK);
	assert_memory_equal(bytes, "pong", 4);
	assert_int_equal(write(other.to, &word, 1), 1);
	assert_int_equal(end_of(&other), 0);
}

static void another_process_reaches_it(void **state)
{
	struct tti_gpu_memory *memory;
	const int files = open_files();

	(void)state;
	assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &memory), TUTTI_OK);
	exchange(memory, "any");
	exchange(memory, "socket");
	tti_gpu_memory_free(memory);
	assert_true(nothing_is_held());
	assert_int_equal(open_files(), files);
}

/* What cudaMalloc() gave has an older handle always. */
static void another_process_reaches_what_the_program_allocated(void **state)
{
	struct tti_gpu_memory *memory;
	uint64_t at;

	(void)state;
	at = program_alloc(gpu, NBYTES);
	assert_int_equal(tti_gpu_memory_wrap(gpu, at + 4096, &memory), TUTTI_OK);
	assert_true(memory->at == at && memory->share == TTI_GPU_BY_IPC);
	exchange(memory, "any");
	tti_gpu_memory_free(memory);
	program_free(gpu, at);

	/* And memory apart from its address a file descriptor, if it was asked for. */
	if (!is_ipc()) {
		struct tti_gpu_memory *own;

		assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &own), TUTTI_OK);
		assert_int_equal(tti_gpu_memory_wrap(gpu, own->at + 4096, &memory), TUTTI_OK);
		assert_true(memory->at == own->at && memory->share == TTI_GPU_BY_FD);
		assert_true(memory->nbytes == own->nbytes);
		exchange(memory, "socket");
		tti_gpu_memory_free(memory);
		tti_gpu_memory_free(own);
	}
	assert_true(nothing_is_held());
}

static void what_cannot_be_shared_is_not_wrapped(void **state)
{
	struct tti_gpu_memory *memory;
	uint64_t at;
	void *host;

	(void)state;
	assert_int_equal(tti_gpu_pinned_alloc(gpu, NBYTES, &host, &at), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_wrap(gpu, at, &memory), TUTTI_EUNSUPPORTED);
	says("cannot be shared");
	assert_null(memory);
	tti_gpu_pinned_free(gpu, host);
}

/* A name outlives its memory, and the process that had it. */
static void memory_that_is_gone_is_refused(void **state)
{
	struct tti_gpu_memory *memory, *keeps;
	struct tti_gpu_name name;
	struct other other;

	(void)state;
	if (is_ipc())
		skip(); /* CUDA's own handles: what it does then is its business */
	assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &memory), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &keeps), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_export(memory, &name), TUTTI_OK);
	tti_gpu_memory_free(memory);
	other = start("socket"); /* nobody listens any more */
	assert_int_equal(write(other.to, &name, sizeof(name)), sizeof(name));
	assert_int_equal(end_of(&other), 42);
	assert_int_equal(tti_gpu_memory_export(keeps, &name), TUTTI_OK);
	name.bytes[24]++; /* another key */
	other = start("socket");
	assert_int_equal(write(other.to, &name, sizeof(name)), sizeof(name));
	assert_int_equal(end_of(&other), 42);
	tti_gpu_memory_free(keeps);
	assert_true(nothing_is_held());
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pinned_memory_is_zeroed_and_in_reach),
		cmocka_unit_test(memory_is_made_and_freed_while_a_stream_is_busy),
		cmocka_unit_test(memory_of_this_process_is_the_same_address),
		cmocka_unit_test(names_of_anything_else_are_refused),
		cmocka_unit_test(buffers_are_told_apart),
		cmocka_unit_test(another_process_reaches_it),
		cmocka_unit_test(another_process_reaches_what_the_program_allocated),
		cmocka_unit_test(what_cannot_be_shared_is_not_wrapped),
		cmocka_unit_test(memory_that_is_gone_is_refused),
	};

	signal(SIGPIPE, SIG_IGN);
	if (argc > 1)
		return other_process(argv[1]);
	return cmocka_run_group_tests(tests, begin, end);
}
