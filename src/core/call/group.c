/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/group.h"

#include <stdio.h>

#include "core/handle.h"
#include "util/error.h"

_Thread_local struct tti_call_group tti_call_group;

tutti_status tti_group_refuse(tutti_comm_t handle, const char *name)
{
	return tti_group_is_open() ? tti_handle_fail(handle, TUTTI_EUSAGE,
						     "%s() inside a group: end it first", name)
				   : TUTTI_OK;
}

tutti_status tti_group_remember(tutti_status status)
{
	if (status < 0 && tti_group_is_open() && tti_call_group.error == TUTTI_OK) {
		tti_call_group.error = status;
		(void)snprintf(tti_call_group.text, sizeof(tti_call_group.text), "%s",
			       tti_error_text());
	}
	return status;
}

tutti_status tti_group_add_call(const struct tti_queued_call *call)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_enter(call->handle, &comm));
	if (tti_vec_push(&tti_call_group.calls, *call)) {
		(void)tti_args_take(&call->args);
		return TUTTI_OK;
	}
	tti_handle_leave(call->handle);
	return tti_fail(TUTTI_ENOMEM, "group: out of memory");
}

tutti_status tti_group_add_init(tutti_comm_t handle)
{
	if (!tti_vec_push(&tti_call_group.inits, handle))
		return tti_group_remember(tti_fail(TUTTI_ENOMEM, "group: out of memory"));
	return TUTTI_OK;
}

void tti_group_drop_init(tutti_comm_t handle)
{
	tti_assert(tti_call_group.inits.n > 0 &&
		   tti_call_group.inits.at[tti_call_group.inits.n - 1] == handle);
	tti_call_group.inits.n--;
}

void tti_group_clear(void)
{
	tti_call_group.error = TUTTI_OK;
	for (size_t i = 0; i < tti_call_group.calls.n; i++) {
		tti_args_drop(&tti_call_group.calls.at[i].args);
		tti_handle_leave(tti_call_group.calls.at[i].handle);
	}
	tti_vec_release(&tti_call_group.calls);
	tti_vec_release(&tti_call_group.inits);
}
