/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINDINGS_NCCL_BINDING_H
#define BINDINGS_NCCL_BINDING_H

/* What the files of libnccl.so.2 share. Each function of NCCL is defined as pncclX, and ncclX is
 * another name for it, which a profiler may replace. The library calls its own functions by the
 * first name only.
 *
 * Owner: a handle is the program's until the function that ends it. The memory of a communicator's
 * handle is never freed, so that a call on one that was destroyed is an error and not a crash.
 * Threads: as tutti.h says. Any thread may call ncclCommAbort(), ncclCommGetAsyncError() and
 * ncclGetLastError(). */

#include <pthread.h>
#include <stdbool.h>

#pragma GCC visibility push(default)
#include "nccl_device.h"

#define FUNCTION(name, since, kind, text) extern __typeof__(name) p##name;
#define UNPROFILED(name, since, kind, text)
#include "functions.def"
#undef FUNCTION
#undef UNPROFILED
#pragma GCC visibility pop

#include "tutti/inspect.h"
#include "tutti/tutti.h"

/* Goes behind the definition of p`name`, in the same file. */
#define ALSO_NAMED(name) extern __typeof__(name) name __attribute__((weak, alias("p" #name)))

/* -- The calling thread ------------------------------------------------------ */

/* What a function of CUDA refused when something was queued. */
struct tti_nccl_trouble {
	const char *function;
	int error;    /* 0: none */
	bool is_made; /* what was queued is done all the same */
};

struct tti_nccl_thread {
	int depth;            /* how many groups are open */
	ncclResult_t spoiled; /* not ncclSuccess: why nothing of its group will run */
	struct tti_nccl_trouble trouble;
};

struct tti_nccl_thread *tti_nccl_thread(void);
bool tti_nccl_in_group(void);
/* Spoil the group of this thread: nothing of it will run, because of `result`. */
void tti_nccl_group_spoil(ncclResult_t result);
/* Take what has happened in this thread since the last time it was asked. */
struct tti_nccl_trouble tti_nccl_take_trouble(void);

/* -- Results and texts ------------------------------------------------------ */

/* The result of NCCL that stands for a status of Tutti. */
ncclResult_t tti_nccl_result(tutti_status status);

/* As tti_nccl_result(). Tutti's text of a failure becomes this thread's text, about `comm` or
 * (NULL) no communicator. */
ncclResult_t tti_nccl_report(ncclComm_t comm, tutti_status status);

/* Fail with a text, which becomes this thread's and goes to the log. Returns `result`. In a group
 * nothing of the group will run. */
ncclResult_t tti_nccl_fail(ncclComm_t comm, ncclResult_t result, const char *fmt, ...)
	TUTTI_PRINTF(3, 4);

/* Make `text`, of an error that another thread has met and logged, this thread's. */
void tti_nccl_keep(ncclComm_t comm, const char *text);

/* One line of the log at INFO. */
void tti_nccl_info(const char *fmt, ...) TUTTI_PRINTF(1, 2);

/* -- Communicators ----------------------------------------------------------- */

struct tti_nccl_stream;
struct tti_nccl_lent;
struct tti_nccl_held_op;

/* `lock` protects `streams`, which a thread that aborts takes away, and `ops`. All else is changed
 * by the thread that uses the communicator. */
struct ncclComm {
	_Atomic int is_alive;
	_Atomic int lets_go; /* streams that a failed call holds go on */
	_Atomic int nholds;  /* such streams */
	tutti_comm_t comm;   /* NULL: it will be made at the end of the group */
	ncclResult_t failed; /* why it could not be made at the end of a group */
	int device;
	bool has_kernels; /* this rank's calls are kernels on its device */
	bool is_nonblocking;
	bool is_finalized;
	bool has_grow_id; /* ncclCommGetUniqueId() gave one that is not used */
	pthread_mutex_t lock;
	uint64_t serial; /* of the communicator, as handles are used again */
	struct tti_nccl_lent *streams;
	struct tti_nccl_held_op *ops;      /* those that are in graphs */
	tutti_window_t signals;            /* NULL: no window was registered */
	int rma_signals, rma_contexts;     /* how many there are: ncclConfig_t */
	struct ncclWindow_vidmem *windows; /* all of this communicator */
	struct ncclComm *next;             /* of those that are dead */
};

