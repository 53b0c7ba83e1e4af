/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/launch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/device.h"
#include "engine/facts.h"

/* What a multiprocessor keeps of its shared memory for each block. */
#define SHARED_RESERVED 1024
#define BLOCKS_MOST     32

/* Begins with what tti_cuda_node_launch() gives; behind it are the arguments. */
struct work {
	struct tti_cuda_launch launch;
	void *args[];
};

/* 1 + the device. */
static _Thread_local int self;

int tti_cuda_kernel_self(void)
{
	return self;
}

void tti_cuda_kernel_join(int number)
{
	self = number;
}

/* Each argument at a multiple of 16. */
static size_t padded(size_t nbytes)
{
	return (nbytes + 15) / 16 * 16;
}

static void copy_args(struct work *work, size_t head, void **args)
{
	const struct tti_cuda_runnable *kernel = work->launch.kernel;
	size_t nbytes = head;

	for (size_t at = 0; at < kernel->nargs; at++) {
		work->args[at] = (char *)work + nbytes;
		memcpy(work->args[at], args[at], kernel->arg_bytes[at]);
		nbytes += padded(kernel->arg_bytes[at]);
	}
}

/* With copies of the arguments. NULL: no memory. */
static struct work *create(const struct tti_cuda_launch *launch)
{
	const struct tti_cuda_runnable *kernel = launch->kernel;
	const size_t head = padded(sizeof(struct work) + kernel->nargs * sizeof(void *));
	size_t nbytes = head;
	struct work *work;

	for (size_t at = 0; at < kernel->nargs; at++)
		nbytes += padded(kernel->arg_bytes[at]);
	work = calloc(1, nbytes);
	if (!work)
		return NULL;
	work->launch = *launch;
	work->launch.args = work->args;
	copy_args(work, head, launch->args);
	return work;
}

/* -- Running ------------------------------------------------------------------------------ */

/* In place of addresses of guarded memory, where its bytes are. */
static void reach(char *arg, size_t nbytes)
{
	uint64_t address;

	for (; nbytes >= sizeof(address); nbytes -= sizeof(address), arg += sizeof(address)) {
		memcpy(&address, arg, sizeof(address));
		address = (uintptr_t)tti_cuda_reach(address);
		memcpy(arg, &address, sizeof(address));
	}
}

static int call(const struct tti_cuda_launch *launch)
{
	return launch->kernel->run(launch->args, launch->grid, launch->block, launch->shared_bytes);
}

/* A function of the program does not call tti_cuda_reach(). What the launch itself has stays, because
 * a graph may be launched again when the memory is elsewhere. */
static int call_reached(const struct tti_cuda_launch *launch)
{
	struct work *work = create(launch);
	int error;

	if (!work)
		return TTI_CUDA_ENOMEM;
	for (size_t at = 0; at < launch->kernel->nargs; at++)
		reach(work->args[at], launch->kernel->arg_bytes[at]);
	error = call(&work->launch);
	free(work);
	return error;
}

/* A device whose kernel has failed runs no more of them. */
static int run(void *arg)
{
	const struct tti_cuda_launch *launch = &((struct work *)arg)->launch;
	int error;

	if (tti_cuda_device_failure(tti_cuda_device_current()))
		return 0;
	self = tti_cuda_device_current() + 1;
	tti_cuda_host_begin();
	error = launch->kernel->is_of_program && tti_cuda_memory_is_guarded() ? call_reached(launch)
									      : call(launch);
	tti_cuda_host_end();
	self = 0;
	if (!error)
		return 0;
	return tti_cuda_fail(error > 0 ? error : TTI_CUDA_ELAUNCH, "kernel %s failed with %d",
			     launch->kernel->name, error);
}

/* -- Launches ----------------------------------------------------------------------------- */

static bool is_size_good(const unsigned n[3], unsigned x, unsigned y, unsigned z)
{
	return n[0] >= 1 && n[0] <= x && n[1] >= 1 && n[1] <= y && n[2] >= 1 && n[2] <= z;
}

static int check(const char *caller, const struct tti_cuda_launch *launch, int too_large)
{
	const unsigned *grid = launch->grid, *block = launch->block;

	if (!is_size_good(grid, 2147483647, 65535, 65535) ||
	    !is_size_good(block, TTI_CUDA_THREADS_MOST, TTI_CUDA_THREADS_MOST, 64) ||
	    block[0] * block[1] * block[2] > TTI_CUDA_THREADS_MOST)
		return tti_cuda_fail(
			too_large,
			"%s(): kernel %s in a grid of %u x %u x %u blocks of %u x %u x %u "
			"threads: pass at least 1 of each, and at most %d threads",
			caller, launch->kernel->name, grid[0], grid[1], grid[2], block[0], block[1],
			block[2], TTI_CUDA_THREADS_MOST);
	if (launch->shared_bytes > TTI_CUDA_SHARED_MOST)
		return tti_cuda_fail(
			too_large,
			"%s(): kernel %s with %u bytes of shared memory: a block has %d at most",
			caller, launch->kernel->name, launch->shared_bytes, TTI_CUDA_SHARED_MOST);
	if (launch->kernel->nargs && !launch->args)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): the list of %zu arguments of kernel %s is NULL", caller,
				     launch->kernel->nargs, launch->kernel->name);
	return 0;
}

int tti_cuda_launch_job(const char *caller, const struct tti_cuda_launch *launch, int too_large,
			struct tti_cuda_job *out)
{
	const int error = check(caller, launch, too_large);
	struct work *work;

	if (error)
		return error;
	work = create(launch);
	if (!work)
		return tti_cuda_fail(TTI_CUDA_ENOMEM,
				     "%s(): no memory for the arguments of kernel %s", caller,
				     launch->kernel->name);
	*out = (struct tti_cuda_job){ run, free, work, TTI_CUDA_NODE_KERNEL, NULL };
	return 0;
}

const struct tti_cuda_launch *tti_cuda_node_launch(const struct tti_cuda_node *node)
{
	const struct work *work =
		tti_cuda_node_kind(node) == TTI_CUDA_NODE_KERNEL ? tti_cuda_node_arg(node) : NULL;

	return work ? &work->launch : NULL;
}

/* -- How much room there is --------------------------------------------------------------- */

static size_t fact(int attribute, int device)
{
	int value = 0;

	(void)tti_cuda_facts_attribute(attribute, device, &value);
	return (size_t)value;
}

/* The numbers of the attributes are those of facts.c. */
int tti_cuda_launch_occupancy(int device, int nthreads, size_t shared_bytes)
{
	size_t most = fact(81, device) / (shared_bytes + SHARED_RESERVED);

	if (most > fact(39, device) / (size_t)nthreads)
		most = fact(39, device) / (size_t)nthreads;
	return most < BLOCKS_MOST ? (int)most : BLOCKS_MOST;
}

size_t tti_cuda_launch_shared(int device, int nblocks)
{
	size_t each = fact(81, device) / (size_t)nblocks;

	each = each > SHARED_RESERVED ? each - SHARED_RESERVED : 0;
	return each < TTI_CUDA_SHARED_MOST ? each : TTI_CUDA_SHARED_MOST;
}
