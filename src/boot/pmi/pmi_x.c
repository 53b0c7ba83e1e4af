/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx. MPI in the same process has its own use of the library, which counts its users. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/pmi/pmi.h"
#include "boot/pmi/pmi_event.h"
#include "boot/pmi/pmi_library.h"
#include "util/clock.h"
#include "util/error.h"

#define LIBRARY "libpmix.so.2"

/* From the PMIx standard; this part of its binary interface has not changed since version 2. */
#define SUCCESS     0
#define BOOL        1
#define STRING      3
#define GLOBAL      3
#define COLLECT     "pmix.collect"
#define NSLEN_MOST  255
#define KEYLEN_MOST 511

struct proc {
	char nspace[NSLEN_MOST + 1];
	uint32_t rank;
};

struct value {
	uint16_t type;
	union {
		bool flag;
		char *string;
		char room[24];
	} data;
};

struct info {
	char key[KEYLEN_MOST + 1];
	uint32_t flags;
	struct value value;
};

struct functions {
	int (*init)(struct proc *proc, struct info *infos, size_t ninfos);
	int (*finalize)(const struct info *infos, size_t ninfos);
	int (*put)(uint8_t scope, const char *key, struct value *value);
	int (*commit)(void);
	int (*fence_nb)(const struct proc *procs, size_t nprocs, const struct info *infos,
			size_t ninfos, void (*done)(int status, void *self), void *self);
	int (*get)(const struct proc *proc, const char *key, const struct info *infos,
		   size_t ninfos, struct value **out);
	const char *(*error_string)(int status);
};

static const struct tti_pmi_symbol symbols[] = {
	{ "PMIx_Init", offsetof(struct functions, init) },
	{ "PMIx_Finalize", offsetof(struct functions, finalize) },
	{ "PMIx_Put", offsetof(struct functions, put) },
	{ "PMIx_Commit", offsetof(struct functions, commit) },
	{ "PMIx_Fence_nb", offsetof(struct functions, fence_nb) },
	{ "PMIx_Get", offsetof(struct functions, get) },
	{ "PMIx_Error_string", offsetof(struct functions, error_string) },
	{ NULL, 0 },
};

/* A fence brings what others have put, so that getting a value asks nobody. */
static const struct info collect = { .key = "pmix.collect",
				     .value = { .type = BOOL, .data.flag = true } };

static void end_fence(int status, void *self)
{
	tti_pmi_event_end(self, status);
}

static tutti_status failed(const struct functions *call, const char *what, int status)
{
	return tti_fail(TUTTI_ESYS, "the launcher's PMIx says to %s: %s (%d)", what,
			call->error_string(status), status);
}

/* Wait for all ranks of the job. */
static tutti_status fence_all(const struct functions *call, int64_t deadline_ns)
{
	struct tti_pmi_event *event = tti_pmi_event_create();
	int status;

	if (!event)
		return tti_fail(TUTTI_ENOMEM, "a fence of PMIx: out of memory");
	status = call->fence_nb(NULL, 0, &collect, 1, end_fence, event);
	if (status != SUCCESS)
		end_fence(status, event);
	if (tti_pmi_event_wait(event, deadline_ns, &status) != TUTTI_OK)
		return tti_pmi_event_late();
	return status == SUCCESS ? TUTTI_OK : failed(call, "a fence", status);
}

static tutti_status put_value(const struct functions *call, const struct tti_pmi_call *said)
{
	char text[TTI_PMI_VALUE_MOST + 1];
	struct value value = { .type = STRING, .data.string = text };
	int status;

	(void)snprintf(text, sizeof(text), "%s", said->value);
	status = call->put(GLOBAL, said->key, &value);
	explicit_bzero(text, sizeof(text));
	if (status == SUCCESS)
		status = call->commit();
	return status == SUCCESS ? TUTTI_OK : failed(call, "PMIx_Put()", status);
}

