/* SPDX-License-Identifier: BSD-3-Clause */
#include "waits.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/kernels_host.h"
#include "runtime.h"
#include "util/thread.h"

/* Seconds that a kernel runs on for a call which has not returned, and that the call may then take.
 * No call here that does not wait takes nearly as long. */
#define PATIENCE    2
#define LONG_ENOUGH 60

extern char **environ;

/* -- A kernel that runs ------------------------------------------------------------------- */

/* In pinned memory, as the kernel has it: 64 bytes apart. */
struct words {
	_Alignas(64) atomic_uint end;
	_Alignas(64) atomic_uint has_begun;
};

struct spin {
	struct tti_gpu *gpu;
	void *stream, *function;
	struct words *words;
	uint64_t at;
};

/* For the driver on host memory. Its pinned memory is where its address says. */
static int spin_on_host(void **args, const unsigned grid[3], const unsigned block[3],
			size_t shared_bytes)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	struct words *words;

	(void)grid, (void)block, (void)shared_bytes;
	memcpy(&words, args[0], sizeof(words));
	atomic_store(&words->has_begun, 1);
	while (!atomic_load(&words->end))
		(void)nanosleep(&nap, NULL);
	return 0;
}

static int nothing_on_host(void **args, const unsigned grid[3], const unsigned block[3],
			   size_t shared_bytes)
{
	(void)args, (void)grid, (void)block, (void)shared_bytes;
	return 0;
}

static void register_on_host(const struct tti_gpu_driver *driver)
{
	static const size_t arg_bytes[] = { sizeof(uint64_t) };
	struct tti_host_driver host = { 0 };
	void *const symbol = tti_gpu_driver_symbol(driver, "tti_cuda_kernel_register");

	memcpy(&host.add, &symbol, sizeof(symbol));
	if (host.add(NULL, WAITS_SPIN, spin_on_host, arg_bytes, 1) ||
	    host.add(NULL, WAITS_NOTHING, nothing_on_host, NULL, 0) ||
	    host.add(NULL, WAITS_FIRST, nothing_on_host, NULL, 0))
		give_up("the driver on host memory takes no kernels\n");
}

static void need(int rc, const char *what)
{
	if (rc)
		give_up("%s: error %d of the driver\n", what, rc);
}

static void spin_begin(const struct spin *spin)
{
	const struct tti_cuda_functions *const call = &spin->gpu->driver->call;
	const double until = now_us() + LONG_ENOUGH * 1e6;
	uint64_t at = spin->at;

	atomic_store(&spin->words->end, 0);
	atomic_store(&spin->words->has_begun, 0);
	need(call->context_set(spin->gpu->context), "cuCtxSetCurrent()");
	need(call->launch(spin->function, 1, 1, 1, 1, 1, 1, 0, spin->stream, (void *[]){ &at },
			  NULL),
	     "cuLaunchKernel()");
	while (!atomic_load(&spin->words->has_begun))
		if (now_us() > until)
			give_up("the kernel that is to run does not begin\n");
}

static void spin_wait(const struct spin *spin)
{
	need(spin->gpu->driver->call.stream_wait(spin->stream), "the kernel that ran");
}

static void spin_open(struct spin *spin, struct tti_gpu *gpu, const void *image)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	void *library, *kernel, *host;

	spin->gpu = gpu;
	need(call->context_set(gpu->context), "cuCtxSetCurrent()");
	need(call->library_load(&library, image, NULL, NULL, 0, NULL, NULL, 0),
	     "cuLibraryLoadData()");
	need(call->library_kernel(&kernel, library, WAITS_SPIN), "cuLibraryGetKernel()");
	need(call->kernel_function(&spin->function, kernel), "cuKernelGetFunction()");
	need(call->stream_create(&spin->stream, TTI_CUDA_STREAM_NON_BLOCKING, 0),
	     "cuStreamCreate()");
	need(call->host_alloc(&host, sizeof(struct words),
			      TTI_CUDA_HOST_PORTABLE | TTI_CUDA_HOST_MAPPED),
	     "cuMemHostAlloc()");
	need(call->host_address(&spin->at, host, 0), "cuMemHostGetDevicePointer()");
	spin->words = host;
	spin_begin(spin);
	atomic_store(&spin->words->end, 1);
	spin_wait(spin);
}

/* -- One call ---------------------------------------------------------------------------------- */

/* A call and the end of what it has put into its stream, on a thread of their own. */
struct trial {
	struct waits *waits;
	const struct waits_call *call;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int nended;      /* of the two */
	double ended[2]; /* when */
	int rc;
};

static void *make_call(void *arg)
{
	struct trial *trial = arg;
	struct waits *w = trial->waits;
	int rc = w->call->context_set(w->gpu->context);

	for (int i = 0; i < 2; i++) {
		if (!rc && i == 0)
			rc = trial->call->make(w);
		else if (!rc && trial->call->in_stream)
			rc = w->call->stream_wait(w->stream);
		pthread_mutex_lock(&trial->lock);
		trial->rc = rc == TTI_CUDA_NOT_READY ? 0 : rc;
		trial->ended[i] = now_us();
		trial->nended++;
		pthread_cond_signal(&trial->cond);
		pthread_mutex_unlock(&trial->lock);
	}
	return NULL;
}

/* Whether `n` have ended, at the latest after `seconds`. */
static bool await(struct trial *trial, int n, int seconds)
{
	const double until = now_us() + seconds * 1e6;
	bool good;

	pthread_mutex_lock(&trial->lock);
	while (trial->nended < n && now_us() < until)
		tti_cond_wait_until(&trial->cond, &trial->lock, (int64_t)(until * 1e3));
	good = trial->nended >= n;
	pthread_mutex_unlock(&trial->lock);
	return good;
}

