/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_CONNECT_H
#define TTI_ENGINE_CONNECT_H

/* Links of an engine, made on first use. Internal to the engine. */

#include "engine/engine.h"

static inline struct tti_port *tti_engine_port(const struct tti_engine *engine, int peer)
{
	return engine->config.ports[engine->config.port_of[peer]];
}

/* engine->links[peer] is there on TUTTI_OK; TUTTI_AGAIN: progress, then again. */
TUTTI_CHECKED tutti_status tti_engine_connect(struct tti_engine *engine, int peer);

#endif
