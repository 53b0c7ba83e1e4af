/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of launchers that hang: Slurm's PMI, whose barrier does not end, and PMIx, whose
 * PMIx_Finalize() does not. This process is rank 0 of 2. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static int hang(void)
{
	for (;;)
		(void)pause();
	return 0;
}

#ifdef FAKE_PMI
static int ninits;

int fake_ninits(void);
int fake_ninits(void)
{
	return ninits;
}

int PMI_Init(int *is_spawned);
int PMI_Init(int *is_spawned)
{
	*is_spawned = 0;
	ninits++;
	return 0;
}

int PMI_Get_rank(int *rank);
int PMI_Get_rank(int *rank)
{
	*rank = 0;
	return 0;
}

int PMI_Get_size(int *size);
int PMI_Get_size(int *size)
{
	*size = 2;
	return 0;
}

int PMI_KVS_Get_my_name(char *name, int size);
int PMI_KVS_Get_my_name(char *name, int size)
{
	return snprintf(name, (size_t)size, "kvs") < 0;
}

int PMI_KVS_Put(const char *kvsname, const char *key, const char *value);
int PMI_KVS_Put(const char *kvsname, const char *key, const char *value)
{
	return !*kvsname || !*key || !*value;
}

int PMI_KVS_Commit(const char *kvsname);
int PMI_KVS_Commit(const char *kvsname)
{
	return !*kvsname;
}

int PMI_Barrier(void);
int PMI_Barrier(void)
{
	return hang();
}

int PMI_KVS_Get(const char *kvsname, const char *key, char *value, int size);
int PMI_KVS_Get(const char *kvsname, const char *key, char *value, int size)
{
	return !*kvsname || !*key || snprintf(value, (size_t)size, "none") < 0;
}
#else
int PMIx_Init(char *proc, void *infos, size_t ninfos);
int PMIx_Init(char *proc, void *infos, size_t ninfos)
{
	(void)infos;
	/* The name of the job, of 256 bytes, and a rank. */
	memset(proc, 0, 256 + sizeof(uint32_t));
	return ninfos != 0;
}

int PMIx_Finalize(const void *infos, size_t ninfos);
int PMIx_Finalize(const void *infos, size_t ninfos)
{
	return infos || ninfos ? 1 : hang();
}

int PMIx_Put(uint8_t scope, const char *key, void *value);
int PMIx_Put(uint8_t scope, const char *key, void *value)
{
	return !scope || !*key || !value;
}

int PMIx_Commit(void);
int PMIx_Commit(void)
{
	return 0;
}

int PMIx_Fence_nb(const void *procs, size_t nprocs, const void *infos, size_t ninfos,
		  void (*done)(int status, void *self), void *self);
int PMIx_Fence_nb(const void *procs, size_t nprocs, const void *infos, size_t ninfos,
		  void (*done)(int status, void *self), void *self)
{
	done(procs || nprocs || !infos || !ninfos, self);
	return 0;
}

int PMIx_Get(const void *proc, const char *key, const void *infos, size_t ninfos, void **out);
int PMIx_Get(const void *proc, const char *key, const void *infos, size_t ninfos, void **out)
{
	*out = NULL;
	return !proc || !*key || infos || !ninfos;
}

const char *PMIx_Error_string(int status);
const char *PMIx_Error_string(int status)
{
	return status ? "an error" : "none";
}
#endif
