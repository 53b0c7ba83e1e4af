/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of libtutti_kernels_host.so, for the driver on host memory. */
#include "device/kernels_host.h"

#include <stdatomic.h>

#include "device/abi.h"
#include "device/families.h"
#include "device/host_run.h"

/* Numbers of CUDA's errors. */
#define OUT_OF_MEMORY   2
#define INVALID_VALUE   1
#define MOST_OF_A_BLOCK ((unsigned)TTI_DEV_THREADS_MAX)

static struct tti_host_driver driver;
static struct tti_dev_traffic traffic;

/* The launch says which blocks there are: the driver's grid is their number. */
static int run(void **args, const unsigned grid[3], const unsigned block[3], size_t shared_bytes)
{
	const struct tti_dev_launch *launch = args[0];
	const struct tti_dev_host host = {
		.nthreads = block[0],
		.view = driver.reach,
		.join = driver.join,
		.of = driver.self ? driver.self() : 0,
		.traffic = &traffic,
	};

	(void)shared_bytes; /* is not of the GPU */
	if (grid[0] != launch->ncalls * launch->nblocks || block[0] < 1 ||
	    block[0] > MOST_OF_A_BLOCK)
		return INVALID_VALUE;
	return tti_dev_host_run(launch, &host) == TUTTI_OK ? 0 : OUT_OF_MEMORY;
}

__attribute__((visibility("default"))) int
tti_kernels_host_register(const struct tti_host_driver *given)
{
	static const char *const names[] = {
#define X(family) "tutti_run_" #family,
		TTI_DEV_FAMILY_MAP(X)
#undef X
			"tutti_run_copy",
	};
	static const size_t nbytes = sizeof(struct tti_dev_launch);
	int error = 0;

	driver = *given;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !error; i++)
		error = driver.add(NULL, names[i], run, &nbytes, 1);
	return error;
}

__attribute__((visibility("default"))) void tti_kernels_host_traffic(uint64_t *read,
								     uint64_t *written)
{
	*read = atomic_load(&traffic.read);
	*written = atomic_load(&traffic.written);
}
