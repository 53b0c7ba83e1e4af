/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/random_topo.h"

#include <stdio.h>

#include "util/hash.h"

#define MAX_GPUS     24
#define MAX_NETS     16
#define MAX_SWITCHES 32

struct maker {
	struct tti_xml_doc *doc;
	uint64_t state;
	bool failed;
	unsigned bus; /* of the host: the next free one */
	int nets, gpus_made;
	int host_nets;
	int sm;
	bool amd;
	struct tti_xml *gpus[MAX_GPUS]; /* of the host: their <pci> */
	int ngpus;
	struct tti_xml *switches[MAX_SWITCHES];
	int nswitches;
};

static unsigned below(struct maker *maker, unsigned limit)
{
	maker->state = tti_hash_combine(maker->state, 1);
	return (unsigned)(maker->state >> 33) % limit;
}

static bool chance(struct maker *maker, unsigned percent)
{
	return below(maker, 100) < percent;
}

static struct tti_xml *add(struct maker *maker, struct tti_xml *parent, const char *name)
{
	struct tti_xml *node = parent ? tti_xml_add(maker->doc, parent, name) : NULL;

	if (!node)
		maker->failed = true;
	return node;
}

static void set(struct maker *maker, struct tti_xml *node, const char *name, const char *value)
{
	if (!node || !tti_xml_set(maker->doc, node, name, value))
		maker->failed = true;
}

static void set_int(struct maker *maker, struct tti_xml *node, const char *name, long long value)
{
	if (!node || !tti_xml_setf(maker->doc, node, name, "%lld", value))
		maker->failed = true;
}

/* -- PCI -------------------------------------------------------------------------- */

static struct tti_xml *add_pci(struct maker *maker, struct tti_xml *parent, const char *class,
			       unsigned bus, unsigned function)
{
	static const char *const speeds[] = { "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe",
					      "16 GT/s", "32.0 GT/s PCIe" };
	static const int widths[] = { 1, 2, 4, 8, 12, 16, 16, 16 };
	struct tti_xml *pci = add(maker, parent, "pci");
	char busid[32];

	snprintf(busid, sizeof(busid), "%04x:%02x:00.%x", bus >> 8, bus & 0xff, function);
	set(maker, pci, "busid", busid);
	if (class)
		set(maker, pci, "class", class);
	if (chance(maker, 95))
		set(maker, pci, "link_speed", speeds[1 + below(maker, 4)]);
	else if (chance(maker, 50))
		set(maker, pci, "link_speed", speeds[0]);
	if (chance(maker, 95))
		set_int(maker, pci, "link_width", widths[below(maker, 8)]);
	return pci;
}

static void add_gpu(struct maker *maker, struct tti_xml *parent)
{
	struct tti_xml *pci =
		add_pci(maker, parent, maker->amd ? "0x038000" : "0x030200", maker->bus++, 0);
	const int parts = chance(maker, 5) ? 2 : 1;

	for (int part = 0; part < parts && maker->gpus_made < MAX_GPUS; part++) {
		struct tti_xml *gpu = add(maker, pci, "gpu");

		set_int(maker, gpu, "dev", maker->ngpus + 100 * part);
		set_int(maker, gpu, "sm", maker->sm);
		if (maker->amd)
			set(maker, gpu, "gcn", "gfx942");
		set_int(maker, gpu, "rank", maker->gpus_made++);
		set_int(maker, gpu, "gdr", chance(maker, 80));
	}
	if (pci)
		maker->gpus[maker->ngpus++] = pci;
}

static void add_net(struct maker *maker, struct tti_xml *parent, const char *kind, unsigned guid)
{
	static const int speeds[] = { 10000, 25000, 100000, 200000, 400000, 800000, -1, 0 };
	struct tti_xml *net = add(maker, add(maker, parent, "nic"), "net");
	char text[32];

	snprintf(text, sizeof(text), "%s%d", kind, maker->host_nets);
	set(maker, net, "name", text);
	set_int(maker, net, "dev", maker->host_nets++);
	set_int(maker, net, "speed", speeds[below(maker, chance(maker, 90) ? 6 : 8)]);
	set_int(maker, net, "port", 1);
	snprintf(text, sizeof(text), "0x%x", guid);
	set(maker, net, "guid", text);
	set_int(maker, net, "gdr", chance(maker, 75));
	if (chance(maker, 20))
		set(maker, net, "latency", "1.5");
	maker->nets++;
}

static void add_card(struct maker *maker, struct tti_xml *parent)
{
	const unsigned ports = chance(maker, 25) ? 2 : 1;
	const unsigned bus = maker->bus++;

	for (unsigned port = 0; port < ports && maker->nets < MAX_NETS; port++)
		add_net(maker, add_pci(maker, parent, "0x020700", bus, port), "mlx5_",
			0x1000 + bus);
}

static void add_tree(struct maker *maker, struct tti_xml *parent, int depth)
{
	const unsigned n = 1 + below(maker, 4);

	for (unsigned i = 0; i < n; i++) {
		if (depth < 3 && maker->nswitches < MAX_SWITCHES && chance(maker, 35)) {
			struct tti_xml *pci = add_pci(maker, parent, "0x060400", maker->bus++, 0);

			if (!pci)
				return;
			maker->switches[maker->nswitches++] = pci;
			add_tree(maker, pci, depth + 1);
		} else if (chance(maker, 60)) {
			if (maker->gpus_made < MAX_GPUS)
				add_gpu(maker, parent);
		} else if (chance(maker, 85)) {
			add_card(maker, parent);
		} else {
			add_pci(maker, parent, chance(maker, 50) ? "0x010802" : NULL, maker->bus++,
				0);
		}
	}
}

