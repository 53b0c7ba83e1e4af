/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl/fake_cudart.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES        8
#define FAILED         999
#define NOT_A_VALUE    1
#define NOT_REGISTERED 713

#define API __attribute__((visibility("default")))

/* A function that is called, or (NULL) a value that is waited for. */
struct entry {
	struct entry *next;
	void (*fn)(void *);
	void *arg;
	_Atomic uint64_t *at;
	uint64_t value;
};

/* `lock` guards the rest. */
struct CUstream_st {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct entry *first, **end;
	bool busy, closing;
	int called;
	_Atomic int is_captured;
};

struct CUevent_st {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int recorded, happened;
};

static struct {
	pthread_mutex_t lock;
	struct CUstream_st *of_device[DEVICES];
} defaults = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic int refused[FAKE_REFUSED], failed;
static _Thread_local int current, last_error;
static _Thread_local struct CUstream_st *of_thread[DEVICES];

/* -- Streams --------------------------------------------------------------------------------- */

/* The thread that calls host functions: one at a time, whichever stream it is of. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_once_t once;
	struct entry *entry;
} caller = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .changed = PTHREAD_COND_INITIALIZER,
	     .once = PTHREAD_ONCE_INIT };

static void *call_all(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&caller.lock);
	for (;;) {
		struct entry *entry = caller.entry;

		if (!entry) {
			pthread_cond_wait(&caller.changed, &caller.lock);
			continue;
		}
		pthread_mutex_unlock(&caller.lock);
		entry->fn(entry->arg);
		pthread_mutex_lock(&caller.lock);
		caller.entry = NULL;
		pthread_cond_broadcast(&caller.changed);
	}
	return NULL;
}

static void start_caller(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call_all, NULL) == 0)
		(void)pthread_detach(thread);
}

static void let_call(struct entry *entry)
{
	(void)pthread_once(&caller.once, start_caller);
	pthread_mutex_lock(&caller.lock);
	while (caller.entry)
		pthread_cond_wait(&caller.changed, &caller.lock);
	caller.entry = entry;
	pthread_cond_broadcast(&caller.changed);
	while (caller.entry == entry)
		pthread_cond_wait(&caller.changed, &caller.lock);
	pthread_mutex_unlock(&caller.lock);
}

static void run(struct entry *entry)
{
	if (entry->fn)
		let_call(entry);
	else
		while ((int64_t)(atomic_load(entry->at) - entry->value) < 0)
			usleep(20);
	free(entry);
}

static void *serve(void *self)
{
	struct CUstream_st *stream = self;
	bool is_call;

	pthread_mutex_lock(&stream->lock);
	for (;;) {
		struct entry *entry = atomic_load(&failed) ? NULL : stream->first;

		if (!entry && stream->closing)
			break;
		if (!entry) {
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		stream->first = entry->next;
		stream->busy = true;
		pthread_mutex_unlock(&stream->lock);
		is_call = entry->fn != NULL;
		run(entry);
		pthread_mutex_lock(&stream->lock);
		stream->busy = false;
		stream->called += is_call;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

API int cudaStreamCreate(cudaStream_t *out)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return FAILED;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	if (pthread_create(&stream->thread, NULL, serve, stream) != 0) {
		free(stream);
		return FAILED;
	}
	*out = stream;
	return 0;
}

API int cudaStreamDestroy(cudaStream_t stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	free(stream);
	return 0;
}

/* Default streams stay until the process ends. */
static struct CUstream_st *resolve(cudaStream_t stream)
{
	struct CUstream_st **at = &of_thread[current];

	if ((uintptr_t)stream > 2)
		return stream;
	pthread_mutex_lock(&defaults.lock);
	if ((uintptr_t)stream < 2)
		at = &defaults.of_device[current];
	if (!*at && cudaStreamCreate(at) != 0)
		*at = NULL;
	stream = *at;
	pthread_mutex_unlock(&defaults.lock);
	return stream;
}

API int cudaGetDevice(int *device)
{
	*device = current;
	return 0;
}