static void say(const struct trial *trial, const char *suffix, bool returned, double us)
{
	if (trial->rc)
		printf("%s | %s%s | fails | error %d\n", trial->call->tutti, trial->call->name,
		       suffix, trial->rc);
	else
		printf("%s | %s%s | %s | %.1f us\n", trial->call->tutti, trial->call->name, suffix,
		       returned ? "returns while a kernel runs" : "waits until kernels end", us);
	(void)fflush(stdout);
}

/* Times are those of the call, or what it took after the end of the kernel for which it waited. */
static bool try_call(struct waits *w, const struct waits_call *call, const struct spin *spin,
		     const char *where)
{
	struct trial trial = { .waits = w, .call = call, .lock = PTHREAD_MUTEX_INITIALIZER };
	const int nparts = call->in_stream ? 2 : 1;
	double begun, released;
	bool returned[2];
	pthread_t thread;
	char suffix[80];

	tti_cond_init(&trial.cond);
	spin_begin(spin);
	begun = now_us();
	if (pthread_create(&thread, NULL, make_call, &trial))
		give_up("no thread for %s\n", call->name);
	for (int i = 0; i < 2; i++)
		returned[i] = (i == 0 || returned[0]) && await(&trial, i + 1, PATIENCE);
	released = now_us();
	atomic_store(&spin->words->end, 1);
	if (!await(&trial, 2, LONG_ENOUGH))
		give_up("%s does not return although the kernel has been ended\n", call->name);
	(void)pthread_join(thread, NULL);
	pthread_cond_destroy(&trial.cond);
	spin_wait(spin);
	for (int i = 0; i < nparts; i++) {
		(void)snprintf(suffix, sizeof(suffix), "%s%s", i ? ", and its end" : "", where);
		say(&trial, suffix, returned[i], trial.ended[i] - (returned[i] ? begun : released));
	}
	return trial.rc == 0;
}

/* -- Memory of another process ------------------------------------------------------------------ */

/* What the other process does: it lends until its input ends. */
static int lend(void)
{
	struct tti_cuda_ipc handle;
	struct tti_gpu *gpu;
	uint64_t at;
	char end;

	if (tti_gpu_open(0, &gpu) != TUTTI_OK)
		return 1;
	if (gpu->driver->call.context_set(gpu->context) ||
	    gpu->driver->call.alloc(&at, WAITS_BYTES) || gpu->driver->call.ipc_get(&handle, at) ||
	    write(STDOUT_FILENO, &handle, sizeof(handle)) != sizeof(handle))
		return 1;
	return read(STDIN_FILENO, &end, 1) != 0;
}

/* The end of a pipe that ends the other process; without memory its handle is of nothing, and the
 * calls that need it fail. */
static int borrow(struct waits *w, pid_t *pid)
{
	char *const argv[] = { "waits", "lend", NULL };
	posix_spawn_file_actions_t actions;
	int out[2], in[2];

	if (pipe(out) || pipe(in) || posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, out[0], STDIN_FILENO) ||
	    posix_spawn_file_actions_adddup2(&actions, in[1], STDOUT_FILENO))
		give_up("no pipes\n");
	for (int i = 0; i < 2; i++)
		if (posix_spawn_file_actions_addclose(&actions, out[i]) ||
		    posix_spawn_file_actions_addclose(&actions, in[i]))
			give_up("no pipes\n");
	if (posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, environ))
		give_up("no second process\n");
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(out[0]);
	(void)close(in[1]);
	if (read(in[0], &w->lent, sizeof(w->lent)) != sizeof(w->lent))
		(void)fprintf(stderr, "the other process lends no memory\n");
	(void)close(in[0]);
	return out[1];
}

/* -- All -------------------------------------------------------------------------------------- */

static bool is_wanted(const struct waits_call *call, char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (strstr(call->name, names[i]))
			return true;
	return n == 0;
}

/* Whether no call has failed. */
static bool try_all(struct waits *w, const struct spin *spin, const char *where, char **names,
		    int n)
{
	bool good = true;

	for (size_t i = 0; i < waits_ncalls; i++) {
		const struct waits_call *const call = &waits_calls[i];

		if (call->needs_other && !w->other)
			continue;
		if (is_wanted(call, names, n)) {
			good &= try_call(w, call, spin, where);
			continue;
		}
		if (w->call->context_set(w->gpu->context) || call->make(w) ||
		    w->call->stream_wait(w->stream)) {
			(void)fprintf(stderr, "%s fails\n", call->name);
			good = false;
		}
	}
	return good;
}

int main(int argc, char **argv)
{
	struct spin here = { 0 }, there = { 0 };
	struct waits w = { .fd = -1 };
	pid_t lender = -1;
	int status, end;
	bool good;

	if (argc == 2 && !strcmp(argv[1], "lend"))
		return lend();
	end = borrow(&w, &lender);
	waits_open(&w);
	if (tti_gpu_driver_is_host(w.gpu->driver))
		register_on_host(w.gpu->driver);
	printf("device | %s | %d.%d | CUDA\n", w.gpu->facts.name, w.gpu->driver->version / 1000,
	       w.gpu->driver->version % 1000 / 10);
	spin_open(&here, w.gpu, w.image);
	good = try_all(&w, &here, "", argv + 1, argc - 1);
	if (w.other) {
		spin_open(&there, w.other, w.image);
		good &= try_all(&w, &there, ", the kernel on another GPU", argv + 1, argc - 1);
	} else {
		(void)fprintf(stderr, "no second GPU that the first reaches: left out\n");
	}
	(void)close(end);
	(void)waitpid(lender, &status, 0);
	return good ? 0 : 1;
}
