/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/held.h"
#include "engine/host_abi.h"
#include "gpu/cuda.h"
#include "ranks.h"

static struct {
	void (*held)(struct tti_cuda_held *out);
	uint64_t (*calls)(void);
	void (*let_fail)(uint64_t skipped, uint64_t n, int error);
} host;

static struct tti_cuda_held kept;

static void *symbol(struct tti_gpu_driver *driver, const char *name)
{
	void *found = tti_gpu_driver_symbol(driver, name);

	assert_non_null(found);
	return found;
}

void faults_begin(void)
{
	struct tti_gpu_driver *driver;
	void *found;

	assert_int_equal(tti_gpu_driver(&driver), TUTTI_OK);
	found = symbol(driver, "tti_cuda_held");
	memcpy(&host.held, &found, sizeof(found));
	found = symbol(driver, "tti_cuda_calls");
	memcpy(&host.calls, &found, sizeof(found));
	found = symbol(driver, "tti_cuda_fail_calls");
	memcpy(&host.let_fail, &found, sizeof(found));
}

uint64_t faults_calls(void)
{
	return host.calls();
}

void faults_set(uint64_t skipped, int error)
{
	host.let_fail(skipped, 1, error);
}

void faults_none(void)
{
	host.let_fail(0, 0, 0);
}

void faults_keep(void)
{
	host.held(&kept);
}

void faults_assert_nothing_held(uint64_t failed)
{
	struct tti_cuda_held held;

	ranks_assert_nothing_held();
	host.held(&held);
#define X(name)                                                                               \
	if (held.name != kept.name)                                                           \
		fail_msg("call %llu failed: %llu " #name " held", (unsigned long long)failed, \
			 (unsigned long long)held.name);
	TTI_CUDA_HELD_MAP(X)
#undef X
}
