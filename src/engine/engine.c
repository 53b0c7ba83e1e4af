/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/engine.h"

#include <string.h>

#include "engine/connect.h"
#include "engine/job.h"
#include "util/error.h"
#include "util/mem.h"

/* Some 4 us: many times what a peer with a core of its own takes to answer. */
#define SPIN_ROUNDS 100

/* Sleep where news come from: a port with progress (its sleep sees sockets), else one
 * that leads to other ranks. */
static void choose_sleeper(struct tti_engine *engine)
{
	const struct tti_engine_config *config = &engine->config;
	int others = 0, nets = 0;

	for (int i = 0; i < config->nports; i++) {
		bool used = false;

		for (int peer = 0; peer < config->n && !used; peer++)
			used = peer != config->rank && config->port_of[peer] == i;
		if (!used)
			continue;
		others++;
		nets += config->ports[i]->transport->progress != NULL;
		if (config->ports[i]->transport->sleep)
			engine->sleeper = config->ports[i];
	}
	if (engine->nactive > 0)
		engine->sleeper = engine->active[0]->transport->sleep ? engine->active[0] : NULL;
	engine->is_mixed = others > 1;
	engine->is_net = others == 1 && nets == 1 && !config->oversubscribed;
}

tutti_status tti_engine_init(struct tti_engine *engine, const struct tti_engine_config *config)
{
	*engine = (struct tti_engine){ .config = *config };
	engine->links = tti_calloc((size_t)config->n, sizeof(struct tti_link *));
	engine->sources = tti_calloc((size_t)config->n + 1, sizeof(void *));
	atomic_init(&engine->waiting_on, -1);
	if (!engine->links || !engine->sources) {
		tti_engine_release(engine);
		return tti_fail(TUTTI_ENOMEM, "engine of %d ranks: out of memory", config->n);
	}
	for (int i = 0; i < config->nports; i++)
		if (config->ports[i]->transport->progress)
			engine->active[engine->nactive++] = config->ports[i];
	choose_sleeper(engine);
	engine->spin_rounds = config->spin_rounds >= 0 ? (uint32_t)config->spin_rounds
			      : config->oversubscribed ? 0
						       : SPIN_ROUNDS;
	return TUTTI_OK;
}

void tti_engine_release(struct tti_engine *engine)
{
	for (int peer = 0; engine->links && peer < engine->config.n; peer++)
		if (engine->links[peer])
			tti_engine_port(engine, peer)->transport->close(engine->links[peer]);
	tti_free(engine->links);
	tti_free(engine->sources);
	tti_free(engine->inputs);
	tti_free(engine->outputs);
	tti_free(engine->scratch);
	/* Not waiting_on: the watch, which goes on for children, may look at it. */
	engine->links = NULL;
	engine->sources = NULL;
	engine->inputs = engine->outputs = NULL;
	engine->scratch = NULL;
	engine->scratch_bytes = 0;
	engine->nactive = 0;
	engine->sleeper = NULL;
}

tutti_status tti_engine_need_scratch(struct tti_engine *engine, size_t nbytes)
{
	void *scratch;

	if (engine->scratch_bytes >= nbytes)
		return TUTTI_OK;
	scratch = tti_aligned_zalloc(4096, nbytes);
	if (!scratch)
		return tti_fail(TUTTI_ENOMEM, "%zu bytes of scratch: out of memory", nbytes);
	tti_free(engine->scratch);
	engine->scratch = scratch;
	engine->scratch_bytes = nbytes;
	return TUTTI_OK;
}

tutti_status tti_engine_connect(struct tti_engine *engine, int peer)
{
	struct tti_port *port = tti_engine_port(engine, peer);

	if (engine->links[peer])
		return TUTTI_OK;
	return port->transport->connect(port, peer, &engine->links[peer]);
}
