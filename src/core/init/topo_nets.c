/* SPDX-License-Identifier: BSD-3-Clause */
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include "boot/net/iface.h"
#include "core/init/host_classes.h"
#include "topo/detect/sysfs.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/params.h"

_Static_assert(TTI_HOST_IFNAME == IFNAMSIZ, "the info has room for names of interfaces");

/* Looking for the NICs behind the interfaces of this host. */
struct search {
	const struct tti_sysfs *sysfs;
	struct tti_xml_doc *doc;
	struct tti_host_info *info;
	const struct tti_addr *addr; /* the interface at hand */
	uint64_t rail;
};

/* -- Noting ------------------------------------------------------------------------------ */

static bool same(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static bool is_noted(const struct tti_host_info *info, uint32_t number)
{
	for (uint32_t i = 0; i < info->nnets; i++)
		if (info->nets[i] == number)
			return true;
	return false;
}

static void note(const struct search *s, const struct tti_xml *net, uint32_t number)
{
	struct tti_host_info *info = s->info;
	const char *leaf = tti_xml_get(net, "tutti_switch");

	if (info->nnets < TTI_HOST_NETS && !is_noted(info, number)) {
		info->nets[info->nnets] = number;
		info->rail[info->nnets] = s->rail;
		memcpy(info->ifname[info->nnets], s->addr->ifname, TTI_HOST_IFNAME);
		info->nnets++;
	}
	if (!info->leaf && leaf)
		info->leaf = tti_hash_bytes(leaf, strlen(leaf));
}

/* The <net>s that are an interface of that name, or are bonded to it. */
static bool note_nets(const struct search *s, const char *ifname)
{
	uint32_t number = 0;
	bool found = false;

	for (const struct tti_xml *at = s->doc->root; at; at = tti_xml_walk(at), number++) {
		if (!tti_xml_is(at, "net") || !(same(tti_xml_get(at, "name"), ifname) ||
						same(tti_xml_get(at, "tutti_netdev"), ifname) ||
						same(tti_xml_get(at, "tutti_master"), ifname)))
			continue;
		note(s, at, number);
		found = true;
	}
	return found;
}

/* The same for the interfaces below a VLAN, a bridge or a bond. */
static bool note_below(const struct search *s, const char *ifname, int depth)
{
	bool found = note_nets(s, ifname);
	char **names;
	size_t n;

	if (found || depth == 0 ||
	    tti_sysfs_list(s->sysfs, &names, &n, "sys/class/net/%s", ifname) != TUTTI_OK)
		return found;
	for (size_t i = 0; i < n; i++)
		if (strncmp(names[i], "lower_", 6) == 0)
			found |= note_below(s, names[i] + 6, depth - 1);
	free(names);
	return found;
}

/* An interface without visible hardware, like a container's end of a pair or a tunnel. It leads to
 * other hosts, so it counts as a NIC of the speed that it claims. */
static tutti_status add_virtual(const struct search *s)
{
	struct tti_xml_doc *doc = s->doc;
	struct tti_xml *cpu = tti_xml_find(doc->root, "cpu", NULL, NULL), *nic, *net;
	const char *ifname = s->addr->ifname;
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
	if (!tti_sysfs_int(s->sysfs, &speed, "sys/class/net/%s/speed", ifname) || speed <= 0 ||
	    speed > INT32_MAX)
		speed = -1;
	nic = tti_xml_add(doc, cpu, "nic");
	net = nic ? tti_xml_add(doc, nic, "net") : NULL;
	if (!net || !tti_xml_set(doc, net, "name", ifname) ||
	    !tti_xml_setf(doc, net, "dev", "%lld", (long long)dev) ||
	    !tti_xml_setf(doc, net, "speed", "%lld", (long long)speed) ||
	    !tti_xml_set(doc, net, "tutti_virtual", "1"))
		return tti_fail(TUTTI_ENOMEM, "the topology of this host: out of memory");
	tti_log(TTI_LOG_INFO, TTI_TOPO,
		"%s is what leads to other hosts; no hardware is seen behind it, so it counts as "
		"a NIC",
		ifname);
	return TUTTI_OK;
}

/* -- Interfaces -------------------------------------------------------------------------- */

static bool is_loopback(const struct tti_addr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };

	return addr->family == 4 ? addr->ip[0] == 127 : memcmp(addr->ip, one, 16) == 0;
}