/* Create a handle on the current device, without a communicator of Tutti yet. */
ncclResult_t tti_nccl_comm_create(ncclComm_t *out);
/* Keep a handle whose communicator is gone, so that a call on it is found, until it is used again. */
void tti_nccl_handle_bury(ncclComm_t comm);
/* Check whether calls may be made on a communicator. An error says why not. */
ncclResult_t tti_nccl_comm_check(ncclComm_t comm);
/* The same for questions, which a communicator that was finalized still answers. */
ncclResult_t tti_nccl_comm_ask(ncclComm_t comm);
/* Free a handle whose communicator of Tutti is gone, or was never made. Waits for nothing but its
 * streams. */
void tti_nccl_comm_free(ncclComm_t comm);
/* The parts of functions that wait until the end of a group. */
ncclResult_t tti_nccl_comm_finalize(ncclComm_t comm);
ncclResult_t tti_nccl_comm_destroy(ncclComm_t comm);
ncclResult_t tti_nccl_comm_abort(ncclComm_t comm);

/* -- Settings ---------------------------------------------------------------- */

/* Copy `config` to *out with all fields of this release. Fields that its version does not have are
 * unset. NULL: all are unset. */
ncclResult_t tti_nccl_config_read(const ncclConfig_t *config, ncclConfig_t *out);
/* Take over what Tutti can use of a config. Strings stay the caller's. */
void tti_nccl_config_use(const ncclConfig_t *config, tutti_config *out);
/* Check the settings of a call. Tutti follows two: its algorithms, and that an event is
 * recorded. */
ncclResult_t tti_nccl_call_config_check(ncclComm_t comm, const ncclCollConfig_t *config,
					cudaStream_t stream);
#define TTI_NCCL_ALGORITHMS 160
/* Find the algorithms that the settings name and Tutti has for `coll`, as
 * tutti_comm_set_algorithm() takes them; "": whichever is best. It calls that function, and then
 * sets the communicator back to its configuration. */
ncclResult_t tti_nccl_call_algorithms(ncclComm_t comm, const ncclCollConfig_t *config,
				      tutti_collective coll, char out[TTI_NCCL_ALGORITHMS]);

/* The value of a variable of the environment; NULL: it is not set, or empty. */
const char *tti_nccl_variable(const char *name);
/* Log, once and at INFO, which variables of NCCL have no effect here. */
void tti_nccl_variables_tell(void);

/* -- The CUDA runtime ---------------------------------------------------------- */

/* The default streams: that of a device, as 0 or 1, and that of a thread. */
#define TTI_NCCL_LEGACY     ((cudaStream_t)(uintptr_t)1)
#define TTI_NCCL_PER_THREAD ((cudaStream_t)(uintptr_t)2)

typedef int (*tti_nccl_launch_fn)(cudaStream_t stream, void (*fn)(void *), void *arg);
/* cudaLaunchHostFunc() of the runtime, NULL if none was found. A call does not look for one, because
 * that takes longer than the call. */
tti_nccl_launch_fn tti_nccl_launch(void);
/* Look for a runtime, if none was found yet: whether there is one. */
bool tti_nccl_find_runtime(void);
/* A function of the CUDA runtime; NULL if there is none. */
void *tti_nccl_find_symbol(const char *name);

/* Whether communicators that are made now have their devices, so that their calls are kernels. */
bool tti_nccl_has_kernels(void);
/* The current device by the driver, and an event recorded by it (an error of CUDA, -1: there is no
 * driver): for programs whose runtime is linked into them. */
int tti_nccl_context_device(void);
int tti_nccl_driver_record(cudaEvent_t event, cudaStream_t stream);

/* Memory of the current device, for ncclMemAlloc(); an error of CUDA with the function that gave it.
 * free() says whether the memory is such. */
int tti_nccl_device_alloc(void **out, size_t nbytes, const char **function);
bool tti_nccl_device_free(void *memory, int *error);

/* The current device; 0 if there is no CUDA. Looks for a runtime. */
int tti_nccl_current_device(void);
/* Whether there was a runtime when a communicator was last made, or a stream was used. */
bool tti_nccl_has_runtime(void);
/* Whether the process has such a runtime: NVIDIA's, whose GPUs have memory that the host cannot
 * reach. */
