/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

#include <stdio.h>

#include "util/error.h"

void tti_port_init(struct tti_port *port, const struct tti_transport *transport,
		   const struct tti_port_config *config)
{
	port->transport = transport;
	port->rank = config->rank;
	port->nranks = config->nranks;
	port->slot_bytes = port->inline_bytes = config->slot_bytes;
	port->failed_peer = -1;
}

void tti_port_fail(struct tti_port *port, tutti_status status, int peer)
{
	if (port->failure != TUTTI_OK)
		return;
	port->failure = status;
	port->failed_peer = peer;
	snprintf(port->failure_text, sizeof(port->failure_text), "%s", tti_error_text());
}