/* Whether an interface without hardware, which is not the likeliest, leads to other hosts: a bridge
 * leads to guests of this host, a tunnel through another interface. */
static bool leads_out(const struct search *s)
{
	const char *ifname = s->addr->ifname;

	return !is_loopback(s->addr) &&
	       !tti_sysfs_exists(s->sysfs, "sys/class/net/%s/bridge", ifname) &&
	       !tti_sysfs_exists(s->sysfs, "sys/class/net/%s/tun_flags", ifname);
}

/* The network part of an address, as a number; 0: not known. */
static uint64_t hash_network(const struct tti_addr *addr, const struct tti_addr *mask)
{
	const size_t nbytes = addr->family == 4 ? 4 : 16;
	uint8_t network[16];

	if (mask->family != addr->family || addr->scope)
		return 0;
	for (size_t i = 0; i < nbytes; i++)
		network[i] = addr->ip[i] & mask->ip[i];
	return tti_hash_bytes(network, nbytes);
}

static uint64_t rail_of(const struct ifaddrs *list, const struct tti_addr *addr)
{
	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		struct tti_addr one = { 0 }, mask = { 0 };

		if (!at->ifa_addr || !at->ifa_netmask || !same(at->ifa_name, addr->ifname) ||
		    tti_addr_from_sock(at->ifa_addr, &one) != TUTTI_OK ||
		    tti_addr_from_sock(at->ifa_netmask, &mask) != TUTTI_OK)
			continue;
		if (one.family == addr->family && memcmp(one.ip, addr->ip, sizeof(one.ip)) == 0)
			return hash_network(addr, &mask);
	}
	return 0;
}

/* An interface with several addresses is looked at once, by the likeliest. */
static bool is_first_of_its_name(const struct tti_addr *addrs, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(addrs[i].ifname, addrs[at].ifname) == 0)
			return false;
	return true;
}

static tutti_status search(struct search *s, const struct tti_addr *addrs, size_t n)
{
	struct ifaddrs *list = NULL;
	bool hardware = false;
	tutti_status st = TUTTI_OK;

	if (getifaddrs(&list) < 0)
		list = NULL;
	for (size_t i = 0; i < n && st == TUTTI_OK; i++) {
		bool found;

		/* An interface with only a link-local address is not set up to be used. */
		if (!is_first_of_its_name(addrs, i) || (i > 0 && addrs[i].scope))
			continue;
		s->addr = &addrs[i];
		s->rail = rail_of(list, &addrs[i]);
		found = note_below(s, addrs[i].ifname, 4);
		hardware |= found;
		if (found || hardware || s->info->nnets == TTI_HOST_NETS ||
		    (i > 0 && !leads_out(s)))
			continue;
		st = add_virtual(s);
		if (st == TUTTI_OK)
			(void)note_nets(s, addrs[i].ifname);
	}
	if (list)
		freeifaddrs(list);
	return st;
}

tutti_status tti_topo_find_nets(struct tti_xml_doc *doc, struct tti_host_info *info)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	struct tti_sysfs sysfs;
	struct search s = { .sysfs = &sysfs, .doc = doc, .info = info };
	size_t n = 0, nrunning = 0;
	tutti_status st;

	/* A captured machine does not have the interfaces of this one. */
	if (tti_params()->sysfs_root ||
	    tti_iface_list(addrs, TTI_IFACE_MOST, &n, &nrunning) != TUTTI_OK) {
		info->nnets = TTI_HOST_ANY_NET;
		return TUTTI_OK;
	}
	if (tti_sysfs_open(NULL, &sysfs) != TUTTI_OK)
		sysfs = (struct tti_sysfs){ .fd = -1 };
	/* NICs that do not run are planned with only if there are no others. */
	st = search(&s, addrs, nrunning ? nrunning : n);
	if (sysfs.fd >= 0)
		tti_sysfs_close(&sysfs);
	return st == TUTTI_OK ? tti_schema_check(doc) : st;
}
