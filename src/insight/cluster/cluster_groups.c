/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"

#include "util/mem.h"

/* -- NVLink domains ----------------------------------------------------------------------- */

/* Hosts of each fabric, by its word. */
static uint32_t *count_hosts(const struct tti_cluster_build *build)
{
	uint32_t *count = tti_calloc(build->words.entries.n + 1, sizeof(*count));

	for (size_t i = 0; count && i < build->fabrics.n; i++)
		if (build->fabrics.at[i] != TTI_INTERN_NONE)
			count[build->fabrics.at[i]]++;
	return count;
}

static bool add_domain(struct tti_cluster *cluster, uint32_t word)
{
	struct tti_cluster_domain domain = { 0 };

	domain.name =
		tti_arena_strdup(&cluster->arena, tti_intern_get(&cluster->build->words, word));
	return domain.name && tti_vec_push(&cluster->build->domains, domain);
}

tutti_status tti_cluster_find_domains(struct tti_cluster *cluster)
{
	struct tti_cluster_build *build = cluster->build;
	uint32_t *count = count_hosts(build);
	int32_t *number = tti_calloc(build->words.entries.n + 1, sizeof(*number));
	bool good = count && number;

	for (size_t i = 0; good && i < build->hosts.n; i++) {
		const uint32_t word = build->fabrics.at[i];
		struct tti_cluster_domain *domain;

		if (word == TTI_INTERN_NONE || count[word] < 2)
			continue;
		if (!number[word]) {
			good = add_domain(cluster, word);
			number[word] = (int32_t)build->domains.n;
		}
		if (!good)
			break;
		build->hosts.at[i].domain = number[word] - 1;
		domain = &build->domains.at[number[word] - 1];
		domain->nhosts++;
		domain->ngpus +=
			build->kinds.at[build->hosts.at[i].kind].graph->ntype[TTI_NODE_GPU];
	}
	tti_free(count);
	tti_free(number);
	return good ? TUTTI_OK : tti_cluster_no_memory();
}

/* -- Switch groups ------------------------------------------------------------------------ */

/* The file of rails counts; without a line in it, the switch that the NIC sees. */
static uint32_t group_of(const struct tti_cluster_build *build, const struct tti_nic_said *said)
{
	if (said->rule != TTI_INTERN_NONE && build->rules.at[said->rule].group != TTI_INTERN_NONE)
		return build->rules.at[said->rule].group;
	return said->leaf;
}

tutti_status tti_cluster_find_groups(struct tti_cluster *cluster)
{
	struct tti_cluster_build *build = cluster->build;
	int32_t *number = tti_calloc(build->words.entries.n + 1, sizeof(*number));
	bool good = number != NULL;

	for (size_t i = 0; good && i < build->nics.n; i++) {
		const uint32_t word = group_of(build, &build->said.at[i]);
		struct tti_cluster_group group = { 0 };

		if (word == TTI_INTERN_NONE)
			continue;
		if (!number[word]) {
			group.name = tti_arena_strdup(&cluster->arena,
						      tti_intern_get(&build->words, word));
			good = group.name && tti_vec_push(&build->groups, group);
			number[word] = (int32_t)build->groups.n;
		}
		if (!good)
			break;
		build->nics.at[i].group = number[word] - 1;
		build->groups.at[number[word] - 1].nnics++;
	}
	tti_free(number);
	return good ? TUTTI_OK : tti_cluster_no_memory();
}
