/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/config.h"

#include <stddef.h>
#include <string.h>

#include "util/error.h"

tutti_status tti_config_read(const tutti_config *given, tutti_config *out)
{
	*out = (tutti_config)TUTTI_CONFIG_INIT;
	if (!given)
		return TUTTI_OK;
	if (given->size < offsetof(tutti_config, name))
		return tti_fail(TUTTI_EINVAL, "config.size is %zu: begin with TUTTI_CONFIG_INIT",
				given->size);
	memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
	out->size = sizeof(*out);
	if (out->reproducible != 0 && out->reproducible != 1)
		return tti_fail(TUTTI_EINVAL, "config.reproducible is %d: 0 or 1",
				out->reproducible);
	if (out->encrypt != 0 && out->encrypt != 1)
		return tti_fail(TUTTI_EINVAL, "config.encrypt is %d: 0 or 1", out->encrypt);
	if (out->traffic_class < 0 || out->traffic_class > 255)
		return tti_fail(TUTTI_EINVAL, "config.traffic_class is %d: 0 (the system's) to 255",
				out->traffic_class);
	if (out->device < -1)
		return tti_fail(TUTTI_EINVAL,
				"config.device is %d: a CUDA ordinal, 0 or more, or -1 (what "
				"TUTTI_CUDA_DEVICE says)",
				out->device);
	if (out->timeout_ms < 0)
		return tti_fail(TUTTI_EINVAL, "config.timeout_ms is %d: 0 (never) or more",
				out->timeout_ms);
	if (out->boot_timeout_ms < 0)
		return tti_fail(TUTTI_EINVAL,
				"config.boot_timeout_ms is %lld: 0 (TUTTI_BOOT_TIMEOUT_MS) or more",
				(long long)out->boot_timeout_ms);
	return TUTTI_OK;
}

tutti_status tti_config_check(const tutti_config *config)
{
	tutti_config read;

	return tti_config_read(config, &read);
}
