/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's CUDA runtime and driver: how a stream is held without a waiting thread of CUDA, how
 * memory is shared by host and GPUs, and what kind of memory an address is.
 *
 * Questions to the driver do not change the error that cudaGetLastError() gives the program. */
#include "binding.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef int (*register_fn)(void *memory, size_t nbytes, unsigned flags);
typedef int (*unregister_fn)(void *memory);
typedef int (*last_error_fn)(void);
typedef int (*wait_value_fn)(cudaStream_t stream, unsigned long long address, uint64_t value,
			     unsigned flags);
typedef int (*look_fn)(unsigned n, int *attributes, void **values, unsigned long long address);
typedef int (*get_device_fn)(int *device, int ordinal);
typedef int (*get_attribute_fn)(int *value, int attribute, int device);
typedef int (*reach_fn)(unsigned long long *address, void *memory, unsigned flags);
typedef int (*get_free_fn)(size_t *nfree, size_t *nbytes);
typedef int (*get_count_fn)(int *out);
typedef int (*get_state_fn)(int device, unsigned *flags, int *is_active);

/* Found once, and kept. */
static struct {
	pthread_once_t once;
	register_fn register_memory;
	unregister_fn unregister_memory;
	last_error_fn last_error;
	wait_value_fn wait_value;
	look_fn look;
	get_device_fn get_device;
	get_attribute_fn get_attribute;
	reach_fn reach;
	get_free_fn get_free;
} cuda = { .once = PTHREAD_ONCE_INIT };

/* Numbers of CUDA. */
#define HOST_REGISTER_BOTH        3 /* portable, mapped */
#define WAIT_UNTIL_AT_LEAST       0
#define POINTER_MEMORY_TYPE       2
#define POINTER_IS_MANAGED        8
#define MEMORY_OF_HOST            1
#define MEMORY_OF_DEVICE          2
#define DEVICE_CONCURRENT_MANAGED 89
#define DEVICE_64_BIT_OPERATIONS  122
#define NO_MEMORY                 2
#define UNCORRECTABLE             214 /* of its memory */
#define FIRST_OF_KERNELS          700 /* what a kernel did, or met */
#define LAST_OF_KERNELS           720
#define UNKNOWN                   999
#define NOT_SUPPORTED             801
#define ALREADY_REGISTERED        712

static void *find_in_driver(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);
	void *library = symbol ? NULL : dlopen("libcuda.so.1", RTLD_LAZY);

	return library ? dlsym(library, name) : symbol;
}

static void find_all(void)
{
	cuda.register_memory = (register_fn)tti_nccl_find_symbol("cudaHostRegister");
	cuda.unregister_memory = (unregister_fn)tti_nccl_find_symbol("cudaHostUnregister");
	cuda.last_error = (last_error_fn)tti_nccl_find_symbol("cudaGetLastError");
	cuda.wait_value = (wait_value_fn)find_in_driver("cuStreamWaitValue64_v2");
	cuda.look = (look_fn)find_in_driver("cuPointerGetAttributes");
	cuda.get_device = (get_device_fn)find_in_driver("cuDeviceGet");
	cuda.get_attribute = (get_attribute_fn)find_in_driver("cuDeviceGetAttribute");
	cuda.reach = (reach_fn)find_in_driver("cuMemHostGetDevicePointer_v2");
	cuda.get_free = (get_free_fn)find_in_driver("cuMemGetInfo_v2");
}

static void find(void)
{
	(void)pthread_once(&cuda.once, find_all);
}

/* 0, too, where it cannot be asked. */
static int get_attribute(int device, int attribute)
{
	int handle, value = 0;

	if (!cuda.get_device || !cuda.get_attribute || cuda.get_device(&handle, device) != 0 ||
	    cuda.get_attribute(&value, attribute, handle) != 0)
		return 0;
	return value;
}

