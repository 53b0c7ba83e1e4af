/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl/fake_cudart.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define DEVICES     8
#define FAILED      999
#define NOT_A_VALUE 1

struct entry {
	struct entry *next;
	void (*fn)(void *);
	void *arg;
};

/* `lock` guards the rest. */
struct CUstream_st {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct entry *first, **end;
	bool busy, closing;
	int called;
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

static _Atomic int refuses;
static _Thread_local int current;
static _Thread_local struct CUstream_st *of_thread[DEVICES];

static void *serve(void *self)
{
	struct CUstream_st *stream = self;

	pthread_mutex_lock(&stream->lock);
	for (;;) {
		struct entry *entry = stream->first;

		if (!entry && stream->closing)
			break;
		if (!entry) {
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		stream->first = entry->next;
		stream->busy = true;
		pthread_mutex_unlock(&stream->lock);
		entry->fn(entry->arg);
		free(entry);
		pthread_mutex_lock(&stream->lock);
		stream->busy = false;
		stream->called++;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

__attribute__((visibility("default"))) int cudaStreamCreate(cudaStream_t *out)
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

__attribute__((visibility("default"))) int cudaStreamDestroy(cudaStream_t stream)
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

__attribute__((visibility("default"))) int cudaGetDevice(int *device)
{
	*device = current;
	return 0;
}

__attribute__((visibility("default"))) int cudaSetDevice(int device)
{
	if (device < 0 || device >= DEVICES)
		return NOT_A_VALUE;
	current = device;
	return 0;
}

__attribute__((visibility("default"))) int cudaLaunchHostFunc(cudaStream_t given,
							      void (*fn)(void *), void *arg)
{
	struct CUstream_st *stream = resolve(given);
	struct entry *entry = calloc(1, sizeof(*entry));
	const int refused = atomic_load(&refuses);

	if (!stream || !entry || refused) {
		free(entry);
		return refused ? refused : FAILED;
	}
	*entry = (struct entry){ NULL, fn, arg };
	pthread_mutex_lock(&stream->lock);
	if (!stream->first)
		stream->end = &stream->first;
	*stream->end = entry;
	stream->end = &entry->next;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

__attribute__((visibility("default"))) int cudaStreamSynchronize(cudaStream_t given)
{
	struct CUstream_st *stream = resolve(given);

	pthread_mutex_lock(&stream->lock);
	while (stream->first || stream->busy)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

__attribute__((visibility("default"))) int cudaEventCreate(cudaEvent_t *out)
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

__attribute__((visibility("default"))) int cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	pthread_mutex_lock(&event->lock);
	event->recorded++;
	pthread_mutex_unlock(&event->lock);
	return cudaLaunchHostFunc(stream, happen, event);
}

__attribute__((visibility("default"))) int cudaEventSynchronize(cudaEvent_t event)
{
	pthread_mutex_lock(&event->lock);
	while (event->happened < event->recorded)
		pthread_cond_wait(&event->changed, &event->lock);
	pthread_mutex_unlock(&event->lock);
	return 0;
}

__attribute__((visibility("default"))) int cudaEventDestroy(cudaEvent_t event)
{
	pthread_mutex_destroy(&event->lock);
	pthread_cond_destroy(&event->changed);
	free(event);
	return 0;
}

__attribute__((visibility("default"))) void fake_refuse(int error)
{
	atomic_store(&refuses, error);
}

__attribute__((visibility("default"))) int fake_called(int device)
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
