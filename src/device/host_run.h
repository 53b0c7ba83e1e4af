/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_HOST_RUN_H
#define TTI_DEVICE_HOST_RUN_H

/* Run a launch on threads of the host, from the source that is also the kernel: for tests, and for
 * a driver on host memory (bindings/cudahost).
 *
 * Threads: any; launches that wait for each other run at the same time, each on its caller's
 * thread and those that it starts. */

#include <stdint.h>

#include "device/abi.h"
#include "tutti/status.h"

struct tti_dev_env;
struct tti_dev_pass;

/* What was read and written, in bytes of user data, all blocks together. */
struct tti_dev_traffic {
	_Atomic uint64_t read, written;
};

struct tti_dev_host {
	uint32_t nthreads; /* of each block */
	/* Where the host reaches an address of a GPU; NULL: there. */
	void *(*view)(uint64_t address);
	struct tti_dev_traffic *traffic; /* NULL: not counted */
	/* What a thread that is started calls first, with `of`; NULL: nothing. */
	void (*join)(int of);
	int of;
};

/* Returns when all blocks have ended. TUTTI_ESYS: a thread could not be started, TUTTI_ENOMEM: out of
 * memory, and nothing ran. */
TUTTI_CHECKED tutti_status tti_dev_host_run(const struct tti_dev_launch *launch,
					    const struct tti_dev_host *host);

/* One of these threads: block `block` of the launch, of all its calls. `env` has a world and memory of
 * the block, as tti_dev_run() asks for. */
void tti_dev_host_thread(struct tti_dev_env *env, const struct tti_dev_launch *launch,
			 uint32_t block);

/* A pass by one of them. A kernel of a GPU knows one family of types alone, and has its own
 * (kernel.inc.h). */
void tti_dev_reduce(struct tti_dev_env *env, const struct tti_dev_pass *pass);

#endif
