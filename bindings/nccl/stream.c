/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of CUDA. cudaLaunchHostFunc() of the CUDA runtime that the process has says when the turn
 * of Tutti's work has come. In Tutti's own runtime that function does the work. In others one
 * thread may call the functions of all streams, so the function only notes the turn, and the stream
 * is held until the work is done. If the process has no runtime, there are no streams but the
 * default ones, on which calls are made at once. */
#include "binding.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

typedef int (*get_device_fn)(int *device);
typedef int (*set_device_fn)(int device);
typedef int (*record_fn)(cudaEvent_t event, cudaStream_t stream);
typedef int (*is_capturing_fn)(cudaStream_t stream, int *status);

/* What Tutti's CUDA runtime on host memory has and NVIDIA's does not. */
typedef int (*capture_fn)(void *stream, int (*launch)(void *arg, void *stream),
			  void (*drop)(void *arg), void *arg);
typedef int (*is_guarded_fn)(void);
typedef void *(*reach_fn)(const void *address);
typedef int (*adopt_fn)(void *memory, size_t nbytes);
typedef int (*disown_fn)(void *memory);
typedef int (*hold_fn)(int error, const char *why, int (*is_over)(void *arg), void *arg);

/* Found once, and kept. */
static struct {
	_Atomic(tti_nccl_launch_fn) launch;
	_Atomic(get_device_fn) get_device;
	_Atomic(set_device_fn) set_device;
	_Atomic(record_fn) record;
	_Atomic(is_capturing_fn) is_capturing;
	_Atomic(capture_fn) capture;
	_Atomic(reach_fn) reach; /* NULL: addresses are what they seem */
	_Atomic(adopt_fn) adopt;
	_Atomic(disown_fn) disown;
	_Atomic(hold_fn) hold; /* NULL: the runtime is not Tutti's */
} runtime;

/* The number of cudaErrorLaunchFailure. */
#define LAUNCH_FAILURE 719

/* The default streams: that of a device, as 0 or 1, and that of a thread. */
#define LEGACY     ((cudaStream_t)(uintptr_t)1)
#define PER_THREAD ((cudaStream_t)(uintptr_t)2)

/* One stream of CUDA, for all communicators that use it. */
struct tti_nccl_stream {
	struct tti_nccl_stream *next;
	cudaStream_t stream;              /* never LEGACY, which is NULL, too */
	int device;                       /* of the communicator that used it first */
	pthread_t thread;                 /* PER_THREAD: whose it is */
	struct tti_nccl_counter *counter; /* NULL: the runtime is Tutti's */
	tutti_stream_t over;
	struct tti_nccl_lent *users;
};

/* Notes that a communicator uses a stream. */
struct tti_nccl_lent {
	struct tti_nccl_lent *next; /* of the communicator */
	struct tti_nccl_stream *stream;
	ncclComm_t comm;
	struct tti_nccl_lent *next_user; /* of the stream, under the lock of the table */
};