/* Any function that asks the GPU returns an error that the GPU does not recover from. */
bool tti_nccl_gpu_has_failed(void)
{
	size_t nfree, nbytes;
	int error;

	find();
	error = cuda.get_free ? cuda.get_free(&nfree, &nbytes) : 0;
	return error == UNCORRECTABLE || error == UNKNOWN ||
	       (error >= FIRST_OF_KERNELS && error <= LAST_OF_KERNELS);
}

bool tti_nccl_gpu_is_in_use(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	get_count_fn get_count;
	get_state_fn get_state;
	int n = 0, is_used = 0;
	unsigned flags;

	if (!library)
		return false;
	get_count = (get_count_fn)dlsym(library, "cuDeviceGetCount");
	get_state = (get_state_fn)dlsym(library, "cuDevicePrimaryCtxGetState");
	if (get_count && get_state && !dlsym(library, "tti_cuda_stream_hold") && get_count(&n) == 0)
		for (int device = 0; device < n && !is_used; device++)
			if (get_state(device, &flags, &is_used) != 0)
				is_used = 0;
	(void)dlclose(library); /* the program has it still */
	return is_used;
}

/* -- Memory ------------------------------------------------------------------------ */

struct kind {
	unsigned type; /* 0: CUDA does not know it */
	unsigned is_managed;
};

static struct kind get_kind(const void *address)
{
	int attributes[] = { POINTER_MEMORY_TYPE, POINTER_IS_MANAGED };
	struct kind kind = { 0, 0 };
	void *values[] = { &kind.type, &kind.is_managed };

	if (!cuda.look || cuda.look(2, attributes, values, (uintptr_t)address) != 0)
		return (struct kind){ 0, 0 };
	return kind;
}

ncclResult_t tti_nccl_look_at(ncclComm_t comm, const char *call, const char *argument,
			      const void *address)
{
	struct kind kind;

	find();
	kind = get_kind(address);
	if (kind.is_managed) {
		if (get_attribute(comm->device, DEVICE_CONCURRENT_MANAGED))
			return ncclSuccess;
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "%s: %s, %p, is managed memory, which the host cannot use "
				     "while GPU %d runs (concurrentManagedAccess is 0): allocate "
				     "it by cudaMallocHost() or ncclMemAlloc()",
				     call, argument, address, comm->device);
	}
	if (kind.type != MEMORY_OF_DEVICE)
		return ncclSuccess;
	return tti_nccl_fail(
		comm, ncclInvalidArgument,
		"%s: %s, %p, is memory of a GPU, which Tutti does not move yet: "
		"allocate it by cudaMallocHost(), cudaMallocManaged() or ncclMemAlloc()",
		call, argument, address);
}

/* Returns an error of CUDA, which does not become the last one of the program, and the function
 * that gave it. */
static int make_reachable(void *memory, size_t nbytes, const char **function)
{
	unsigned long long address = 0;
	int error;

	*function = "cudaHostRegister()";
	if (!cuda.register_memory || !cuda.unregister_memory || !cuda.reach)
		return NOT_SUPPORTED;
	error = cuda.register_memory(memory, nbytes, HOST_REGISTER_BOTH);
	if (error) {
		if (cuda.last_error)
			(void)cuda.last_error();
		return error;
	}
	*function = "cuMemHostGetDevicePointer()";
	error = cuda.reach(&address, memory, 0);
	if (!error && address != (uintptr_t)memory)
		error = NOT_SUPPORTED;
	if (error)
		(void)cuda.unregister_memory(memory);
	return error;
}

int tti_nccl_adopt(void *memory, size_t nbytes, const char **function)
{
	if (tti_nccl_find_runtime() && tti_nccl_has_gpus()) {
		find();
		return make_reachable(memory, nbytes, function);
	}
	*function = "the CUDA runtime";
	return tti_nccl_runtime_adopt(memory, nbytes);
}

