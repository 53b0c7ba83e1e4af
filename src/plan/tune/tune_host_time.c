/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune_terms.h"

#include <math.h>

/* Pipelines cut the vector into several slices per hop, not smaller than this
 * (src/coll/choose/choose.c). */
#define PIPELINE_BLOCKS 4
#define SLICE_LEAST     16384.0

/* The rates of this machine. */
struct rates {
	double ranks_a_core; /* ranks that share a core                              */
	double near, far;    /* us of a hop                                          */
	double read;         /* us a byte, of slots; some of the peers share the core */
	double copy;         /* us a byte                                            */
	double memory;
	double socket, wire;
};

static double per_byte(double gbps)
{
	return 1e-3 / gbps;
}

static struct rates rates_of(const struct tti_tune_constants *c,
			     const struct tti_tune_machine *machine, const struct tti_tune_terms *t)
{
	const double p = machine->most, cores = machine->cores > 0 ? machine->cores : p;
	const double sharers = fmax(1, p / cores), turn = sharers > 1 ? sharers * c->yield_us : 0;
	const double ranks_a_core = t->busy > 0 ? fmax(1, t->busy / cores) : sharers;
	const double wake = sharers > 1 ? sharers * c->wake_us : 0;
	const double crossing = p > 1 ? fmax(0, (p - ranks_a_core) / (p - 1)) : 0;
	const double node_memory =
		machine->node_memory_gbps > 0 ? machine->node_memory_gbps : c->node_memory_gbps;
	const double wire = machine->node_gbps > 0 ? machine->node_gbps : c->node_net_gbps;

	return (struct rates){
		.ranks_a_core = ranks_a_core,
		.near = c->line_us + turn,
		.far = c->tcp_hop_us + c->wire_us + wake,
		.read = ranks_a_core * (crossing * per_byte(c->cross_gbps) +
					(1 - crossing) * per_byte(c->copy_gbps)),
		.copy = ranks_a_core * per_byte(c->copy_gbps),
		.memory = fmax(ranks_a_core * per_byte(c->memory_gbps), p * per_byte(node_memory)),
		.socket = ranks_a_core * per_byte(c->socket_gbps),
		.wire = per_byte(t->senders > 1 ? wire * c->many_to_one : wire),
	};
}

/* Each hop is a message already, of a rank that in a pipeline is another one each time. */
static double latency(const struct tti_tune_constants *c, const struct rates *rates,
		      const struct tti_tune_terms *t)
{
	const double near_hops = t->pipelined ? fmin(t->near_hops, 1) : t->near_hops;
	const double far_hops = t->pipelined ? fmin(t->far_hops, 1) : t->far_hops;
	const double near_more = fmax(0, t->near_messages - near_hops);
	const double far_more = fmax(0, t->far_messages - 2 * far_hops);

	return c->call_us + t->near_hops * rates->near + t->far_hops * rates->far +
	       rates->ranks_a_core * (near_more * c->line_us + far_more * c->tcp_message_us);
}

/* The user's buffers: as cached ones as far as those of a node fit into its caches. */
static double touch(const struct tti_tune_constants *c, const struct tti_tune_machine *machine,
		    const struct rates *rates, double touched, double nbytes)
{
	const double cores = machine->cores > 0 ? machine->cores : machine->most;
	const double all = touched * nbytes * machine->most, caches = c->cache_bytes * cores;
	const double cached = all > caches ? touched * nbytes * caches / all : touched * nbytes;
	const double slower = fmax(rates->memory, rates->copy);

	return cached * rates->copy + (touched * nbytes - cached) * slower;
}

/* Messages take slots, one for each slice of a chunk; of TCP's the first is in the hop. */
static double slots(const struct tti_tune_constants *c, const struct rates *rates,
		    const struct tti_tune_terms *t, double nbytes)
{
	const double chunk = nbytes / t->chunks;
	const double near = chunk > c->inline_bytes ? fmax(1, chunk / c->slot_bytes) : 0;
	const double far = fmax(0, chunk / c->tcp_slot_bytes - 1);

	return rates->ranks_a_core *
	       (t->near_messages * near * c->slot_us + t->far_messages * far * c->tcp_message_us);
}

/* The wires wait between the rounds of each block but the first, whose are in the
 * latency, unless others are on their way meanwhile. */
static double gaps(const struct tti_tune_constants *c, const struct rates *rates,
		   const struct tti_tune_terms *t, double nbytes)
{
	const double blocks = nbytes / t->chunks / c->tcp_slot_bytes;

	return t->pipelined || t->overlaps ? 0 : t->far_hops * rates->far * fmax(0, blocks - 1);
}

/* The first slice on its way along all hops but the first, when the last begins. */
static double under_way(const struct tti_tune_constants *c, const struct tti_tune_machine *machine,
			const struct rates *rates, const struct tti_tune_terms *t, double nbytes)
{
	const double chunk = nbytes / t->chunks,
		     slot = t->far_hops > 0 ? c->tcp_slot_bytes : c->slot_bytes;
	const double cut = nbytes / (PIPELINE_BLOCKS * (double)machine->n);
	const double slice = fmin(chunk, fmin(slot, fmax(cut, SLICE_LEAST)));
	const double near = rates->read + rates->copy, far = fmax(rates->socket, rates->wire);
	const double hops = t->near_hops * near + t->far_hops * far;

	return slice * fmax(0, hops - fmax(t->near_hops > 0 ? near : 0, t->far_hops > 0 ? far : 0));
}

struct tti_tune_time tti_tune_host_time(const struct tti_tune_constants *c,
					const struct tti_tune_machine *machine,
					const struct tti_tune_terms *t, size_t nbytes)
{
	const struct rates rates = rates_of(c, machine, t);
	const double size = (double)nbytes;
	const double cpu =
		size * (t->read * rates.read + t->written * rates.copy + t->socket * rates.socket) +
		touch(c, machine, &rates, t->touched, size) + slots(c, &rates, t, size);
	struct tti_tune_time time = { .latency_us = latency(c, &rates, t) };

	time.us =
		time.latency_us + fmax(cpu, size * t->wire * rates.wire + gaps(c, &rates, t, size));
	if (t->pipelined)
		time.us += under_way(c, machine, &rates, t, size);
	return time;
}
