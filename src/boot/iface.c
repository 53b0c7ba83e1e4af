/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/iface.h"

#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"
#include "util/params.h"
#include "util/strbuf.h"

bool tti_iface_passes(const char *list, const char *name)
{
	if (!list)
		return true;

	const bool all_but = *list == '^';

	list += all_but;

	const bool exact = *list == '=';

	list += exact;
	for (const char *item = list; *item;) {
		const size_t len = strcspn(item, ",");

		if (len > 0 && strncmp(item, name, len) == 0 && (!exact || name[len] == '\0'))
			return !all_but;
		item += len + (item[len] == ',');
	}
	return all_but;
}

/* Small is likely to be reachable from elsewhere. */
static int unlikeliness(const struct tti_addr *addr, unsigned flags)
{
	static const char *const virtual[] = { "docker",  "br-",  "virbr",  "veth", "cni",
					       "flannel", "cali", "podman", "lxc",  "lxd" };
	int score = 0;

	if (flags & IFF_LOOPBACK)
		score += 100;
	for (size_t i = 0; i < sizeof(virtual) / sizeof(*virtual); i++)
		if (strncmp(addr->ifname, virtual[i], strlen(virtual[i])) == 0)
			score += 10;
	if (addr->family == 6)
		score += addr->scope ? 5 : 1;
	return score;
}

struct found {
	struct tti_addr addr;
	int score;
};

#define FOUND_MOST 64

/* Why this one is not offered; NULL: it is. */
static const char *excluded(const struct ifaddrs *at, const struct tti_params *params)
{
	const int family = at->ifa_addr->sa_family;

	if (!(at->ifa_flags & IFF_UP) || !(at->ifa_flags & IFF_RUNNING))
		return "not running";
	if (!tti_iface_passes(params->socket_ifname, at->ifa_name))
		return "excluded by TUTTI_SOCKET_IFNAME";
	if ((params->socket_family == 1 && family != AF_INET) ||
	    (params->socket_family == 2 && family != AF_INET6))
		return "excluded by TUTTI_SOCKET_FAMILY";
	return NULL;
}

static void insert(struct found *found, size_t *n, const struct found *one)
{
	size_t at = *n < FOUND_MOST ? (*n)++ : FOUND_MOST - 1;

	for (; at > 0 && found[at - 1].score > one->score; at--)
		found[at] = found[at - 1];
	found[at] = *one;
}

static size_t gather(const struct ifaddrs *list, struct found *found, struct tti_strbuf *why)
{
	const struct tti_params *params = tti_params();
	size_t n = 0;

	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		struct found one = { 0 };
		char text[TTI_ADDR_TEXT];

		if (!at->ifa_addr || tti_addr_from_sock(at->ifa_addr, &one.addr) != TUTTI_OK)
			continue;
		(void)strncpy(one.addr.ifname, at->ifa_name, IFNAMSIZ - 1);
		one.score = unlikeliness(&one.addr, at->ifa_flags);

		const char *reason = excluded(at, params);

		tti_addr_format(&one.addr, text, sizeof(text));
		if (reason)
			tti_strbuf_addf(why, "%s%s (%s): %s", why->len ? "; " : "", at->ifa_name,
					text, reason);
		else
			insert(found, &n, &one);
	}
	return n;
}

tutti_status tti_iface_list(struct tti_addr *out, size_t most, size_t *n)
{
	struct found found[FOUND_MOST];
	struct tti_strbuf why = { 0 };
	struct ifaddrs *list;

	*n = 0;
	if (getifaddrs(&list) < 0)
		return tti_fail(TUTTI_ESYS, "getifaddrs: %m");

	const size_t nfound = gather(list, found, &why);
	char *text = tti_strbuf_take(&why);
	tutti_status status = TUTTI_OK;

	freeifaddrs(list);
	for (; *n < nfound && *n < most; (*n)++) {
		char addr[TTI_ADDR_TEXT];

		out[*n] = found[*n].addr;
		tti_log(TTI_LOG_INFO, TTI_BOOT, "offering %s (%s)",
			tti_addr_format(&out[*n], addr, sizeof(addr)), out[*n].ifname);
	}
	if (*n == 0)
		status = tti_fail(TUTTI_ESYS,
				  "no usable network address: %s. Bring an interface up, or "
				  "change TUTTI_SOCKET_IFNAME or TUTTI_SOCKET_FAMILY",
				  text && *text ? text : "there is no interface with an address");
	free(text);
	return status;
}
