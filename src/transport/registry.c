/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/registry.h"

#include <stdbool.h>
#include <string.h>

#include "util/error.h"

/* In order of preference. */
static const struct tti_transport *const known[] = {
	&tti_transport_self,
	&tti_transport_shm,
	&tti_transport_tcp,
};
#define NKNOWN ((int)(sizeof(known) / sizeof(known[0])))

static const struct tti_transport *find(const char *name, size_t len)
{
	for (int i = 0; i < NKNOWN; i++)
		if (strlen(known[i]->name) == len && !strncmp(known[i]->name, name, len))
			return known[i];
	return NULL;
}

static bool has(const struct tti_transport *const *list, int n,
		const struct tti_transport *transport)
{
	for (int i = 0; i < n; i++)
		if (list[i] == transport)
			return true;
	return false;
}

tutti_status tti_registry_list(const char *names, const struct tti_transport **out, int *n)
{
	const struct tti_transport *list[NKNOWN + 1];
	int count = 0;

	if (!names || !*names || !strcmp(names, "auto")) {
		memcpy(out, known, sizeof(known));
		*n = NKNOWN;
		return TUTTI_OK;
	}
	for (const char *at = names; at;) {
		const size_t len = strcspn(at, ",");
		const struct tti_transport *const found = find(at, len);

		if (!found)
			return tti_fail(TUTTI_EINVAL,
					"unknown transport \"%.*s\" in \"%s\": there are self, shm "
					"and tcp, or auto alone",
					(int)(len < 32 ? len : 32), at, names);
		if (has(list, count, found))
			return tti_fail(TUTTI_EINVAL, "transport %s is named twice in \"%s\"",
					found->name, names);
		list[count++] = found;
		at = at[len] ? at + len + 1 : NULL;
	}
	/* Every rank may send to itself, whatever it uses towards others. */
	*n = 0;
	if (!has(list, count, &tti_transport_self))
		out[(*n)++] = &tti_transport_self;
	memcpy(out + *n, list, (size_t)count * sizeof(list[0]));
	*n += count;
	return TUTTI_OK;
}
