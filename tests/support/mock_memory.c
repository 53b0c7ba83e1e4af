/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of other ranks, which are in one process here. What is named is any memory; nothing is
 * allocated. */
#include <string.h>

#include "support/mock_net.h"
#include "util/error.h"

static bool name(struct tti_port *base, const void *range, size_t nbytes,
		 struct tti_memory_name *out)
{
	const struct mock_port *port = (const struct mock_port *)base;

	/* So that find() knows how long the range is. */
	*out = (struct tti_memory_name){ .at = (uintptr_t)range,
					 .note = (uint32_t)nbytes,
					 .reach = port->mock->config.memory };
	return true;
}

static tutti_status broken(const struct mock_port *port)
{
	if (port->broken == TUTTI_OK)
		return TUTTI_OK;
	return tti_fail_quiet(port->broken, "rank %d reaches no memory of others", port->base.rank);
}

static tutti_status find(struct tti_port *base, int peer, const struct tti_memory_name *named,
			 size_t nbytes, struct tti_remote *out)
{
	struct mock_port *port = (struct mock_port *)base;

	if (named->reach == TTI_REACH_MAPPED)
		TTI_TRY(broken(port));
	if (nbytes > named->note)
		return tti_fail_quiet(TUTTI_EINTERNAL,
				      "rank %d has named %u bytes, %zu are looked for", peer,
				      named->note, nbytes);
	*out = (struct tti_remote){ .address = named->at };
	if (named->reach == TTI_REACH_MAPPED) {
		out->mapped = (void *)(uintptr_t)named->at;
		port->reached += nbytes;
	}
	return TUTTI_OK;
}

static tutti_status read_from(struct tti_port *base, int peer, void *to, uint64_t from,
			      size_t nbytes)
{
	struct mock_port *port = (struct mock_port *)base;

	(void)peer;
	if (port->mock->config.memory == TTI_REACH_COPIED)
		TTI_TRY(broken(port));
	port->reached += nbytes;
	memcpy(to, (const void *)(uintptr_t)from, nbytes);
	return TUTTI_OK;
}

static tutti_status write_to(struct tti_port *base, int peer, uint64_t to, const void *from,
			     size_t nbytes)
{
	struct mock_port *port = (struct mock_port *)base;

	(void)peer;
	TTI_TRY(broken(port));
	port->reached += nbytes;
	memcpy((void *)(uintptr_t)to, from, nbytes);
	return TUTTI_OK;
}

const struct tti_memory_ops mock_memory_ops = {
	.name = name,
	.find = find,
	.read = read_from,
	.write = write_to,
};

void mock_break_memory(struct mock *mock, int rank, tutti_status status)
{
	mock->ports[rank].broken = status;
}

uint64_t mock_reached(const struct mock *mock, int rank)
{
	return mock->ports[rank].reached;
}
