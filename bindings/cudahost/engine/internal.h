/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the engine have in common and no library calls.
 *
 * Locks, in the order in which they are taken: that of an executable graph, that of all graphs and
 * captures, that of a device's list of streams, that of a stream or an event. Jobs are run and
 * dropped with none of them held. */
#ifndef TUTTI_CUDAHOST_ENGINE_INTERNAL_H
#define TUTTI_CUDAHOST_ENGINE_INTERNAL_H

#include "engine/device.h"
#include "engine/graph.h"
#include "engine/pci.h"
#include "engine/peers.h"

/* -- handles.c: what programs hold ---------------------------------------------------------- */

enum tti_cuda_handle {
	TTI_CUDA_HANDLE_STREAM,
	TTI_CUDA_HANDLE_EVENT,
	TTI_CUDA_HANDLE_GRAPH,
	TTI_CUDA_HANDLE_NODE,
	TTI_CUDA_HANDLE_EXEC,
};

/* 0, or ENOMEM. */
int tti_cuda_handle_add(enum tti_cuda_handle kind, const void *object);
/* False: it was not there. If several threads remove an object, one gets true. */
bool tti_cuda_handle_remove(enum tti_cuda_handle kind, const void *object);
/* 0, or EHANDLE with a text. Does begin(), too, so its EINIT. `what` is what the caller does. */
int tti_cuda_handle_check(enum tti_cuda_handle kind, const void *object, const char *what);

/* -- device.c ------------------------------------------------------------------------------- */

/* A variable; NULL: unset or empty. The one place that reads the environment. */
const char *tti_cuda_setting(const char *name);

/* Read all variables, once. */
void tti_cuda_settings_read(void);

/* 0, EDEVICE, or ENODEVICE, with a text. */
int tti_cuda_device_check(int device);

/* Where a device is that there is. */
struct tti_cuda_pci tti_cuda_device_pci(int device);
/* What the variables of peers.h say. */
const struct tti_cuda_pairs *tti_cuda_device_refused(void);
const struct tti_cuda_pairs *tti_cuda_device_lying(void);
/* TUTTI_CUDAHOST_SMS. */
int tti_cuda_device_multiprocessors(void);
/* TUTTI_CUDAHOST_WAIT. */
bool tti_cuda_device_waits(void);

/* Run a job; what it fails with becomes the device's failure, if that has none. */
int tti_cuda_job_run(int device, const struct tti_cuda_job *job);
void tti_cuda_job_drop(const struct tti_cuda_job *job);

/* Called by the thread of a stream: it uses this device from now on, and runs jobs. */
void tti_cuda_device_enter(int device);
/* 0, or EPOOL with a text: jobs must not wait for streams. */
int tti_cuda_device_may_wait(const char *what);

/* -- stream.c ------------------------------------------------------------------------------- */

enum tti_cuda_stream_role {
	TTI_CUDA_STREAM_OWNED, /* a program destroys it */
	TTI_CUDA_STREAM_LEGACY,
	TTI_CUDA_STREAM_PER_THREAD,
};

struct tti_cuda_stream *tti_cuda_stream_make(int device, enum tti_cuda_stream_role role,
					     unsigned flags, int priority);
/* It runs what it has and ends. */
void tti_cuda_stream_end(struct tti_cuda_stream *stream);
/* The device's legacy stream, if there is one; for all its other streams to wait for. */
struct tti_cuda_stream *tti_cuda_stream_legacy(int device);
/* Make it that. False: there is one already. */
bool tti_cuda_stream_set_legacy(struct tti_cuda_stream *stream);

enum tti_cuda_stream_role tti_cuda_stream_role(const struct tti_cuda_stream *stream);

/* How many streams of the device that wait for the legacy stream are captured. */
int tti_cuda_stream_ncaptured(int device);
/* As synchronize() of programs, which captures forbid, too. */
int tti_cuda_stream_wait(struct tti_cuda_stream *stream);

/* Where the stream is now. An idle one is past *out at once. Else `stamp` (may be NULL) is queued,
 * and *out is behind it; of an idle one, and if this fails, it is the caller's. */
int tti_cuda_stream_mark(struct tti_cuda_stream *stream, const struct tti_cuda_job *stamp,
			 struct tti_cuda_point *out, bool *out_is_idle);

/* What the device's streams have now, in *out (free() it) of *n that are not past. */
int tti_cuda_stream_busy(int device, struct tti_cuda_point **out, size_t *n);

/* Another hold of the same point. */
struct tti_cuda_point tti_cuda_point_share(const struct tti_cuda_point *point);

/* -- copy.c --------------------------------------------------------------------------------- */

/* Whether one of two jobs of one kind may take the place of the other in an executable graph.
 * Copies keep their direction, and fills are of one row or of several. */
bool tti_cuda_job_is_like(const struct tti_cuda_job *job, const struct tti_cuda_job *other);

/* -- event.c -------------------------------------------------------------------------------- */

/* For launches of graphs: what of a job must be done before and behind its launch. */
int tti_cuda_event_before_launch(const struct tti_cuda_job *job, struct tti_cuda_stream *stream);
int tti_cuda_event_behind_launch(const struct tti_cuda_job *job, struct tti_cuda_stream *stream);

/* -- capture.c ------------------------------------------------------------------------------ */

/* *taken: the stream is captured, and all is done: the job is a node or dropped. */
int tti_cuda_capture_push(struct tti_cuda_stream *stream, const struct tti_cuda_job *job,
			  bool *taken);
/* The same of all captured streams of a device, or of those that wait for the legacy stream. */
int tti_cuda_capture_refuse_device(int device, bool blocking_alone, int error, const char *what);
/* The stream is destroyed. */
void tti_cuda_capture_leave(struct tti_cuda_stream *stream);

/* A moment of a capture, held by an event. */
struct tti_cuda_capture_moment;

/* NULL in *out: the stream is not captured. */
int tti_cuda_capture_moment_take(struct tti_cuda_stream *stream,
				 struct tti_cuda_capture_moment **out);
struct tti_cuda_capture_moment *
tti_cuda_capture_moment_share(struct tti_cuda_capture_moment *moment);
void tti_cuda_capture_moment_release(struct tti_cuda_capture_moment *moment);
/* What comes in `stream` is behind the moment: the stream joins the capture. */
int tti_cuda_capture_moment_await(struct tti_cuda_capture_moment *moment,
				  struct tti_cuda_stream *stream);
/* EINVAL if the capture has ended. Else ECAPTUREDEVENT, and the capture is invalid if this spoils
 * it. */
int tti_cuda_capture_moment_refuse(struct tti_cuda_capture_moment *moment, bool spoils,
				   const char *what);

#endif