/* -- Across the tree ---------------------------------------------------------------- */

static struct tti_xml *gpu_of(const struct maker *maker, int i)
{
	return tti_xml_find(maker->gpus[i], "gpu", NULL, NULL);
}

static void add_nvlink(struct maker *maker, int from, const char *target, unsigned count,
		       const char *tclass)
{
	struct tti_xml *link = add(maker, gpu_of(maker, from), maker->amd ? "xgmi" : "nvlink");

	set(maker, link, "target", target);
	set_int(maker, link, "count", count);
	set(maker, link, "tclass", tclass);
}

static void add_mesh(struct maker *maker, unsigned density)
{
	const char *tclass = maker->amd ? "0x038000" : "0x030200";

	for (int a = 0; a < maker->ngpus; a++) {
		for (int b = 0; b < a; b++) {
			const unsigned count = below(maker, 20) ? 1 + below(maker, 4) : 0;

			if (!chance(maker, density))
				continue;
			add_nvlink(maker, a, tti_xml_get(maker->gpus[b], "busid"), count, tclass);
			if (chance(maker, 95))
				add_nvlink(maker, b, tti_xml_get(maker->gpus[a], "busid"),
					   chance(maker, 95) ? count : count + 1, tclass);
		}
	}
}

static void add_crossings(struct maker *maker)
{
	const unsigned kind = below(maker, 5);

	if (kind == 0 || kind == 1)
		add_mesh(maker, kind ? 30 : 90);
	for (int i = 0; kind == 2 && i < maker->ngpus; i++)
		add_nvlink(maker, i, "fffffff:ff:ff.0", 1 + below(maker, 18), "0x068000");
	for (int i = 0; i < maker->ngpus && chance(maker, 15); i++) {
		struct tti_xml *c2c = add(maker, gpu_of(maker, i), "c2c");

		set(maker, c2c, "bw", "44712");
		set_int(maker, c2c, "count", 1 + below(maker, 10));
	}
	/* Between siblings only: a link to an ancestor is refused. */
	for (int i = 1; i < maker->nswitches; i++) {
		struct tti_xml *a = maker->switches[i], *b = maker->switches[i - 1];

		if (a->parent == b->parent && chance(maker, 15))
			set(maker, add(maker, a, "pcilink"), "target", tti_xml_get(b, "busid"));
	}
}

/* -- Hosts -------------------------------------------------------------------------- */

static void add_numa(struct maker *maker, int host, int numa, int package)
{
	static const struct {
		const char *arch, *vendor;
		int family, model;
	} kinds[] = {
		{ "x86_64", "GenuineIntel", 6, 85 },
		{ "x86_64", "GenuineIntel", 6, 143 },
		{ "x86_64", "AuthenticAMD", 25, 17 },
		{ "arm64", "ARM", 0, 0 },
	};
	const unsigned kind = maker->bus >> 12 & 3;
	struct tti_xml *cpu = add(maker, maker->doc->root, "cpu");
	char text[64];

	snprintf(text, sizeof(text), "0x%x", host + 0xabc);
	if (host >= 0)
		set(maker, cpu, "host_hash", text);
	set_int(maker, cpu, "numaid", numa);
	snprintf(text, sizeof(text), "%08x,%08x", numa >= 8 ? 0xfU << (numa - 8) * 4 : 0,
		 numa < 8 ? 0xfU << numa * 4 : 0);
	set(maker, cpu, "affinity", text);
	set(maker, cpu, "arch", kinds[kind].arch);
	set(maker, cpu, "vendor", kinds[kind].vendor);
	set_int(maker, cpu, "familyid", kinds[kind].family);
	set_int(maker, cpu, "modelid", kinds[kind].model);
	if (package >= 0)
		set_int(maker, cpu, "tutti_package", package);
	if (chance(maker, 80))
		add_tree(maker, cpu, 0);
	if (maker->nets < MAX_NETS && chance(maker, 15))
		add_net(maker, cpu, "eth", 0);
}

/* `host` -1: the only one, without a hash. */
static void add_host(struct maker *maker, int host)
{
	static const int sms[] = { 60, 70, 80, 86, 90, 100, 0 };
	const int sockets = (int)below(maker, 4) + 1;
	const int nodes = chance(maker, 30) ? 2 : 1;
	const bool stated = chance(maker, 50);

	/* Bits above the bus choose the CPU; the domain takes them up. */
	maker->bus = below(maker, 4) << 12 | 1;
	maker->sm = sms[below(maker, 7)];
	maker->amd = chance(maker, 25);
	maker->host_nets = maker->ngpus = maker->nswitches = 0;
	for (int i = 0; i < sockets * nodes; i++)
		add_numa(maker, host, i, stated ? i / nodes : -1);
	add_crossings(maker);
}

struct tti_xml_doc *random_topo(uint64_t seed)
{
	struct maker maker = { .state = tti_hash_mix(seed + 1) };
	int hosts;

	if (tti_xml_create("random", &maker.doc) != TUTTI_OK)
		return NULL;
	hosts = chance(&maker, 15) ? 2 + (int)below(&maker, 2) : 1;
	for (int i = 0; i < hosts; i++)
		add_host(&maker, hosts == 1 ? -1 : i);
	if (!maker.failed)
		return maker.doc;
	tti_xml_free(maker.doc);
	return NULL;
}