bool tti_nccl_has_gpus(void);
bool tti_nccl_is_captured(cudaStream_t stream);
/* Called by the thread of a stream: hold the stream, so that nothing runs on data that a failed
 * call has not delivered, until is_over(arg) is not 0. Threads that wait for the stream get `why`.
 * tti_nccl_can_hold(): whether the runtime can do that. */
bool tti_nccl_can_hold(void);
void tti_nccl_hold(const char *why, int (*is_over)(void *arg), void *arg);
/* Let each launch of the graph that `stream` is captured into call launch(arg, stream of the
 * launch). The end of the graph, or a failure of this function, calls drop(arg). Returns an error
 * of CUDA, or -1: the runtime has no function for it. */
int tti_nccl_capture(cudaStream_t stream, int (*launch)(void *arg, void *stream),
		     void (*drop)(void *arg), void *arg);
/* Where this process finds the bytes at an address of the program. It is another address if Tutti's
 * CUDA runtime guards its devices' memory. of(): where the calls of a communicator find them, which
 * is the address itself for kernels. */
void *tti_nccl_reach(const void *address);
static inline void *tti_nccl_reach_of(ncclComm_t comm, const void *address)
{
	return comm->has_kernels ? (void *)(uintptr_t)address : tti_nccl_reach(address);
}
/* Make a device current, and go back to the one that was, which the first function returns. */
int tti_nccl_device_enter(int device);
void tti_nccl_device_leave(int device, int before);
/* Record an event on a stream. */
ncclResult_t tti_nccl_event_record(cudaEvent_t event, cudaStream_t stream, ncclComm_t comm);
/* tti_nccl_adopt() and tti_nccl_disown() for Tutti's runtime: 0, also if there is none, or an error
 * of CUDA. */
int tti_nccl_runtime_adopt(void *memory, size_t nbytes);
void tti_nccl_runtime_disown(void *memory);

/* -- Streams ----------------------------------------------------------------- */

/* Give the stream of Tutti over `stream`; *out is NULL if a call is to be made at once. It stays
 * until all communicators that used it are gone. */
ncclResult_t tti_nccl_stream_of(ncclComm_t comm, cudaStream_t stream, tutti_stream_t *out);
/* Whether all that was queued on streams of `comm` is done; TUTTI_AGAIN: not yet. */
tutti_status tti_nccl_streams_query(ncclComm_t comm);
void tti_nccl_streams_wait(ncclComm_t comm);
/* If the GPU of `comm` has failed, what is queued would never run. Revoke all communicators that
 * use these streams, and let the queued calls end with an error. */
void tti_nccl_streams_rescue(ncclComm_t comm);
/* A thread that does so again and again while another thread waits for queued calls, if there are
 * any. */
struct tti_nccl_rescuer {
	ncclComm_t comm;
	pthread_t thread;
	bool is_there;
	_Atomic int is_over;
};
void tti_nccl_rescuer_begin(struct tti_nccl_rescuer *rescuer, ncclComm_t comm);
void tti_nccl_rescuer_end(struct tti_nccl_rescuer *rescuer);
void tti_nccl_streams_release(ncclComm_t comm);
/* What a call does on a stream of Tutti, or (over == NULL) at once; `work` is copied. */
struct tti_nccl_action {
	ncclComm_t comm;
	cudaStream_t stream;
	ncclRedOp_t op; /* if it was made by the program it lives as long as the graph */
	tutti_status (*run)(const void *work, tutti_stream_t over);
	const void *work;
	size_t nbytes;
};

/* Do an action on its stream. If the stream is captured, the action becomes a part of the graph, or
 * in a group at the group's end. */
ncclResult_t tti_nccl_do(const struct tti_nccl_action *action);
/* End the group of this thread: its calls on captured streams go into their graphs, or (`dropped`)
 * nowhere. */
ncclResult_t tti_nccl_capture_end(bool dropped);
/* Let the streams that failed calls of the communicator hold go on, and wait until they do. */
void tti_nccl_let_go(ncclComm_t comm);

/* -- CUDA runtimes that are not Tutti's ----------------------------------------- */