API int cudaSetDevice(int device)
{
	if (device < 0 || device >= DEVICES)
		return NOT_A_VALUE;
	current = device;
	return 0;
}

static int queue(cudaStream_t given, const struct entry *what)
{
	struct CUstream_st *stream = resolve(given);
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!stream || !entry) {
		free(entry);
		return FAILED;
	}
	*entry = *what;
	pthread_mutex_lock(&stream->lock);
	if (!stream->first)
		stream->end = &stream->first;
	*stream->end = entry;
	stream->end = &entry->next;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

API int cudaLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg)
{
	const int error = atomic_load(&refused[FAKE_LAUNCH]);

	return error ? error : queue(stream, &(struct entry){ .fn = fn, .arg = arg });
}

API int cuStreamWaitValue64_v2(cudaStream_t stream, unsigned long long address, uint64_t value,
			       unsigned flags)
{
	int error = atomic_load(&refused[FAKE_WAIT]);

	if (!error && atomic_load(&refused[FAKE_LATE_WAIT])) {
		error = atomic_load(&refused[FAKE_LATE_WAIT]);
		(void)cudaStreamSynchronize(stream);
	}
	if (flags != 0)
		error = NOT_A_VALUE;
	return error ? error
		     : queue(stream, &(struct entry){ .at = (_Atomic uint64_t *)(uintptr_t)address,
						      .value = value });
}

API int cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
	*status = (uintptr_t)stream > 2 && atomic_load(&stream->is_captured);
	return 0;
}

API int cudaStreamSynchronize(cudaStream_t given)
{
	struct CUstream_st *stream = resolve(given);

	pthread_mutex_lock(&stream->lock);
	while ((stream->first || stream->busy) && !atomic_load(&failed))
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return atomic_load(&failed);
}

API int cudaEventCreate(cudaEvent_t *out)
{
	struct CUevent_st *event = calloc(1, sizeof(*event));

	if (!event)
		return FAILED;
	pthread_mutex_init(&event->lock, NULL);
	pthread_cond_init(&event->changed, NULL);
	*out = event;
	return 0;
}

static void happen(void *arg)
{
	struct CUevent_st *event = arg;

	pthread_mutex_lock(&event->lock);
	event->happened++;
	pthread_cond_broadcast(&event->changed);
	pthread_mutex_unlock(&event->lock);
}

API int cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	pthread_mutex_lock(&event->lock);
	event->recorded++;
	pthread_mutex_unlock(&event->lock);
	return cudaLaunchHostFunc(stream, happen, event);
}

API int cudaEventSynchronize(cudaEvent_t event)
{
	pthread_mutex_lock(&event->lock);
	while (event->happened < event->recorded)
		pthread_cond_wait(&event->changed, &event->lock);
	pthread_mutex_unlock(&event->lock);
	return 0;
}

API int cudaEventDestroy(cudaEvent_t event)
{
	pthread_mutex_destroy(&event->lock);
	pthread_cond_destroy(&event->changed);
	free(event);
	return 0;
}

/* -- Memory ---------------------------------------------------------------------------------- */

struct range {
	struct range *next;
	char *begin;
	size_t nbytes;
	int type; /* 1: of the host, 2: of a GPU */
	bool is_managed, is_registered;
};

static struct {
	pthread_mutex_t lock;
	struct range *first;
} ranges = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int add(void *begin, size_t nbytes, int type, bool is_managed, bool is_registered)
{
	struct range *range = calloc(1, sizeof(*range));

	if (!range)
		return FAILED;
	*range = (struct range){ NULL, begin, nbytes, type, is_managed, is_registered };
	pthread_mutex_lock(&ranges.lock);
	range->next = ranges.first;
	ranges.first = range;
	pthread_mutex_unlock(&ranges.lock);
	return 0;
}