static struct {
	pthread_mutex_t lock;
	struct tti_nccl_stream *first;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- The runtime ----------------------------------------------------------------- */

/* Look for a symbol as the library that loaded this one sees it, or in a runtime that is loaded,
 * but hidden, as one that Python loads is. */
void *tti_nccl_find_symbol(const char *name)
{
	static const char *const sonames[] = { "libcudart.so.13", "libcudart.so.12",
					       "libcudart.so.11.0", "libtutti_cudahost.so" };
	void *symbol = dlsym(RTLD_DEFAULT, name);

	for (size_t at = 0; !symbol && at < sizeof(sonames) / sizeof(sonames[0]); at++) {
		void *library = dlopen(sonames[at], RTLD_LAZY | RTLD_NOLOAD);

		if (!library)
			continue;
		symbol = dlsym(library, name);
		(void)dlclose(library); /* the program has it still */
	}
	return symbol;
}

/* What was found. A call does not look again, because that takes longer than the call. */
static tti_nccl_launch_fn get_launch(void)
{
	return atomic_load(&runtime.launch);
}

/* The others first: a thread that sees `launch` sees all of them. */
static tti_nccl_launch_fn find_launch(void)
{
	tti_nccl_launch_fn launch = get_launch();
	is_guarded_fn is_guarded;

	if (launch)
		return launch;
	launch = (tti_nccl_launch_fn)tti_nccl_find_symbol("cudaLaunchHostFunc");
	if (!launch)
		return NULL;
	atomic_store(&runtime.get_device, (get_device_fn)tti_nccl_find_symbol("cudaGetDevice"));
	atomic_store(&runtime.set_device, (set_device_fn)tti_nccl_find_symbol("cudaSetDevice"));
	atomic_store(&runtime.record, (record_fn)tti_nccl_find_symbol("cudaEventRecord"));
	atomic_store(&runtime.is_capturing,
		     (is_capturing_fn)tti_nccl_find_symbol("cudaStreamIsCapturing"));
	atomic_store(&runtime.capture,
		     (capture_fn)tti_nccl_find_symbol("tti_cuda_capture_launcher"));
	atomic_store(&runtime.adopt, (adopt_fn)tti_nccl_find_symbol("tti_cuda_memory_adopt"));
	atomic_store(&runtime.disown,
		     (disown_fn)tti_nccl_find_symbol("tti_cuda_memory_unregister"));
	atomic_store(&runtime.hold, (hold_fn)tti_nccl_find_symbol("tti_cuda_stream_hold"));
	is_guarded = (is_guarded_fn)tti_nccl_find_symbol("tti_cuda_memory_is_guarded");
	if (is_guarded && is_guarded())
		atomic_store(&runtime.reach,
			     (reach_fn)tti_nccl_find_symbol("tti_cuda_memory_reach"));
	atomic_store(&runtime.launch, launch);
	return launch;
}

bool tti_nccl_has_runtime(void)
{
	return get_launch() != NULL;
}

int tti_nccl_current_device(void)
{
	const get_device_fn get = find_launch() ? atomic_load(&runtime.get_device) : NULL;
	int device = 0;

	return get && get(&device) == 0 ? device : 0;
}

bool tti_nccl_has_gpus(void)
{
	return get_launch() && !atomic_load(&runtime.hold);
}

ncclResult_t tti_nccl_look(ncclComm_t comm, const char *call, const char *argument,
			   const void *address)
{
	return address && tti_nccl_has_gpus() ? tti_nccl_look_at(comm, call, argument, address)
					      : ncclSuccess;
}

/* The default stream of a device is never captured, that of a thread may be. */
bool tti_nccl_is_captured(cudaStream_t stream)
{
	const is_capturing_fn is_capturing = stream && stream != LEGACY && find_launch()
						     ? atomic_load(&runtime.is_capturing)
						     : NULL;
	int status = 0;

	return is_capturing && is_capturing(stream, &status) == 0 && status == 1;
}

int tti_nccl_capture(cudaStream_t stream, int (*launch)(void *arg, void *stream),
		     void (*drop)(void *arg), void *arg)
{
	const capture_fn capture = find_launch() ? atomic_load(&runtime.capture) : NULL;

	if (capture)
		return capture(stream, launch, drop, arg);
	drop(arg);
	return -1;
}

bool tti_nccl_can_hold(void)
{
	return get_launch() && atomic_load(&runtime.hold);
}

void tti_nccl_hold(const char *why, int (*is_over)(void *arg), void *arg)
{
	(void)atomic_load (&runtime.hold)(LAUNCH_FAILURE, why, is_over, arg);
}

void *tti_nccl_reach(const void *address)
{
	const reach_fn reach = get_launch() ? atomic_load(&runtime.reach) : NULL;

	return reach ? reach(address) : (void *)(uintptr_t)address;
}

int tti_nccl_adopt(void *memory, size_t nbytes, const char **function)
{
	const adopt_fn adopt = find_launch() ? atomic_load(&runtime.adopt) : NULL;

	if (tti_nccl_has_gpus())
		return tti_nccl_gpu_adopt(memory, nbytes, function);
	*function = "the CUDA runtime";
	return adopt ? adopt(memory, nbytes) : 0;
}

/* The runtime does not know memory that was allocated before it was loaded. */
void tti_nccl_disown(void *memory)
{
	const disown_fn disown = get_launch() ? atomic_load(&runtime.disown) : NULL;

	if (memory && disown)
		(void)disown(memory);
	else if (memory && tti_nccl_has_gpus())
		tti_nccl_gpu_disown(memory);
}

/* Returns the device that was current. */
static int enter_device(int device)
{
	const set_device_fn set = atomic_load(&runtime.set_device);
	const int before = tti_nccl_current_device();

	if (set && before != device)
		(void)set(device);
	return before;
}

static void leave_device(int device, int before)
{
	const set_device_fn set = atomic_load(&runtime.set_device);

	if (set && before != device)
		(void)set(before);
}

static int push(void *queue, tutti_queue_fn fn, void *arg)
{
	const struct tti_nccl_stream *stream = queue;
	struct tti_nccl_trouble pushed = { "cudaLaunchHostFunc", 0, false };
	const int before = enter_device(stream->device);

	if (stream->counter)
		tti_nccl_counter_push(stream->counter, stream->stream, get_launch(), fn, arg,
				      &pushed);
	else
		pushed.error = get_launch()(stream->stream, fn, arg);
	leave_device(stream->device, before);
	if (pushed.error)
		tti_nccl_thread()->trouble = pushed;
	return pushed.is_made ? 0 : pushed.error;
}

static void release(void *queue)
{
	const struct tti_nccl_stream *stream = queue;

	tti_nccl_counter_release(stream->counter);
}

ncclResult_t tti_nccl_event_record(cudaEvent_t event, cudaStream_t stream, ncclComm_t comm)
{
	const record_fn record = get_launch() ? atomic_load(&runtime.record) : NULL;
	int before, error;

	if (!record)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the CUDA runtime of this process has no cudaEventRecord()");
	before = enter_device(comm->device);
	error = record(event, stream);
	leave_device(comm->device, before);
	if (error)
		return tti_nccl_fail(comm, ncclUnhandledCudaError,
				     "cudaEventRecord() gave error %d", error);
	return ncclSuccess;
}

/* -- The table --------------------------------------------------------------------- */

static bool is_default(cudaStream_t stream)
{
	return !stream || stream == LEGACY || stream == PER_THREAD;
}

/* Each device has a default stream of its own. */
static bool is_same(const struct tti_nccl_stream *entry, cudaStream_t stream, int device)
{
	return entry->stream == stream && (!is_default(stream) || entry->device == device) &&
	       (stream != PER_THREAD || pthread_equal(entry->thread, pthread_self()));
}

static void discard(struct tti_nccl_stream *entry)
{
	(void)tutti_stream_destroy(entry->over);
	tti_nccl_counter_give_back(entry->counter);
	free(entry);
}

/* Under the lock of the table. */
static ncclResult_t create(ncclComm_t comm, cudaStream_t stream, struct tti_nccl_stream **out)
{
	struct tti_nccl_stream *entry = calloc(1, sizeof(*entry));
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;
	ncclResult_t result = ncclSuccess;

	if (!entry)
		return tti_nccl_fail(comm, ncclSystemError, "a stream: out of memory");
	entry->stream = stream;
	entry->device = comm->device;
	entry->thread = pthread_self();
	ops.push = push;
	if (tti_nccl_has_gpus()) {
		ops.release = release;
		result = tti_nccl_counter_take(comm, &entry->counter);
	}
	if (result == ncclSuccess)
		result = tti_nccl_report(comm, tutti_stream_wrap(&entry->over, &ops, entry));
	/* A program waits by functions of CUDA, which Tutti does not see. */
	if (result == ncclSuccess)
		result = tti_nccl_report(comm, tutti_stream_add_waiters(entry->over, 1));
	if (result != ncclSuccess) {
		discard(entry);
		return result;
	}
	entry->next = table.first;
	table.first = entry;
	*out = entry;
	return ncclSuccess;
}

static ncclResult_t take(struct tti_nccl_lent *lent, cudaStream_t stream)
{
	ncclResult_t result = ncclSuccess;
	struct tti_nccl_stream *entry;

	pthread_mutex_lock(&table.lock);
	entry = table.first;
	while (entry && !is_same(entry, stream, lent->comm->device))
		entry = entry->next;
	if (!entry)
		result = create(lent->comm, stream, &entry);
	if (entry) {
		lent->next_user = entry->users;
		entry->users = lent;
	}
	pthread_mutex_unlock(&table.lock);
	lent->stream = entry;
	return result;
}

/* All that communicators queued there is done, because each waits for its own calls when it
 * ends. */
static void give_back(const struct tti_nccl_lent *lent)
{
	struct tti_nccl_stream *entry = lent->stream, **at = &table.first;
	struct tti_nccl_lent **user = &entry->users;

	pthread_mutex_lock(&table.lock);
	while (*user != lent)
		user = &(*user)->next_user;
	*user = lent->next_user;
	if (entry->users) {
		pthread_mutex_unlock(&table.lock);
		return;
	}
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	pthread_mutex_unlock(&table.lock);
	if (tutti_stream_add_waiters(entry->over, -1) == TUTTI_OK)
		discard(entry);
}

/* Under the lock of the communicator. */
static ncclResult_t lend(ncclComm_t comm, cudaStream_t stream, tutti_stream_t *out)
{
	struct tti_nccl_lent *lent;
	ncclResult_t result;

	for (lent = comm->streams; lent; lent = lent->next)
		if (is_same(lent->stream, stream, comm->device)) {
			*out = lent->stream->over;
			return ncclSuccess;
		}
	lent = calloc(1, sizeof(*lent));
	if (!lent)
		return tti_nccl_fail(comm, ncclSystemError, "a stream: out of memory");
	lent->comm = comm;
	result = take(lent, stream);
	if (result != ncclSuccess) {
		free(lent);
		return result;
	}
	lent->next = comm->streams;
	comm->streams = lent;
	*out = lent->stream->over;
	return ncclSuccess;
}

ncclResult_t tti_nccl_stream_of(ncclComm_t comm, cudaStream_t stream, tutti_stream_t *out)
{
	ncclResult_t result;

	*out = NULL;
	if (!get_launch()) {
		if (is_default(stream))
			return ncclSuccess;
		if (!find_launch())
			return tti_nccl_fail(
				comm, ncclInvalidArgument,
				"stream %p needs a CUDA runtime: cudaLaunchHostFunc() is not "
				"in this process, so only the default stream can be used",
				(void *)stream);
	}
	pthread_mutex_lock(&comm->lock);
	result = comm->is_alive ? lend(comm, stream == LEGACY ? NULL : stream, out)
				: tti_nccl_fail(comm, ncclInvalidUsage, "the communicator ended");
	pthread_mutex_unlock(&comm->lock);
	return result;
}

tutti_status tti_nccl_streams_query(ncclComm_t comm)
{
	tutti_status status = TUTTI_OK;

	pthread_mutex_lock(&comm->lock);
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next)
		if (tutti_stream_query(lent->stream->over) == TUTTI_AGAIN)
			status = TUTTI_AGAIN;
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static bool has_failed(int device)
{
	const int before = enter_device(device);
	const bool failed = tti_nccl_gpu_has_failed();

	leave_device(device, before);
	return failed;
}

/* Nobody may use what the GPU has left as data. */
static void revoke_users(const struct tti_nccl_stream *entry)
{
	pthread_mutex_lock(&table.lock);
	for (const struct tti_nccl_lent *user = entry->users; user; user = user->next_user) {
		const tutti_status status = tutti_comm_revoke(user->comm->comm);

		(void)status; /* one that has ended is not asked for data any more */
	}
	pthread_mutex_unlock(&table.lock);
}

void tti_nccl_streams_rescue(ncclComm_t comm)
{
	if (!tti_nccl_has_gpus() || tti_nccl_streams_query(comm) != TUTTI_AGAIN ||
	    !has_failed(comm->device))
		return;
	pthread_mutex_lock(&comm->lock);
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next) {
		revoke_users(lent->stream);
		tti_nccl_counter_drain(lent->stream->counter);
	}
	pthread_mutex_unlock(&comm->lock);
}

