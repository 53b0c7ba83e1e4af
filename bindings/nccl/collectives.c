/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives, with settings and without, sends and receives. */
#include "binding.h"

#include <stdlib.h>

struct call {
	tutti_collective coll;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
	ncclComm_t comm;
	cudaStream_t stream;
	const ncclCollConfig_t *config;
	char algorithms[TTI_NCCL_ALGORITHMS]; /* "": whichever is best */
};

static tutti_status submit_as_set(const struct call *call, tutti_stream_t stream)
{
	const tutti_type type = (tutti_type)call->type;
	const tutti_op op = (tutti_op)call->op;
	const tutti_comm_t comm = call->comm->comm;

	switch ((int)call->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(call->send, call->recv, call->count, type, op, comm,
					stream);
	case TUTTI_BROADCAST:
		return tutti_broadcast(call->send, call->recv, call->count, type, call->root, comm,
				       stream);
	case TUTTI_REDUCE:
		return tutti_reduce(call->send, call->recv, call->count, type, op, call->root, comm,
				    stream);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(call->send, call->recv, call->count, type, comm, stream);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(call->send, call->recv, call->count, type, op, comm,
					    stream);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(call->send, call->recv, call->count, type, comm, stream);
	case TUTTI_GATHER:
		return tutti_gather(call->send, call->recv, call->count, type, call->root, comm,
				    stream);
	case TUTTI_SCATTER:
		return tutti_scatter(call->send, call->recv, call->count, type, call->root, comm,
				     stream);
	default:
		break;
	}
	return call->recv ? tutti_recv(call->recv, call->count, type, call->root, comm, stream)
			  : tutti_send(call->send, call->count, type, call->root, comm, stream);
}

static tutti_status submit(const void *work, tutti_stream_t stream)
{
	const struct call *const call = work;
	const tutti_comm_t comm = call->comm->comm;
	tutti_status st;

	if (!*call->algorithms)
		return submit_as_set(call, stream);
	st = tutti_comm_set_algorithm(comm, call->algorithms);
	if (st != TUTTI_OK)
		return st;
	st = submit_as_set(call, stream);
	(void)!tutti_comm_set_algorithm(comm, NULL); /* it cannot fail where the other did not */
	return st;
}

/* An event that is recorded behind the call. */
struct completion {
	ncclComm_t comm;
	cudaEvent_t event;
	cudaStream_t stream;
};

static ncclResult_t record(void *work)
{
	const struct completion completion = *(struct completion *)work;

	free(work);
	return tti_nccl_event_record(completion.event, completion.stream, completion.comm);
}

static ncclResult_t add_completion(const struct call *call)
{
	struct completion *work = calloc(1, sizeof(*work));

	if (work)
		*work = (struct completion){ call->comm, call->config->launchCompletionEvent,
					     call->stream };
	return tti_nccl_job_add(
		&(struct tti_nccl_job){ TTI_NCCL_LATER, call->comm, record, free, work });
}

/* A rank that is not the root need not have what only the root uses. */
static bool is_used(const struct call *call, bool for_root_alone)
{
	int rank;

	return call->count > 0 &&
	       (!for_root_alone || tutti_comm_rank(call->comm->comm, &rank) != TUTTI_OK ||
		rank == call->root);
}

static ncclResult_t look_at_buffers(const struct call *call)
{
	static const char *const names[] = {
		[TUTTI_ALL_REDUCE] = "ncclAllReduce",
		[TUTTI_BROADCAST] = "ncclBroadcast",
		[TUTTI_REDUCE] = "ncclReduce",
		[TUTTI_ALL_GATHER] = "ncclAllGather",
		[TUTTI_REDUCE_SCATTER] = "ncclReduceScatter",
		[TUTTI_ALL_TO_ALL] = "ncclAlltoAll",
		[TUTTI_GATHER] = "ncclGather",
		[TUTTI_SCATTER] = "ncclScatter",
	};
	const tutti_collective coll = call->coll;
	const char *name = call->recv ? "ncclRecv" : "ncclSend";
	ncclResult_t result = ncclSuccess;

	if (coll != TUTTI_SEND_RECV)
		name = names[coll];
	if (is_used(call, coll == TUTTI_BROADCAST || coll == TUTTI_SCATTER))
		result = tti_nccl_look(call->comm, name, "sendbuff", call->send);
	if (result == ncclSuccess && is_used(call, coll == TUTTI_REDUCE || coll == TUTTI_GATHER))
		result = tti_nccl_look(call->comm, name, "recvbuff", call->recv);
	return result;
}

static ncclResult_t make_call(const struct call *call)
{
	ncclResult_t result = tti_nccl_comm_check(call->comm);
	struct call reached = *call;

	if (result == ncclSuccess)
		result = tti_nccl_check_type(call->comm, call->type);
	if (result == ncclSuccess)
		result = tti_nccl_check_op(call->comm, call->op);
	if (result == ncclSuccess)
		result = tti_nccl_call_config_check(call->comm, call->config, call->stream);
	if (result == ncclSuccess)
		result = tti_nccl_call_algorithms(call->comm, call->config, call->coll,
						  reached.algorithms);
	if (result != ncclSuccess)
		return result;
	if (!call->comm->has_kernels && tti_nccl_has_gpus())
		result = look_at_buffers(call);
	reached.send = tti_nccl_reach_of(call->comm, call->send);
	reached.recv = tti_nccl_reach_of(call->comm, call->recv);
	if (result == ncclSuccess)
		result = tti_nccl_do(&(struct tti_nccl_action){
			call->comm, call->stream, call->op, submit, &reached, sizeof(reached) });
	if (result == ncclSuccess && call->config && call->config->launchCompletionEvent)
		result = add_completion(call);
	return result;
}

