/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/iface.h"
#include "core/topo_exchange.h"
#include "topo/cluster_canon.h"
#include "topo/detect.h"
#include "topo/schema.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/params.h"
#include "util/strbuf.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the topology of this host: out of memory");
}

/* -- What there is at least ------------------------------------------------------------ */

static bool user_says(const struct tti_params *params)
{
	return params->sysfs_root || params->topo_file || params->topo_dump_file;
}

/* One NUMA node of which nothing is known: where /sys is hidden, ranks work all the same. */
static tutti_status assume(struct tti_xml_doc **out)
{
	struct tti_xml *cpu;

	tti_log(TTI_LOG_WARN, TTI_TOPO,
		"this machine's topology is not known, so it counts as one NUMA node: %s",
		tti_error_text());
	TTI_TRY(tti_xml_create("a machine that is not known", out));
	cpu = tti_xml_add(*out, (*out)->root, "cpu");
	if (cpu && tti_xml_set(*out, cpu, "numaid", "-1") &&
	    tti_xml_set(*out, cpu, "affinity", "ffffffff"))
		return TUTTI_OK;
	tti_xml_free(*out);
	return no_memory();
}

static tutti_status load(struct tti_xml_doc **out)
{
	const tutti_status st = tti_topo_of_this_machine(out);

	if (st == TUTTI_OK || st == TUTTI_ENOMEM || user_says(tti_params()))
		return st;
	return assume(out);
}

/* -- The NICs that TCP uses -------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

/* Note the <net>s that are that interface, or are bonded to it. */
static void note_nets(const struct tti_xml_doc *doc, const char *ifname, struct tti_topo_card *card)
{
	uint32_t number = 0;

	for (const struct tti_xml *at = doc->root; at; at = tti_xml_walk(at), number++) {
		if (!tti_xml_is(at, "net") || !(same(tti_xml_get(at, "name"), ifname) ||
						same(tti_xml_get(at, "tutti_netdev"), ifname) ||
						same(tti_xml_get(at, "tutti_master"), ifname)))
			continue;
		if (card->nnets < TTI_CARD_NETS)
			card->nets[card->nnets++] = number;
		if (!card->leaf && tti_xml_get(at, "tutti_switch")) {
			const char *leaf = tti_xml_get(at, "tutti_switch");

			card->leaf = tti_hash_bytes(leaf, strlen(leaf));
		}
	}
}

/* The same of what the interface sits on: of a VLAN, a bridge, a bond. */
static void note_below(const struct tti_sysfs *sysfs, const struct tti_xml_doc *doc,
		       const char *ifname, int depth, struct tti_topo_card *card)
{
	char **names;
	size_t n;

	note_nets(doc, ifname, card);
	if (card->nnets || depth == 0 ||
	    tti_sysfs_list(sysfs, &names, &n, "sys/class/net/%s", ifname) != TUTTI_OK)
		return;
	for (size_t i = 0; i < n; i++)
		if (strncmp(names[i], "lower_", 6) == 0)
			note_below(sysfs, doc, names[i] + 6, depth - 1, card);
	free(names);
}

/* A container's end of a pair, a tunnel: no hardware is seen behind it, but it is what
 * leads out of here, so it counts as a NIC of the speed that it claims. */
static tutti_status add_virtual(const struct tti_sysfs *sysfs, struct tti_xml_doc *doc,
				const char *ifname)
{
	struct tti_xml *cpu = tti_xml_find(doc->root, "cpu", NULL, NULL), *nic, *net;
	int64_t speed = -1, dev = 0, own;

	if (!cpu)
		return tti_fail(TUTTI_EPLAN, "%s has no <cpu>, and so no place for the ranks here",
				doc->source);
	for (const struct tti_xml *at = doc->root; at; at = tti_xml_walk(at)) {
		if (!tti_xml_is(at, "net"))
			continue;
		TTI_TRY(tti_xml_int(doc, at, "dev", -1, INT32_MAX, -1, &own));
		dev = own >= dev && own < INT32_MAX ? own + 1 : dev;
	}
	if (!tti_sysfs_int(sysfs, &speed, "sys/class/net/%s/speed", ifname) || speed <= 0 ||
	    speed > INT32_MAX)
		speed = -1;
	nic = tti_xml_add(doc, cpu, "nic");
	net = nic ? tti_xml_add(doc, nic, "net") : NULL;
	if (!net || !tti_xml_set(doc, net, "name", ifname) ||
	    !tti_xml_setf(doc, net, "dev", "%lld", (long long)dev) ||
	    !tti_xml_setf(doc, net, "speed", "%lld", (long long)speed) ||
	    !tti_xml_set(doc, net, "tutti_virtual", "1"))
		return no_memory();
	tti_log(TTI_LOG_INFO, TTI_TOPO,
		"%s is what leads to other hosts; no hardware is seen behind it, so it counts as "
		"a NIC",
		ifname);
	return tti_schema_check(doc);
}

/* TCP offers all addresses, the likeliest first, and takes the first that is reached. */
static const char *first_interface(struct tti_addr *addrs)
{
	size_t n;

	if (tti_iface_list(addrs, TTI_IFACE_MOST, &n) != TUTTI_OK)
		return NULL;
	return addrs[0].ifname;
}

static tutti_status find_nets(struct tti_xml_doc *doc, struct tti_topo_card *card)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	const char *ifname = first_interface(addrs);
	struct tti_sysfs sysfs;
	tutti_status st = TUTTI_OK;

	/* The interfaces of here are not those of a captured machine. */
	if (tti_params()->sysfs_root || !ifname) {
		card->nnets = TTI_CARD_ANY_NET;
		return TUTTI_OK;
	}
	if (tti_sysfs_open(NULL, &sysfs) != TUTTI_OK)
		sysfs = (struct tti_sysfs){ .fd = -1 };
	note_below(&sysfs, doc, ifname, 4, card);
	if (!card->nnets) {
		st = add_virtual(&sysfs, doc, ifname);
		if (st == TUTTI_OK)
			note_nets(doc, ifname, card);
	}
	if (sysfs.fd >= 0)
		tti_sysfs_close(&sysfs);
	return st;
}

/* -- As text ------------------------------------------------------------------------------ */

/* Without what is a host's own, so that hosts of a kind have one text. */
static tutti_status write_text(const struct tti_xml_doc *doc, struct tti_topo_card *card,
			       char **text_out)
{
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *plain;

	TTI_TRY(tti_canon_strip(doc, &plain));
	tti_xml_write(plain, &text);
	tti_xml_free(plain);
	if (text.len > TTI_XML_BYTES) {
		tti_strbuf_release(&text);
		return tti_fail(TUTTI_EPLAN, "the topology of this host takes %zu bytes as text",
				text.len);
	}
	card->nbytes = (uint32_t)text.len;
	*text_out = tti_strbuf_take(&text);
	if (!*text_out)
		return no_memory();
	card->hash = tti_hash_bytes(*text_out, card->nbytes);
	return TUTTI_OK;
}

tutti_status tti_topo_look(bool several, struct tti_topo_card *card, char **text_out)
{
	struct tti_xml_doc *doc;
	tutti_status st;

	TTI_TRY(load(&doc));
	if (gethostname(card->name, sizeof(card->name)) != 0)
		card->name[0] = '\0';
	card->name[sizeof(card->name) - 1] = '\0';
	st = several ? find_nets(doc, card) : TUTTI_OK;
	if (st == TUTTI_OK)
		st = write_text(doc, card, text_out);
	tti_xml_free(doc);
	return st;
}