/* Memory that was allocated before there was a runtime is not registered. */
void tti_nccl_disown(void *memory)
{
	if (!memory)
		return;
	if (!tti_nccl_has_gpus()) {
		tti_nccl_runtime_disown(memory);
		return;
	}
	find();
	if (cuda.unregister_memory && get_kind(memory).type == MEMORY_OF_HOST)
		(void)cuda.unregister_memory(memory);
}

/* -- Counters ---------------------------------------------------------------------- */

/* Something that was queued. */
struct turn {
	struct turn *next;
	struct tti_nccl_counter *counter;
	void (*fn)(void *);
	void *arg;
	bool is_over; /* fn was called, or never will be */
	bool has_come, is_pushed;
};

/* Each counter has cache lines of its own. It is never freed and never goes back: a GPU may still
 * look at it when its stream is gone, and must find that all it waits for is done. */
struct tti_nccl_counter {
	_Alignas(64) _Atomic uint64_t done; /* what the GPU looks at */
	uint64_t npushed;                   /* under `order`, as what is queued */
	pthread_mutex_t order;
	struct tti_nccl_counter *next; /* that is free */
	pthread_mutex_t lock;          /* of what follows; CUDA is not called meanwhile */
	struct turn *first, **end;     /* not over */
};

/* All counters are in one registration, because registering may wait for all GPUs. So many are
 * enough for any usual process. */
#define COUNTERS 511

struct counters {
	struct counters *next;
	struct tti_nccl_counter list[COUNTERS];
};