static tutti_status get_value(const struct functions *call, const struct proc *proc,
			      const struct tti_pmi_call *said)
{
	struct proc root = *proc;
	struct value *value = NULL;
	tutti_status st = TUTTI_OK;
	int status;

	root.rank = 0;
	status = call->get(&root, said->key, NULL, 0, &value);
	if (status != SUCCESS)
		return failed(call, "PMIx_Get() of what rank 0 has put", status);
	if (value->type != STRING || !value->data.string ||
	    strlen(value->data.string) >= said->out_size) {
		st = tti_fail(TUTTI_EINVAL,
			      "the launcher's PMIx gives something of type %d as what rank 0 has "
			      "put: no text of less than %zu bytes",
			      value->type, said->out_size);
	} else {
		(void)snprintf(said->out, said->out_size, "%s", value->data.string);
		explicit_bzero(value->data.string, strlen(value->data.string));
	}
	/* As PMIX_VALUE_RELEASE() does for a text. */
	if (value->type == STRING)
		free(value->data.string);
	free(value);
	return st;
}

/* Guarded by the lock of tti_pmi_share_id(). */
static struct {
	struct functions call;
	struct proc proc;
	pid_t pid; /* 0: not begun */
} own;

static int finalize(void)
{
	return own.call.finalize(NULL, 0);
}

/* A launcher takes a process that ends without this for one that has crashed. */
static tutti_status finalize_own(void)
{
	const bool is_begun = own.pid == getpid();
	tutti_status st = TUTTI_OK;
	int status;

	own.pid = 0;
	if (is_begun)
		st = tti_pmi_event_call(finalize, tti_deadline(TTI_PMI_FINISH_MS), &status);
	if (st == TUTTI_ETIMEOUT)
		return tti_fail(st,
				"PMIx_Finalize() has not ended within %d ms: the launcher hangs, "
				"or has died",
				TTI_PMI_FINISH_MS);
	return st;
}

/* When the library is still there. */
static void finalize_at_exit(void)
{
	(void)!finalize_own();
}

static tutti_status begin(void)
{
	int status;

	if (own.pid)
		return TUTTI_OK;
	TTI_TRY(tti_pmi_library_load(LIBRARY, RTLD_LOCAL, "the launcher, which speaks PMIx,",
				     "install it (Debian: libpmix2) or put the folder of the "
				     "launcher's into LD_LIBRARY_PATH, or set TUTTI_COMM_ID to "
				     "host:port of rank 0, with TUTTI_COMM_SECRET",
				     symbols, &own.call));
	status = own.call.init(&own.proc, NULL, 0);
	if (status != SUCCESS)
		return failed(&own.call, "PMIx_Init()", status);
	own.pid = getpid();
	return TUTTI_OK;
}

static tutti_status exchange(const struct tti_pmi_call *said)
{
	if (own.proc.rank != (uint32_t)said->rank)
		return tti_fail(TUTTI_EUSAGE,
				"the launcher says rank %d by its variables and rank %u by PMIx: "
				"one of them is left from another launcher; unset it (PMIX_RANK "
				"or that of the other), or set TUTTI_COMM_ID",
				said->rank, own.proc.rank);
	if (said->value)
		TTI_TRY(put_value(&own.call, said));
	TTI_TRY(fence_all(&own.call, said->deadline_ns));
	return said->value ? TUTTI_OK : get_value(&own.call, &own.proc, said);
}

tutti_status tti_pmi_x(const struct tti_pmi_call *said)
{
	static bool is_registered;

	TTI_TRY(begin());
	if (!is_registered)
		is_registered = atexit(finalize_at_exit) == 0;
	return exchange(said);
}

tutti_status tti_pmi_x_slurm(const struct tti_pmi_call *said)
{
	tutti_status exchanged, left;

	TTI_TRY(begin());
	exchanged = exchange(said);
	left = finalize_own();
	return exchanged != TUTTI_OK ? exchanged : left;
}