static void *watch(void *self)
{
	struct tti_nccl_rescuer *rescuer = self;
	const struct timespec nap = { .tv_nsec = 5000000 };

	while (!atomic_load(&rescuer->is_over)) {
		tti_nccl_streams_rescue(rescuer->comm);
		(void)nanosleep(&nap, NULL);
	}
	return NULL;
}

void tti_nccl_rescuer_begin(struct tti_nccl_rescuer *rescuer, ncclComm_t comm)
{
	*rescuer = (struct tti_nccl_rescuer){ .comm = comm };
	rescuer->is_there = tti_nccl_has_gpus() && comm->comm &&
			    tti_nccl_streams_query(comm) == TUTTI_AGAIN &&
			    pthread_create(&rescuer->thread, NULL, watch, rescuer) == 0;
}

void tti_nccl_rescuer_end(struct tti_nccl_rescuer *rescuer)
{
	if (!rescuer->is_there)
		return;
	atomic_store(&rescuer->is_over, 1);
	(void)pthread_join(rescuer->thread, NULL);
}

/* The communicator says how calls went. */
void tti_nccl_streams_wait(ncclComm_t comm)
{
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next) {
		const tutti_status status = tutti_stream_synchronize(lent->stream->over);

		(void)status;
	}
}

void tti_nccl_streams_release(ncclComm_t comm)
{
	struct tti_nccl_lent *lent;

	pthread_mutex_lock(&comm->lock);
	lent = comm->streams;
	comm->streams = NULL;
	pthread_mutex_unlock(&comm->lock);
	while (lent) {
		struct tti_nccl_lent *next = lent->next;

		give_back(lent);
		free(lent);
		lent = next;
	}
}