static struct {
	pthread_mutex_t lock;
	struct counters *first;
	struct tti_nccl_counter *free;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Shared memory, so that this process keeps the pages that the GPU looks at after a fork(). Under
 * the lock. Returns an error of CUDA. */
static int add_counters(const char **function)
{
	struct counters *counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int error;

	*function = "mmap()";
	if (counters == MAP_FAILED)
		return NO_MEMORY;
	error = make_reachable(counters, sizeof(*counters), function);
	if (error) {
		(void)munmap(counters, sizeof(*counters));
		return error;
	}
	counters->next = all.first;
	all.first = counters;
	for (size_t i = COUNTERS; i-- > 0;) {
		struct tti_nccl_counter *counter = &counters->list[i];

		(void)pthread_mutex_init(&counter->order, NULL);
		(void)pthread_mutex_init(&counter->lock, NULL);
		counter->end = &counter->first;
		counter->next = all.free;
		all.free = counter;
	}
	return 0;
}

/* cudaDeviceReset() ends registrations, but not the memory. Under the lock. Returns an error of
 * CUDA. */
static int renew_counters(const char **function)
{
	int error = 0;

	for (struct counters *counters = all.first; counters && !error; counters = counters->next) {
		if (get_kind(counters).type == MEMORY_OF_HOST)
			continue;
		error = make_reachable(counters, sizeof(*counters), function);
		if (error == ALREADY_REGISTERED)
			error = 0;
	}
	return error;
}

void tti_nccl_gpu_prepare(void)
{
	const char *function;

	find();
	pthread_mutex_lock(&all.lock);
	(void)(all.first ? renew_counters(&function) : add_counters(&function));
	pthread_mutex_unlock(&all.lock);
}

ncclResult_t tti_nccl_counter_take(ncclComm_t comm, struct tti_nccl_counter **out)
{
	const char *function = "";
	int error;

	find();
	if (!cuda.wait_value || !get_attribute(comm->device, DEVICE_64_BIT_OPERATIONS))
		return tti_nccl_fail(
			comm, ncclInvalidUsage,
			"a stream of device %d cannot wait for the host: %s. Tutti needs "
			"that with any CUDA runtime but its own",
			comm->device,
			cuda.wait_value ? "it has no 64-bit memory operations of streams"
					: "the driver has no cuStreamWaitValue64()");
	pthread_mutex_lock(&all.lock);
	error = renew_counters(&function);
	if (!error && !all.free)
		error = add_counters(&function);
	*out = error ? NULL : all.free;
	if (*out)
		all.free = (*out)->next;
	pthread_mutex_unlock(&all.lock);
	if (error)
		return tti_nccl_fail(comm, ncclUnhandledCudaError,
				     "%s gave error %d for the counters of streams", function,
				     error);
	return ncclSuccess;
}

void tti_nccl_counter_give_back(struct tti_nccl_counter *counter)
{
	if (!counter)
		return;
	pthread_mutex_lock(&all.lock);
	counter->next = all.free;
	all.free = counter;
	pthread_mutex_unlock(&all.lock);
}

void tti_nccl_counter_release(struct tti_nccl_counter *counter)
{
	(void)atomic_fetch_add_explicit(&counter->done, 1, memory_order_release);
}

/* -- Turns of a stream --------------------------------------------------------------- */

static void append(struct turn *turn)
{
	struct tti_nccl_counter *counter = turn->counter;

	pthread_mutex_lock(&counter->lock);
	*counter->end = turn;
	counter->end = &turn->next;
	pthread_mutex_unlock(&counter->lock);
}

/* False: it is over already. Under the lock. */
static bool set_over(struct turn *turn)
{
	struct tti_nccl_counter *counter = turn->counter;
	struct turn **at = &counter->first;

	if (turn->is_over)
		return false;
	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	if (!*at)
		counter->end = at;
	turn->is_over = true;
	return true;
}

/* Runs on a thread of CUDA. The last user of the turn is this function or push(). */
static void come(void *arg)
{
	struct turn *turn = arg;
	struct tti_nccl_counter *counter = turn->counter;
	void (*const fn)(void *) = turn->fn;
	void *const fn_arg = turn->arg;
	bool is_called, is_last;

	pthread_mutex_lock(&counter->lock);
	is_called = set_over(turn);
	turn->has_come = true;
	is_last = turn->is_pushed;
	pthread_mutex_unlock(&counter->lock);
	if (is_last)
		free(turn);
	if (is_called)
		fn(fn_arg);
}

void tti_nccl_counter_drain(struct tti_nccl_counter *counter)
{
	pthread_mutex_lock(&counter->lock);
	while (counter->first) {
		struct turn *turn = counter->first;

		(void)set_over(turn);
		turn->fn(turn->arg);
	}
	pthread_mutex_unlock(&counter->lock);
}

/* Note what became of a turn. is_launched: it may still come. */
static void settle(struct turn *turn, bool is_launched, struct tti_nccl_trouble *out)
{
	struct tti_nccl_counter *counter = turn->counter;
	bool is_last;

	pthread_mutex_lock(&counter->lock);
	/* If the turn is over by now, it is too late to refuse it. */
	out->is_made = !out->error || !set_over(turn);
	turn->is_pushed = true;
	is_last = !is_launched || turn->has_come;
	pthread_mutex_unlock(&counter->lock);
	if (out->is_made)
		counter->npushed++;
	if (is_last)
		free(turn);
}

void tti_nccl_counter_push(struct tti_nccl_counter *counter, cudaStream_t stream,
			   tti_nccl_launch_fn launch, void (*fn)(void *), void *arg,
			   struct tti_nccl_trouble *out)
{
	struct turn *turn = calloc(1, sizeof(*turn));
	bool is_launched;

	*out = (struct tti_nccl_trouble){ "cudaLaunchHostFunc", NO_MEMORY, false };
	if (!turn)
		return;
	*turn = (struct turn){ .counter = counter, .fn = fn, .arg = arg };
	pthread_mutex_lock(&counter->order);
	append(turn);
	out->error = launch(stream, come, turn);
	is_launched = !out->error;
	if (is_launched) {
		out->function = "cuStreamWaitValue64";
		out->error = cuda.wait_value(stream, (uintptr_t)&counter->done,
					     counter->npushed + 1, WAIT_UNTIL_AT_LEAST);
	}
	settle(turn, is_launched, out);
	pthread_mutex_unlock(&counter->order);
}