/* -- Collectives ------------------------------------------------------------------------ */

ncclResult_t pncclAllReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
				  const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_ALL_REDUCE, send, recv, count, type, op, 0, comm,
					 stream, config, "" });
}
ALSO_NAMED(ncclAllReduceConfig);

ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return pncclAllReduceConfig(send, recv, count, type, op, comm, stream, NULL);
}
ALSO_NAMED(ncclAllReduce);

ncclResult_t pncclBroadcastConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				  int root, ncclComm_t comm, cudaStream_t stream,
				  const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_BROADCAST, send, recv, count, type, ncclSum, root,
					 comm, stream, config, "" });
}
ALSO_NAMED(ncclBroadcastConfig);

ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
			    int root, ncclComm_t comm, cudaStream_t stream)
{
	return pncclBroadcastConfig(send, recv, count, type, root, comm, stream, NULL);
}
ALSO_NAMED(ncclBroadcast);

ncclResult_t pncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
			cudaStream_t stream)
{
	return pncclBroadcastConfig(buffer, buffer, count, type, root, comm, stream, NULL);
}
ALSO_NAMED(ncclBcast);

ncclResult_t pncclReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
			       const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_REDUCE, send, recv, count, type, op, root, comm,
					 stream, config, "" });
}
ALSO_NAMED(ncclReduceConfig);

ncclResult_t pncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return pncclReduceConfig(send, recv, count, type, op, root, comm, stream, NULL);
}
ALSO_NAMED(ncclReduce);

ncclResult_t pncclAllGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				  ncclComm_t comm, cudaStream_t stream,
				  const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_ALL_GATHER, send, recv, count, type, ncclSum, 0,
					 comm, stream, config, "" });
}
ALSO_NAMED(ncclAllGatherConfig);

ncclResult_t pncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
			    ncclComm_t comm, cudaStream_t stream)
{
	return pncclAllGatherConfig(send, recv, count, type, comm, stream, NULL);
}
ALSO_NAMED(ncclAllGather);

ncclResult_t pncclReduceScatterConfig(const void *send, void *recv, size_t count,
				      ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
				      cudaStream_t stream, const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_REDUCE_SCATTER, send, recv, count, type, op, 0, comm,
					 stream, config, "" });
}
ALSO_NAMED(ncclReduceScatterConfig);

ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
				ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return pncclReduceScatterConfig(send, recv, count, type, op, comm, stream, NULL);
}
ALSO_NAMED(ncclReduceScatter);

ncclResult_t pncclAlltoAllConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				 ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_ALL_TO_ALL, send, recv, count, type, ncclSum, 0,
					 comm, stream, config, "" });
}
ALSO_NAMED(ncclAlltoAllConfig);

ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream)
{
	return pncclAlltoAllConfig(send, recv, count, type, comm, stream, NULL);
}
ALSO_NAMED(ncclAlltoAll);

ncclResult_t pncclGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
			       int root, ncclComm_t comm, cudaStream_t stream,
			       const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_GATHER, send, recv, count, type, ncclSum, root, comm,
					 stream, config, "" });
}
ALSO_NAMED(ncclGatherConfig);

ncclResult_t pncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			 ncclComm_t comm, cudaStream_t stream)
{
	return pncclGatherConfig(send, recv, count, type, root, comm, stream, NULL);
}
ALSO_NAMED(ncclGather);

ncclResult_t pncclScatterConfig(const void *send, void *recv, size_t count, ncclDataType_t type,
				int root, ncclComm_t comm, cudaStream_t stream,
				const ncclCollConfig_t *config)
{
	return make_call(&(struct call){ TUTTI_SCATTER, send, recv, count, type, ncclSum, root,
					 comm, stream, config, "" });
}
ALSO_NAMED(ncclScatterConfig);

ncclResult_t pncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
			  ncclComm_t comm, cudaStream_t stream)
{
	return pncclScatterConfig(send, recv, count, type, root, comm, stream, NULL);
}
ALSO_NAMED(ncclScatter);

/* -- Between two ranks -------------------------------------------------------------------- */

/* Without a receive buffer the call would be a send, so an empty receive needs an address. */
static char nowhere;

ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		       ncclComm_t comm, cudaStream_t stream)
{
	return make_call(&(struct call){ TUTTI_SEND_RECV, send, NULL, count, type, ncclSum, peer,
					 comm, stream, NULL, "" });
}
ALSO_NAMED(ncclSend);

ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		       cudaStream_t stream)
{
	if (!recv && count > 0)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "a receive of %zu elements goes to NULL", count);
	return make_call(&(struct call){ TUTTI_SEND_RECV, NULL, recv ? recv : &nowhere, count, type,
					 ncclSum, peer, comm, stream, NULL, "" });
}
ALSO_NAMED(ncclRecv);
