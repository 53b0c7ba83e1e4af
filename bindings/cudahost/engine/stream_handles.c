/* SPDX-License-Identifier: BSD-3-Clause */
/* Which stream a program means, and the streams that nobody creates: the legacy stream of a device,
 * which stays for good, and the default streams of a thread, which end with it. */
#include <pthread.h>
#include <stdlib.h>

#include "engine/internal.h"

#define LEGACY     ((uintptr_t)1)
#define PER_THREAD ((uintptr_t)2)

struct own_streams {
	struct tti_cuda_stream *of[TTI_CUDA_DEVICES_MOST];
};

static pthread_key_t own_key;
static int own_key_error;

static void end_own(void *arg)
{
	struct own_streams *own = arg;

	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		if (own->of[device] && !tti_cuda_begin())
			tti_cuda_stream_end(own->of[device]);
	free(own);
}

static void make_key(void)
{
	own_key_error = pthread_key_create(&own_key, end_own);
}

static struct tti_cuda_stream *get_own(int device)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct own_streams *own;

	pthread_once(&once, make_key);
	own = own_key_error ? NULL : pthread_getspecific(own_key);
	if (!own) {
		own = own_key_error ? NULL : calloc(1, sizeof(*own));
		if (!own || pthread_setspecific(own_key, own)) {
			free(own);
			tti_cuda_fail(TTI_CUDA_ENOMEM,
				      "out of memory for the default stream of a thread");
			return NULL;
		}
	}
	if (!own->of[device])
		own->of[device] = tti_cuda_stream_make(device, TTI_CUDA_STREAM_PER_THREAD, 0, 0);
	return own->of[device];
}

static struct tti_cuda_stream *get_legacy(int device)
{
	struct tti_cuda_stream *legacy = tti_cuda_stream_legacy(device);

	if (legacy)
		return legacy;
	legacy = tti_cuda_stream_make(device, TTI_CUDA_STREAM_LEGACY, 0, 0);
	if (!legacy || tti_cuda_stream_set_legacy(legacy))
		return legacy;
	tti_cuda_stream_end(legacy); /* another thread was faster */
	return tti_cuda_stream_legacy(device);
}

struct tti_cuda_stream *tti_cuda_stream_get(const void *handle, bool null_is_per_thread, int *error)
{
	const int device = tti_cuda_device_current();
	const bool is_default = (uintptr_t)handle <= PER_THREAD;
	struct tti_cuda_stream *stream;

	if (!is_default) {
		*error = tti_cuda_handle_check(TTI_CUDA_HANDLE_STREAM, handle, "a stream");
		return *error ? NULL : (struct tti_cuda_stream *)(uintptr_t)handle;
	}
	*error = tti_cuda_begin();
	if (!*error)
		*error = tti_cuda_device_check(device);
	if (*error)
		return NULL;
	if ((uintptr_t)handle == PER_THREAD || (!handle && null_is_per_thread))
		stream = get_own(device);
	else
		stream = get_legacy(device);
	if (!stream)
		*error = TTI_CUDA_ENOMEM;
	return stream;
}

void *tti_cuda_stream_handle(struct tti_cuda_stream *stream)
{
	switch (tti_cuda_stream_role(stream)) {
	case TTI_CUDA_STREAM_LEGACY:
		return (void *)(uintptr_t)LEGACY;
	case TTI_CUDA_STREAM_PER_THREAD:
		return (void *)(uintptr_t)PER_THREAD;
	case TTI_CUDA_STREAM_OWNED:
		break;
	}
	return stream;
}

int tti_cuda_stream_create(unsigned flags, int priority, struct tti_cuda_stream **out)
{
	const int device = tti_cuda_device_current();
	struct tti_cuda_stream *stream;
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (error)
		return error;
	if (flags & ~TTI_CUDA_STREAM_NON_BLOCKING)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "a stream with flags %#x: there are 0 and %#x (non-blocking)",
				     flags, TTI_CUDA_STREAM_NON_BLOCKING);
	stream = tti_cuda_stream_make(device, TTI_CUDA_STREAM_OWNED, flags, priority);
	if (!stream)
		return TTI_CUDA_ENOMEM;
	error = tti_cuda_handle_add(TTI_CUDA_HANDLE_STREAM, stream);
	if (error)
		tti_cuda_stream_end(stream);
	else
		*out = stream;
	return error;
}

int tti_cuda_stream_destroy(struct tti_cuda_stream *stream)
{
	const int error =
		tti_cuda_handle_check(TTI_CUDA_HANDLE_STREAM, stream, "a stream is destroyed");

	if (error)
		return error;
	if (!tti_cuda_handle_remove(TTI_CUDA_HANDLE_STREAM, stream))
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "stream %p is destroyed by two threads at once",
				     (void *)stream);
	tti_cuda_stream_end(stream);
	return 0;
}
