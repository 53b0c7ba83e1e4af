/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event has that processes share (cudaEventInterprocess): how often it was recorded, and which of the
 * records have come to pass, in memory that all of them map.
 *
 * Who waits for an event waits for the last record there was when it began to, of whichever process. If that process
 * ends before the record comes to pass, the wait ends with an error.
 *
 * Owner: whoever created or opened it, and what is queued; each releases its hold. Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_IPC_EVENT_H
#define TUTTI_CUDAHOST_ENGINE_IPC_EVENT_H

#include <stdint.h>

#include "engine/stream.h"

struct tti_cuda_ipc_event;

/* ENOMEM, ESYS. */
int tti_cuda_ipc_event_create(int device, struct tti_cuda_ipc_event **out);
/* By what get_handle() of another process gave; EINVAL, EHANDLE, ECONTEXT, EPOOL as ipc_handle.h says. */
int tti_cuda_ipc_event_open(const uint8_t bytes[64], struct tti_cuda_ipc_event **out,
			    int *out_device);
void tti_cuda_ipc_event_release(struct tti_cuda_ipc_event *event);

/* EINVAL for one that was opened: the process that created it gives handles. */
int tti_cuda_ipc_event_get_handle(const struct tti_cuda_ipc_event *event, uint8_t out[64]);

/* As the functions of event.h; a stream that is captured is refused. */
int tti_cuda_ipc_event_record(struct tti_cuda_ipc_event *event, struct tti_cuda_stream *stream);
int tti_cuda_ipc_event_await(struct tti_cuda_ipc_event *event, struct tti_cuda_stream *stream);
int tti_cuda_ipc_event_query(struct tti_cuda_ipc_event *event);
int tti_cuda_ipc_event_synchronize(struct tti_cuda_ipc_event *event);

#endif
