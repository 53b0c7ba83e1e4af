/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and texts of errors. */
#include "runtime/runtime.h"

static const struct {
	int number;
	const char *name, *text;
} errors[] = {
#define ERROR(name, number, text) { number, #name, text },
#include "runtime/errors.def"
#undef ERROR
};

static size_t find(int number)
{
	const size_t n = sizeof(errors) / sizeof(errors[0]);
	size_t at = 0;

	while (at < n && errors[at].number != number)
		at++;
	return at;
}

const char *cudaGetErrorName(int error)
{
	const size_t at = find(error);

	return at < sizeof(errors) / sizeof(errors[0]) ? errors[at].name
						       : "unrecognized error code";
}

const char *cudaGetErrorString(int error)
{
	const size_t at = find(error);

	return at < sizeof(errors) / sizeof(errors[0]) ? errors[at].text
						       : "unrecognized error code";
}

struct tti_cu_channel cudaCreateChannelDesc(int x, int y, int z, int w, int format)
{
	return (struct tti_cu_channel){ x, y, z, w, format };
}
