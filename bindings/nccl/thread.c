/* SPDX-License-Identifier: BSD-3-Clause */
/* What belongs to the calling thread: its group, and what a function of CUDA refused. */
#include "binding.h"

static _Thread_local struct tti_nccl_thread thread;

struct tti_nccl_thread *tti_nccl_thread(void)
{
	return &thread;
}

bool tti_nccl_in_group(void)
{
	return thread.depth > 0;
}

/* A call that fails in a group ends the group for Tutti, too. The text of that end says nothing. */
void tti_nccl_group_spoil(ncclResult_t result)
{
	if (thread.depth == 0 || thread.spoiled != ncclSuccess)
		return;
	thread.spoiled = result;
	tutti_log_errors(0);
	if (tutti_barrier(NULL, NULL) != TUTTI_OK)
		tutti_log_errors(1);
}

struct tti_nccl_trouble tti_nccl_take_trouble(void)
{
	const struct tti_nccl_trouble taken = thread.trouble;

	thread.trouble.error = 0;
	return taken;
}
