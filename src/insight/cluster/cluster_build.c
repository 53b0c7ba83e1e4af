/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/error.h"
#include "util/mem.h"

tutti_status tti_cluster_no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the view of a cluster");
}

void tti_cluster_build_free(struct tti_cluster_build *build)
{
	if (!build)
		return;
	tti_canon_release(&build->canon);
	tti_intern_release(&build->canons);
	tti_intern_release(&build->seen);
	tti_intern_release(&build->words);
	tti_intern_release(&build->exact);
	tti_intern_release(&build->globs);
	tti_vec_release(&build->variants);
	tti_vec_release(&build->nvariants);
	tti_vec_release(&build->fabrics);
	tti_vec_release(&build->said);
	tti_vec_release(&build->rules);
	tti_vec_release(&build->exact_rule);
	tti_vec_release(&build->last_glob);
	tti_free(build);
}

void tti_cluster_sync(struct tti_cluster *cluster)
{
	const struct tti_cluster_build *build = cluster->build;

	cluster->kinds = build->kinds.at;
	cluster->hosts = build->hosts.at;
	cluster->nics = build->nics.at;
	cluster->rails = build->rails.at;
	cluster->groups = build->groups.at;
	cluster->domains = build->domains.at;
	cluster->notes = build->notes.at;
	cluster->nkinds = (uint32_t)build->kinds.n;
	cluster->nhosts = (uint32_t)build->hosts.n;
	cluster->nnics = (uint32_t)build->nics.n;
	cluster->nrails = (uint32_t)build->rails.n;
	cluster->ngroups = (uint32_t)build->groups.n;
	cluster->ndomains = (uint32_t)build->domains.n;
	cluster->nnotes = (uint32_t)build->notes.n;
}

tutti_status tti_cluster_note(struct tti_cluster *cluster, const char *fmt, ...)
{
	const char *copy;
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	copy = tti_arena_strdup(&cluster->arena, line);
	return copy && tti_vec_push(&cluster->build->notes, copy) ? TUTTI_OK
								  : tti_cluster_no_memory();
}
