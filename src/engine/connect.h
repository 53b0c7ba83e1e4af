/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_CONNECT_H
#define TTI_ENGINE_CONNECT_H

/* What an engine has for all its jobs: links, made on first use, and scratch. Internal to the
 * engine. */

#include "engine/engine.h"

static inline struct tti_port *tti_engine_port(const struct tti_engine *engine, int peer)
{
	return engine->config.ports[engine->config.port_of[peer]];
}

/* engine->links[peer] is there on TUTTI_OK; TUTTI_AGAIN: progress, then again. */
TUTTI_CHECKED tutti_status tti_engine_connect(struct tti_engine *engine, int peer);

/* Scratch of so many bytes at least; what was in it is gone. */
TUTTI_CHECKED tutti_status tti_engine_need_scratch(struct tti_engine *engine, size_t nbytes);

#endif