/* Whether the process uses a GPU through a driver that it has loaded and that is not Tutti's. */
bool tti_nccl_gpu_is_in_use(void);
ncclResult_t tti_nccl_look_at(ncclComm_t comm, const char *call, const char *argument,
			      const void *address);
/* Check whether a call of NCCL can use the memory at `address` (NULL: none) as its `argument`. An
 * error says why not. Costs nothing with Tutti's runtime, or none, and for kernels, as Tutti's
 * library looks at what they use. */
static inline ncclResult_t tti_nccl_look(ncclComm_t comm, const char *call, const char *argument,
					 const void *address)
{
	return address && tti_nccl_has_gpus() && !comm->has_kernels
		       ? tti_nccl_look_at(comm, call, argument, address)
		       : ncclSuccess;
}

/* Make memory of this library memory of the current device for Tutti's CUDA runtime, and undo
 * that. Returns 0, also if there is no such runtime, or an error of CUDA with the function that
 * gave it. */
int tti_nccl_adopt(void *memory, size_t nbytes, const char **function);
void tti_nccl_disown(void *memory);

/* The functions below are called only if the process has GPUs. */

/* Do now, while a communicator is made, what may wait for all GPUs: later a call of another
 * communicator could be waiting for this thread's call. */
void tti_nccl_gpu_prepare(void);

/* A counter, which holds a stream of CUDA: it counts how many of the pieces of work that were
 * queued there are done. */
struct tti_nccl_counter;
ncclResult_t tti_nccl_counter_take(ncclComm_t comm, struct tti_nccl_counter **out);
/* Give a counter back when all that was queued with it is done. NULL is fine. */
void tti_nccl_counter_give_back(struct tti_nccl_counter *counter);
/* Let a thread of CUDA call fn(arg) when its turn on `stream` has come. The stream then does
 * nothing else until tti_nccl_counter_release(). The device of the stream is current. */
void tti_nccl_counter_push(struct tti_nccl_counter *counter, cudaStream_t stream,
			   tti_nccl_launch_fn launch, void (*fn)(void *), void *arg,
			   struct tti_nccl_trouble *out);
void tti_nccl_counter_release(struct tti_nccl_counter *counter);
/* Whether the current GPU has failed for good, so that nothing that is queued on its streams will
 * run. */
bool tti_nccl_gpu_has_failed(void);
/* Call the functions that are queued and have not been called. */
void tti_nccl_counter_drain(struct tti_nccl_counter *counter);

/* -- Groups ------------------------------------------------------------------ */

/* The phases of what waits for the end of a group, in the order in which they are carried out
 * there. */
enum tti_nccl_phase {
	TTI_NCCL_REGISTER,
	TTI_NCCL_WINDOW, /* those of several communicators at the same time */
	TTI_NCCL_PUT,
	TTI_NCCL_WAIT,
	TTI_NCCL_LATER, /* events, and what ends something, in the order of the calls */
	TTI_NCCL_INIT,
};

/* Either `run` is called once with `work`, or, if nothing of the group runs, `drop`. Both free
 * it. */
struct tti_nccl_job {
	enum tti_nccl_phase phase;
	ncclComm_t comm;
	ncclResult_t (*run)(void *work);
	void (*drop)(void *work);
	void *work;
};

/* Queue a job in a group; outside of one, carry it out at once. `work` is the job's. NULL: there
 * was no memory for it. */
ncclResult_t tti_nccl_job_add(const struct tti_nccl_job *job);
/* Free the windows of a communicator that is to be freed. */
void tti_nccl_windows_free(ncclComm_t comm);

/* Note that an operator of a program (others are not counted) is in one more graph, or in one
 * less. */
ncclResult_t tti_nccl_op_hold(ncclComm_t comm, ncclRedOp_t op);
void tti_nccl_op_let_go(ncclComm_t comm, ncclRedOp_t op);
/* Free the operators of a communicator that is to be freed. */
void tti_nccl_ops_free(ncclComm_t comm);

/* -- Checks ------------------------------------------------------------------ */

ncclResult_t tti_nccl_check_type(ncclComm_t comm, ncclDataType_t type);
ncclResult_t tti_nccl_check_op(ncclComm_t comm, ncclRedOp_t op);

#endif
