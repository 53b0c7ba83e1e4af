/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that knows nothing of shared memory, for shared_malloc.sh: what malloc and fork promise, then
 * an all_reduce, of which it prints the algorithm. The exit code is the line of what was wrong. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tutti/inspect.h"
#include "tutti/tutti.h"

#define BYTES ((size_t)4 << 20)

#define MUST(condition) ((condition) ? (void)0 : _exit((__LINE__) % 250 + 1))

static bool is_all(const unsigned char *memory, size_t nbytes, unsigned char value)
{
	for (size_t i = 0; i < nbytes; i++)
		if (memory[i] != value)
			return false;
	return true;
}

/* What the compiler does not see through. */
static size_t hide(size_t value)
{
	__asm__("" : "+r"(value));
	return value;
}

static void as_realloc(void)
{
	unsigned char *memory = malloc(BYTES);

	MUST(memory);
	memset(memory, 7, BYTES);
	MUST(malloc_usable_size(memory) >= BYTES);
	memory = realloc(memory, 3 * BYTES);
	MUST(memory && is_all(memory, BYTES, 7));
	memory = realloc(memory, BYTES / 2);
	MUST(memory && is_all(memory, BYTES / 2, 7));
	MUST(!realloc(memory, hide(SIZE_MAX / 2)) && errno == ENOMEM);
	memory = realloc(memory, 100);
	MUST(memory && is_all(memory, 100, 7));
	memory = reallocarray(memory, 2, BYTES / 2);
	MUST(memory && is_all(memory, 100, 7));
	memset(memory, 7, BYTES);
	errno = 77;
	free(memory);
	MUST(errno == 77);
	memory = realloc(NULL, BYTES);
	MUST(memory && !realloc(memory, hide(0)));
}

static void as_calloc(void)
{
	unsigned char *memory = malloc(BYTES);

	memset(memory, 7, BYTES);
	free(memory);
	/* Dirty pages are given out again. */
	memory = calloc(2, BYTES / 2);
	MUST(memory && is_all(memory, BYTES, 0));
	free(memory);
	errno = 0;
	MUST(!calloc(hide(SIZE_MAX / 2), 3) && errno == ENOMEM);
	MUST(!malloc(hide(SIZE_MAX)) && errno == ENOMEM);
}

static void as_aligned(void)
{
	void *memory = NULL;

	for (size_t align = 16; align <= (size_t)8 << 20; align *= 2) {
		MUST(!posix_memalign(&memory, align, BYTES) && (size_t)memory % align == 0);
		memset(memory, 9, BYTES);
		if (align >= 65536) {
			MUST(!madvise(memory, BYTES / 2, MADV_DONTNEED));
			MUST(is_all(memory, BYTES / 2, 0));
			MUST(is_all((unsigned char *)memory + BYTES / 2, BYTES / 2, 9));
			MUST(madvise((char *)memory + 1, BYTES, MADV_DONTNEED) && errno == EINVAL);
		}
		free(memory);
		memory = aligned_alloc(align, BYTES);
		MUST(memory && (size_t)memory % align == 0);
		free(memory);
	}
	MUST(posix_memalign(&memory, hide(24), BYTES) == EINVAL);
	MUST(posix_memalign(&memory, hide(4), BYTES) == EINVAL);
	MUST(posix_memalign(&memory, hide(16), hide(SIZE_MAX / 2)) == ENOMEM);
	memory = valloc(BYTES);
	MUST(memory && (size_t)memory % (size_t)sysconf(_SC_PAGESIZE) == 0);
	free(memory);
}

/* Memory that was locked keeps its pages: it is cleared, and stays what other ranks address. */
static int *get_locked(void)
{
	int *memory = malloc(BYTES);

	memset(memory, 7, BYTES);
	if (mlock(memory, BYTES))
		fprintf(stderr, "mlock: %s\n", strerror(errno));
	free(memory);
	memory = calloc(1, BYTES);
	MUST(memory && is_all((unsigned char *)memory, BYTES, 0));
	return memory;
}