/* False: there is none that begins there. *out has no `next`. */
static bool take(const void *begin, bool is_registered, struct range *out)
{
	struct range **at = &ranges.first, *range;

	pthread_mutex_lock(&ranges.lock);
	while (*at && ((begin && (*at)->begin != begin) || (*at)->is_registered != is_registered))
		at = &(*at)->next;
	range = *at;
	if (range) {
		*out = *range;
		*at = range->next;
	}
	pthread_mutex_unlock(&ranges.lock);
	free(range);
	return range != NULL;
}

static struct range find(unsigned long long address)
{
	struct range found = { 0 };

	pthread_mutex_lock(&ranges.lock);
	for (const struct range *range = ranges.first; range; range = range->next)
		if (address - (uintptr_t)range->begin < range->nbytes)
			found = *range;
	pthread_mutex_unlock(&ranges.lock);
	return found;
}

static int allocate(void **out, size_t nbytes, int access, bool is_managed)
{
	void *memory = mmap(NULL, nbytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return FAILED;
	*out = memory;
	return add(memory, nbytes, 2, is_managed, false);
}

API int cudaMalloc(void **out, size_t nbytes)
{
	return allocate(out, nbytes, PROT_NONE, false);
}

API int cudaMallocManaged(void **out, size_t nbytes, unsigned flags)
{
	(void)flags;
	return allocate(out, nbytes, PROT_READ | PROT_WRITE, true);
}

API int cudaFree(void *memory)
{
	struct range range;

	if (!take(memory, false, &range))
		return NOT_A_VALUE;
	return munmap(range.begin, range.nbytes) == 0 ? 0 : FAILED;
}

API int cudaHostRegister(void *memory, size_t nbytes, unsigned flags)
{
	const int error = atomic_load(&refused[FAKE_REGISTER]);

	last_error = flags == 3 ? error : NOT_A_VALUE;
	return last_error ? last_error : add(memory, nbytes, 1, false, true);
}

API int cudaHostUnregister(void *memory)
{
	struct range range;

	if (!memory || !take(memory, true, &range))
		last_error = NOT_REGISTERED;
	return last_error;
}

API int cudaGetLastError(void)
{
	const int error = last_error;

	last_error = 0;
	return error;
}

API int cuPointerGetAttributes(unsigned n, int *attributes, void **values,
			       unsigned long long address)
{
	const struct range range = find(address);

	for (unsigned i = 0; i < n; i++)
		*(unsigned *)values[i] =
			attributes[i] == 8 ? range.is_managed : (unsigned)range.type;
	return 0;
}

API int cuMemHostGetDevicePointer_v2(unsigned long long *out, void *memory, unsigned flags)
{
	(void)flags;
	*out = (uintptr_t)memory;
	return find(*out).type == 1 ? 0 : NOT_A_VALUE;
}

API int cuMemGetInfo_v2(size_t *nfree, size_t *nbytes)
{
	*nfree = *nbytes = 1 << 20;
	return atomic_load(&failed);
}

/* -- Devices --------------------------------------------------------------------------------- */

static _Atomic int is_concurrent = 1, waits_for_values = 1;

API int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < DEVICES ? 0 : NOT_A_VALUE;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = atomic_load(attribute == 89 ? &is_concurrent : &waits_for_values);
	return attribute == 89 || attribute == 122 ? 0 : NOT_A_VALUE;
}

/* -- What a test says -------------------------------------------------------------------------- */

API void fake_refuse(enum fake_refused what, int error)
{
	atomic_store(&refused[what], error);
}

API void fake_set_attribute(int attribute, int value)
{
	atomic_store(attribute == 89 ? &is_concurrent : &waits_for_values, value);
}

API void fake_capture(cudaStream_t stream, int is_captured)
{
	atomic_store(&stream->is_captured, is_captured);
}

API void fake_fail(int error)
{
	atomic_store(&failed, error);
}

API void fake_forget_registrations(void)
{
	struct range range;

	while (take(NULL, true, &range))
		;
}

API int fake_called(int device)
{
	struct CUstream_st *stream = defaults.of_device[device];
	int called = 0;

	if (stream) {
		pthread_mutex_lock(&stream->lock);
		called = stream->called;
		pthread_mutex_unlock(&stream->lock);
	}
	return called;
}
