/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/pattern.h"

#include <strings.h>

const char *tti_pattern_name(enum tti_pattern pattern)
{
	static const char names[][16] = {
#define X(name, text, nccl) text,
		TTI_PATTERN_MAP(X)
#undef X
	};

	return names[pattern];
}

bool tti_pattern_parse(const char *text, enum tti_pattern *out)
{
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		if (!strcasecmp(text, tti_pattern_name((enum tti_pattern)i))) {
			*out = (enum tti_pattern)i;
			return true;
		}
	return false;
}
