/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "insight/handoff/handoff_print.h"

bool tti_handoff_view_open(const struct tti_handoff_job *handoff,
			   const struct tti_handoff_plan *plan, double nbytes,
			   struct tti_handoff_view *out)
{
	const struct tti_plan_job *job = handoff->job;
	uint32_t *room;

	*out = (struct tti_handoff_view){ .handoff = handoff, .plan = plan, .nbytes = nbytes };
	room = tti_arena_alloc(&out->arena, 2 * (size_t)job->nranks * sizeof(*room));
	if (!room)
		return false;
	out->node_of = room;
	out->place_of = room + job->nranks;
	for (uint32_t node = 0; node < job->nnodes; node++)
		for (uint32_t i = 0; i < job->nodes[node].nranks; i++) {
			out->node_of[job->nodes[node].ranks[i]] = node;
			out->place_of[job->nodes[node].ranks[i]] = i;
		}
	return true;
}

void tti_handoff_view_close(struct tti_handoff_view *view)
{
	tti_arena_release(&view->arena);
}

const char *tti_handoff_end_name(const struct tti_handoff_view *view, uint32_t rank)
{
	return tti_handoff_graph(view, view->node_of[rank])
		->nodes[tti_handoff_end(view, rank)]
		.full_name;
}

const char *tti_handoff_node_name(const struct tti_handoff_view *view, uint32_t node)
{
	const char *name = tti_handoff_job_node(view, node)->name;

	return name && name[0] ? name : "the node";
}

const char *tti_handoff_net_name(const struct tti_handoff_view *view, uint32_t node, uint32_t net)
{
	return net == TTI_NO_NET ? "-"
				 : tti_handoff_graph(view, node)
					   ->nodes[tti_handoff_job_node(view, node)->nets[net]]
					   .full_name;
}

void tti_handoff_share_words(double share, char buf[TTI_HANDOFF_WORDS])
{
	const double times = share > 0 ? 1 / share : 0;

	if (share > 0.9999 && share < 1.0001)
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "all");
	else if (times > 1 && times < 128 && fabs(times - round(times)) < 1e-3)
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "1/%.0f", times);
	else
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "%.1f %%", 100 * share);
}

void tti_handoff_bytes_words(double nbytes, char buf[TTI_HANDOFF_WORDS])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int unit = 0;

	for (; nbytes >= 1024 && unit < 4; unit++)
		nbytes /= 1024;
	(void)snprintf(buf, TTI_HANDOFF_WORDS, nbytes < 999.5 ? "%.3g %s" : "%.0f %s", nbytes,
		       units[unit]);
}

void tti_handoff_time_words(double us, char buf[TTI_HANDOFF_WORDS])
{
	if (us < 1e3)
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "%.3g us", us);
	else if (us < 1e6)
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "%.3g ms", us / 1e3);
	else
		(void)snprintf(buf, TTI_HANDOFF_WORDS, "%.3g s", us / 1e6);
}

void tti_handoff_ranks_words(const uint32_t *ranks, uint32_t n, struct tti_strbuf *out)
{
	for (uint32_t i = 0; i < n;) {
		uint32_t last = i;

		while (last + 1 < n && ranks[last + 1] == ranks[last] + 1)
			last++;
		if (last > i)
			tti_strbuf_addf(out, "%s%u-%u", i ? ", " : "", ranks[i], ranks[last]);
		else
			tti_strbuf_addf(out, "%s%u", i ? ", " : "", ranks[i]);
		i = last + 1;
	}
}
