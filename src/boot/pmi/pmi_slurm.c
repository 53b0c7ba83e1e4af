/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1 as Slurm's own library has it, over the messages of Slurm: it needs no plug-in of srun. */
#include <dlfcn.h>
#include <stddef.h>

#include "boot/pmi/pmi.h"
#include "boot/pmi/pmi_event.h"
#include "boot/pmi/pmi_library.h"
#include "util/error.h"

#define LIBRARY "libpmi.so.0"

struct functions {
	int (*init)(int *is_spawned);
	int (*get_rank)(int *rank);
	int (*get_size)(int *size);
	int (*kvs_name)(char *name, int size);
	int (*put)(const char *kvsname, const char *key, const char *value);
	int (*commit)(const char *kvsname);
	int (*barrier)(void);
	int (*get)(const char *kvsname, const char *key, char *value, int size);
};

static const struct tti_pmi_symbol symbols[] = {
	{ "PMI_Init", offsetof(struct functions, init) },
	{ "PMI_Get_rank", offsetof(struct functions, get_rank) },
	{ "PMI_Get_size", offsetof(struct functions, get_size) },
	{ "PMI_KVS_Get_my_name", offsetof(struct functions, kvs_name) },
	{ "PMI_KVS_Put", offsetof(struct functions, put) },
	{ "PMI_KVS_Commit", offsetof(struct functions, commit) },
	{ "PMI_Barrier", offsetof(struct functions, barrier) },
	{ "PMI_KVS_Get", offsetof(struct functions, get) },
	{ NULL, 0 },
};

#define REMEDY                                                                               \
	"start the job with srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list says what there " \
	"is), install it (Debian: libpmi0), or set TUTTI_COMM_ID to host:port of rank 0, "   \
	"with TUTTI_COMM_SECRET"

static tutti_status check(int rc, const char *what)
{
	return rc == 0 ? TUTTI_OK
		       : tti_fail(TUTTI_ESYS, "Slurm's " LIBRARY ": %s failed with %d; " REMEDY,
				  what, rc);
}

static tutti_status begin(const struct functions *call, const struct tti_pmi_call *said)
{
	int is_spawned = 0, rank = -1, size = -1;

	TTI_TRY(check(call->init(&is_spawned), "PMI_Init()"));
	TTI_TRY(check(call->get_rank(&rank), "PMI_Get_rank()"));
	TTI_TRY(check(call->get_size(&size), "PMI_Get_size()"));
	/* A library of the same name for another launcher takes this process for one alone. */
	if (rank != said->rank || size != said->nranks)
		return tti_fail(TUTTI_EUSAGE,
				LIBRARY " says rank %d of %d, and srun says rank %d of %d: it is "
					"not Slurm's; " REMEDY,
				rank, size, said->rank, said->nranks);
	return TUTTI_OK;
}

/* The library waits for the other ranks for as long as they need. */
static tutti_status wait_for_all(const struct functions *call, int64_t deadline_ns)
{
	int rc = 0;
	const tutti_status st = tti_pmi_event_call(call->barrier, deadline_ns, &rc);

	if (st == TUTTI_ETIMEOUT)
		return tti_pmi_event_late();
	TTI_TRY(st);
	return check(rc, "PMI_Barrier()");
}

tutti_status tti_pmi_slurm(const struct tti_pmi_call *said)
{
	struct functions call;
	char name[257] = "";

	TTI_TRY(tti_pmi_library_load(LIBRARY, RTLD_GLOBAL,
				     "srun without a plug-in for PMI (--mpi=none)", REMEDY, symbols,
				     &call));
	TTI_TRY(begin(&call, said));
	TTI_TRY(check(call.kvs_name(name, sizeof(name)), "PMI_KVS_Get_my_name()"));
	if (said->value) {
		TTI_TRY(check(call.put(name, said->key, said->value), "PMI_KVS_Put()"));
		TTI_TRY(check(call.commit(name), "PMI_KVS_Commit()"));
	}
	TTI_TRY(wait_for_all(&call, said->deadline_ns));
	if (said->value)
		return TUTTI_OK;
	return check(call.get(name, said->key, said->out, (int)said->out_size), "PMI_KVS_Get()");
}
