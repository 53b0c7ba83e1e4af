/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handle.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "core/comm.h"
#include "core/comm_error.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"

void tti_freed_keep(struct tti_freed_list *list, struct tti_freed *freed)
{
	freed->next = NULL;
	tti_fork_lock();
	if (list->n++ == 0)
		list->oldest = freed;
	else
		list->newest->next = freed;
	list->newest = freed;
	tti_fork_unlock();
}

struct tti_freed *tti_freed_reuse(struct tti_freed_list *list, int keep)
{
	struct tti_freed *freed = NULL;

	tti_fork_lock();
	if (list->n > keep) {
		freed = list->oldest;
		list->oldest = freed->next;
		list->n--;
	}
	tti_fork_unlock();
	return freed;
}

static struct tti_freed_list freed_handles;

/* Handles kept before any is used again. */
#define KEEP 4096

tutti_status tti_handle_create(struct tti_comm *comm, struct tutti_comm **out)
{
	struct tutti_comm *handle = (struct tutti_comm *)tti_freed_reuse(&freed_handles, KEEP);

	if (!handle)
		handle = tti_zalloc(sizeof(*handle));
	if (!handle)
		return tti_fail(TUTTI_ENOMEM, "communicator handle: out of memory");
	tti_fork_watch();
	handle->pid = tti_fork_pid();
	atomic_fetch_add(&handle->generation, 1);
	atomic_store(&handle->comm, comm);
	*out = handle;
	return TUTTI_OK;
}

void tti_handle_free(struct tutti_comm *handle)
{
	atomic_store(&handle->comm, NULL);
	tti_freed_keep(&freed_handles, &handle->freed);
}

struct tti_comm *tti_handle_find(struct tutti_comm *handle)
{
	struct tti_comm *comm;

	if (!handle || handle->pid != tti_fork_pid())
		return NULL;
	/* Count first, then load; tti_handle_take() does it in reverse order, so one of the two
	 * sees the other. */
	atomic_fetch_add(&handle->users, 1);
	comm = atomic_load(&handle->comm);
	if (!comm)
		tti_handle_leave(handle);
	return comm;
}

tutti_status tti_handle_enter(struct tutti_comm *handle, struct tti_comm **out)
{
	if (!handle)
		return tti_fail(TUTTI_EINVAL, "the communicator is NULL: make one with "
					      "tutti_comm_init_rank() first");
	*out = tti_handle_find(handle);
	if (*out)
		return TUTTI_OK;
	TTI_TRY(tti_fork_check("communicator", handle, handle->pid));
	return tti_fail(TUTTI_EUSAGE, "communicator %p was destroyed: it can be used no more",
			(void *)handle);
}

tutti_status tti_handle_note(struct tutti_comm *handle, tutti_status status)
{
	struct tti_comm *comm = status < 0 ? tti_handle_find(handle) : NULL;

	if (!comm)
		return status;
	tti_comm_note(comm, status);
	tti_handle_leave(handle);
	return status;
}

tutti_status tti_handle_fail(struct tutti_comm *handle, tutti_status status, const char *fmt, ...)
{
	char text[TTI_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return tti_handle_note(handle, tti_fail(status, "%s", text));
}

tutti_status tti_handle_end(struct tutti_comm *handle, struct tti_comm *comm, tutti_status status)
{
	tti_comm_note(comm, status);
	tti_handle_leave(handle);
	return status;
}

tutti_status tti_handle_check_out(struct tutti_comm *handle, const void *out, const char *what)
{
	return out ? TUTTI_OK
		   : tti_handle_fail(handle, TUTTI_EINVAL, "out is NULL: pass the address of %s",
				     what);
}

tutti_status tti_handle_fail_busy(struct tutti_comm *handle)
{
	return tti_handle_fail(handle, TUTTI_EUSAGE,
			       "another thread is in a call on communicator %p: one thread at "
			       "a time may call; give each thread a communicator of its own "
			       "(tutti_comm_dup())",
			       (void *)handle);
}

void tti_handle_leave(struct tutti_comm *handle)
{
	atomic_fetch_sub_explicit(&handle->users, 1, memory_order_release);
}

struct tti_comm *tti_handle_take(struct tutti_comm *handle)
{
	const struct timespec nap = { .tv_nsec = 50 * 1000 };
	struct tti_comm *comm = atomic_exchange(&handle->comm, NULL);

	while (comm && atomic_load(&handle->users) > 0)
		nanosleep(&nap, NULL);
	return comm;
}

void tti_handle_await_end(_Atomic(struct tti_comm *) const *lender)
{
	const struct timespec nap = { .tv_nsec = 50 * 1000 };

	while (atomic_load(lender))
		nanosleep(&nap, NULL);
}