static void *use_much(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	unsigned char *held[16] = { 0 };
	size_t nbytes[16] = { 0 };

	for (int step = 0; step < 3000; step++) {
		const size_t i = (size_t)rand_r(&seed) % 16;
		const size_t next = 1 + (size_t)rand_r(&seed) % 500000;

		MUST(!held[i] || (held[i][0] == i && held[i][nbytes[i] - 1] == i));
		if (step % 3) {
			held[i] = realloc(held[i], next);
		} else {
			free(held[i]);
			held[i] = calloc(1, next);
			MUST(held[i] && !held[i][0] && !held[i][next - 1]);
		}
		MUST(held[i]);
		nbytes[i] = next;
		memset(held[i], (int)i, next);
	}
	for (int i = 0; i < 16; i++)
		free(held[i]);
	return NULL;
}

static void by_threads(void)
{
	pthread_t threads[4];

	for (size_t i = 0; i < 4; i++)
		MUST(!pthread_create(&threads[i], NULL, use_much, (void *)(i + 1)));
	for (size_t i = 0; i < 4; i++)
		MUST(!pthread_join(threads[i], NULL));
}

static void in_child(unsigned char *memory, int depth)
{
	unsigned char *own;

	MUST(is_all(memory, BYTES, 3));
	memory[5] = 77;
	own = calloc(1, BYTES);
	MUST(own && is_all(own, BYTES, 0));
	memset(own, 3, BYTES);
	if (depth > 0) {
		const pid_t pid = fork();
		int status = -1;

		if (pid == 0) {
			in_child(own, depth - 1);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid && status == 0);
		MUST(is_all(own, BYTES, 3));
	}
	memory = realloc(memory, 2 * BYTES);
	MUST(memory && memory[5] == 77 && is_all(memory + 6, BYTES - 6, 3));
	free(own);
	free(memory);
	own = calloc(1, BYTES);
	MUST(own && is_all(own, BYTES, 0));
	free(own);
}

/* A library's handler of forks may allocate. */
static void allocate(void)
{
	void *memory = malloc(BYTES);

	MUST(memory);
	free(memory);
}

/* Before all constructors, so that it runs after the handlers that these register. */
static void watch_forks(void)
{
	(void)pthread_atfork(allocate, NULL, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = watch_forks;

/* Neither sees what the other one writes after the fork. */
static void as_fork(void)
{
	unsigned char *memory = malloc(BYTES);
	int go[2], status = -1;
	pid_t pid;

	MUST(memory && !pipe(go));
	memset(memory, 3, BYTES);

	pid = fork();
	if (pid == 0) {
		MUST(read(go[0], &status, 1) == 1);
		in_child(memory, 2);
		_exit(0);
	}
	memset(memory, 4, BYTES);
	MUST(write(go[1], "x", 1) == 1);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(is_all(memory, BYTES, 4));
	free(memory);
}

int main(void)
{
	const size_t count = BYTES / sizeof(int);
	struct tutti_call_report report;
	tutti_comm_t comm = NULL;
	int *send, *recv = malloc(BYTES), rank = -1, n = 0;

	MUST(tutti_comm_init_env(&comm, NULL) == TUTTI_OK);
	as_realloc();
	as_calloc();
	as_aligned();
	by_threads();
	send = get_locked();
	as_fork();
	MUST(tutti_comm_rank(comm, &rank) == TUTTI_OK && tutti_comm_count(comm, &n) == TUTTI_OK);
	for (size_t i = 0; i < count; i++)
		send[i] = rank + (int)i;
	MUST(tutti_all_reduce(send, recv, count, TUTTI_INT32, TUTTI_SUM, comm, NULL) == TUTTI_OK);
	for (size_t i = 0; i < count; i++)
		MUST(recv[i] == n * (int)i + n * (n - 1) / 2);
	MUST(tutti_comm_last_call(comm, &report) == TUTTI_OK);
	printf("%s\n", report.algorithm);
	free(send);
	free(recv);
	MUST(tutti_comm_destroy(comm) == TUTTI_OK);
	return 0;
}
