/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/host_classes.h"

#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/mem.h"

static tutti_status no_memory(int n)
{
	return tti_fail(TUTTI_ENOMEM, "topologies of %d ranks: out of memory", n);
}

static tutti_status find_leaders(const struct tti_peers *peers, struct tti_host_classes *hosts)
{
	const size_t n = (size_t)peers->n;

	hosts->leader = tti_calloc(n, sizeof(*hosts->leader));
	hosts->info = tti_calloc(n, sizeof(*hosts->info));
	hosts->class_of = tti_calloc(n, sizeof(*hosts->class_of));
	if (!hosts->leader || !hosts->info || !hosts->class_of)
		return no_memory(peers->n);
	return tti_peers_group(peers->place, peers->n, hosts->leader);
}

/* A leader that fails says so in its info, and all ranks fail. */
static tutti_status exchange_info(const struct tti_peers *peers, bool several,
				  struct tti_host_classes *hosts, char **text_out)
{
	struct tti_host_info *own = &hosts->info[peers->rank];

	if (hosts->leader[peers->rank] == peers->rank) {
		tutti_status st = tti_fault("core.topo")
					  ? tti_fail(TUTTI_EINTERNAL, "core.topo: injected fault")
					  : tti_topo_look(several, own, text_out);

		own->status = st;
	}
	TTI_TRY(tti_boot_all_gather(peers->boot, hosts->info, sizeof(*hosts->info)));
	for (int rank = 0; rank < peers->n; rank++)
		if (hosts->info[rank].status != TUTTI_OK)
			return tti_peers_fail(peers->boot, rank,
					      (tutti_status)hosts->info[rank].status);
	return TUTTI_OK;
}

static tutti_status find_classes(const struct tti_peers *peers, struct tti_host_classes *hosts)
{
	for (int rank = 0; rank < peers->n; rank++) {
		const struct tti_host_info *info = &hosts->info[rank];
		uint32_t k = 0;

		if (hosts->leader[rank] != rank)
			continue;
		while (k < hosts->classes.n && (hosts->classes.at[k].hash != info->hash ||
						hosts->classes.at[k].nbytes != info->nbytes))
			k++;
		if (k == hosts->classes.n) {
			const struct tti_host_class found = { info->hash, info->nbytes, rank,
							      NULL };

			if (!tti_vec_push(&hosts->classes, found))
				return no_memory(peers->n);
		}
		hosts->class_of[rank] = k;
	}
	return TUTTI_OK;
}

/* From its owner to all. */
static tutti_status bring(const struct tti_peers *peers, struct tti_host_class *host_class,
			  const char *own_text)
{
	host_class->text = tti_alloc((size_t)host_class->nbytes + 1);
	if (!host_class->text)
		return no_memory(peers->n);
	if (host_class->owner == peers->rank)
		memcpy(host_class->text, own_text, host_class->nbytes);
	host_class->text[host_class->nbytes] = '\0';
	return tti_boot_broadcast(peers->boot, host_class->owner, host_class->text,
				  host_class->nbytes);
}

tutti_status tti_host_classes_exchange(const struct tti_peers *peers, bool several,
				       struct tti_host_classes *out)
{
	struct tti_host_classes hosts = { 0 };
	char *text = NULL;
	tutti_status st = find_leaders(peers, &hosts);

	if (st == TUTTI_OK)
		st = exchange_info(peers, several, &hosts, &text);
	if (st == TUTTI_OK)
		st = find_classes(peers, &hosts);
	for (uint32_t k = 0; k < hosts.classes.n && st == TUTTI_OK; k++)
		st = bring(peers, &hosts.classes.at[k], text);
	free(text);
	if (st == TUTTI_OK)
		*out = hosts;
	else
		tti_host_classes_release(&hosts);
	return st;
}

void tti_host_classes_release(struct tti_host_classes *hosts)
{
	for (uint32_t k = 0; k < hosts->classes.n; k++)
		tti_free(hosts->classes.at[k].text);
	tti_vec_release(&hosts->classes);
	tti_free(hosts->info);
	tti_free(hosts->leader);
	tti_free(hosts->class_of);
	*hosts = (struct tti_host_classes){ 0 };
}
