/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_KERNELS_HOST_H
#define TTI_DEVICE_KERNELS_HOST_H

/* libtutti_kernels_host.so: the kernels as threads of the host (host_run.h), for the driver on host
 * memory. kernels.c loads it and hands it what it finds in that driver by name; the library knows
 * neither Tutti's nor the driver's.
 *
 * Threads: any; once a process is enough. */

#include <stddef.h>
#include <stdint.h>

/* As the driver has them (bindings/cudahost/engine/host_abi.h). */
typedef int (*tti_host_kernel_fn)(void **args, const unsigned grid[3], const unsigned block[3],
				  size_t shared_bytes);
struct tti_host_driver {
	/* tti_cuda_kernel_register */
	int (*add)(const void *function, const char *name, tti_host_kernel_fn run,
		   const size_t *arg_bytes, size_t nargs);
	/* tti_cuda_reach; NULL: addresses are where they say */
	void *(*reach)(uint64_t address);
	/* tti_cuda_kernel_self, tti_cuda_kernel_join; NULL: every thread reaches all memory */
	int (*self)(void);
	void (*join)(int self);
};

/* For the library itself: registers all kernels, each with one parameter, struct
 * tti_dev_launch. 0, or the first error of `add`. */
#define TTI_KERNELS_HOST_REGISTER "tti_kernels_host_register"
int tti_kernels_host_register(const struct tti_host_driver *driver);

/* For tests: bytes of user data that kernels of this process have read and written so far. */
#define TTI_KERNELS_HOST_TRAFFIC "tti_kernels_host_traffic"
void tti_kernels_host_traffic(uint64_t *read, uint64_t *written);

#endif
