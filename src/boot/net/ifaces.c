/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/iface.h"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/params.h"

/* A card has one byte for the number of an interface. */
#define IFACES_MOST 255

/* Scores after all interfaces that run, and after those that are up. */
#define NOT_RUNNING 1000
#define NOT_UP      2000

static bool has_virtual_name(const char *name)
{
	static const char *const virtual[] = { "docker",  "br-",  "virbr",  "veth", "cni",
					       "flannel", "cali", "podman", "lxc",  "lxd" };

	for (size_t i = 0; i < sizeof(virtual) / sizeof(*virtual); i++) {
		if (strncmp(name, virtual[i], strlen(virtual[i])) == 0)
			return true;
	}
	return false;
}

static int unlikeliness(const struct tti_iface *iface, const struct tti_addr *addr)
{
	int score = iface->running ? 0 : iface->up ? NOT_RUNNING : NOT_UP;

	if (iface->kind == TTI_IFACE_LOOPBACK)
		score += 100;
	if (has_virtual_name(iface->name))
		score += 10;
	if (addr->family == 6)
		score += addr->scope ? 5 : 1;
	return score;
}

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

/* Why this one is not offered; NULL: it is. */
static const char *excluded(const struct ifaddrs *at, const struct tti_param_values *params)
{
	const int family = at->ifa_addr->sa_family;

	if (!tti_iface_passes(params->socket_ifname, at->ifa_name))
		return "excluded by TUTTI_SOCKET_IFNAME";
	if ((params->socket_family == 1 && family != AF_INET) ||
	    (params->socket_family == 2 && family != AF_INET6))
		return "excluded by TUTTI_SOCKET_FAMILY";
	return NULL;
}

static bool is_up(const struct ifaddrs *at)
{
	return at->ifa_flags & IFF_UP;
}

static bool is_running(const struct ifaddrs *at)
{
	return is_up(at) && (at->ifa_flags & IFF_RUNNING);
}

static uint8_t prefix_of(const struct ifaddrs *at, int family)
{
	struct tti_addr mask;
	unsigned bits = 0;

	if (!at->ifa_netmask)
		return family == 4 ? 32 : 128;
	/* A mask does not always have its family set. */
	at->ifa_netmask->sa_family = family == 4 ? AF_INET : AF_INET6;
	if (tti_addr_from_sock(at->ifa_netmask, &mask) != TUTTI_OK)
		return family == 4 ? 32 : 128;
	for (int i = 0; i < (family == 4 ? 4 : 16); i++)
		bits += (unsigned)__builtin_popcount(mask.ip[i]);
	return (uint8_t)bits;
}

/* The interface of that name, added if it is new. NULL: out of memory, or too many. */
static struct tti_iface *iface_of(struct tti_ifaces *out, const char *name,
				  const struct ifaddrs *at)
{
	struct tti_iface iface = { .up = is_up(at), .running = is_running(at) };

	for (size_t i = 0; i < out->iface.n; i++) {
		if (strcmp(out->iface.at[i].name, name) == 0)
			return &out->iface.at[i];
	}
	memcpy(iface.name, name, IFNAMSIZ);
	iface.index = if_nametoindex(name);
	if (at->ifa_flags & IFF_LOOPBACK)
		iface.kind = TTI_IFACE_LOOPBACK;
	else
		iface.kind = has_virtual_name(name) ? TTI_IFACE_BRIDGE : TTI_IFACE_NIC;
	if (out->iface.n == IFACES_MOST || !tti_vec_push(&out->iface, iface))
		return NULL;
	return &out->iface.at[out->iface.n - 1];
}

static bool insert(struct tti_ifaces *out, const struct tti_iface_addr *one)
{
	size_t at = out->addr.n;

	if (!tti_vec_push(&out->addr, *one))
		return false;
	for (; at > 0 && out->addr.at[at - 1].score > one->score; at--)
		out->addr.at[at] = out->addr.at[at - 1];
	out->addr.at[at] = *one;
	return true;
}

static bool add(struct tti_ifaces *out, const struct ifaddrs *at, const struct tti_addr *addr)
{
	struct tti_iface_addr one = { .addr = *addr, .prefix = prefix_of(at, addr->family) };
	const struct tti_iface *iface;

	/* Further addresses of an interface may have names like eth0:1. */
	one.addr.ifname[strcspn(one.addr.ifname, ":")] = '\0';
	iface = iface_of(out, one.addr.ifname, at);
	if (!iface)
		return false;
	one.iface = (uint8_t)(iface - out->iface.at);
	one.score = unlikeliness(iface, addr);
	return insert(out, &one);
}

static void tell(struct tti_strbuf *why, const struct tti_addr *addr, const char *reason)
{
	char text[TTI_ADDR_TEXT];

	if (!why)
		return;
	tti_strbuf_addf(why, "%s%s (%s): %s", why->len ? "; " : "", addr->ifname,
			tti_addr_format(addr, text, sizeof(text)), reason);
}

static tutti_status gather(const struct ifaddrs *list, struct tti_ifaces *out,
			   struct tti_strbuf *why)
{
	const struct tti_param_values *params = tti_params();

	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		struct tti_addr addr;
		const char *reason;

		if (!at->ifa_addr || tti_addr_from_sock(at->ifa_addr, &addr) != TUTTI_OK)
			continue;
		(void)strncpy(addr.ifname, at->ifa_name, IFNAMSIZ - 1);
		reason = excluded(at, params);
		if (reason || !is_running(at))
			tell(why, &addr,
			     reason      ? reason
			     : is_up(at) ? "up, but not running (no carrier)"
					 : "down");
		out->nexcluded += reason != NULL;
		if (!reason && !add(out, at, &addr))
			return tti_fail(TUTTI_ENOMEM, "interface %s", at->ifa_name);
	}
	return TUTTI_OK;
}

static void find_mtus(struct tti_ifaces *ifaces)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (size_t i = 0; i < ifaces->iface.n && fd >= 0; i++) {
		struct ifreq ask = { 0 };

		memcpy(ask.ifr_name, ifaces->iface.at[i].name, IFNAMSIZ);
		if (ioctl(fd, SIOCGIFMTU, &ask) == 0)
			ifaces->iface.at[i].mtu =
				(uint16_t)(ask.ifr_mtu < UINT16_MAX ? ask.ifr_mtu : UINT16_MAX);
	}
	tti_fd_close(&fd);
}

tutti_status tti_ifaces_look(struct tti_ifaces *out, struct tti_strbuf *why)
{
	struct ifaddrs *list;
	tutti_status status;

	memset(out, 0, sizeof(*out));
	if (getifaddrs(&list) < 0)
		return tti_fail(TUTTI_ESYS, "getifaddrs: %m");
	status = gather(list, out, why);
	freeifaddrs(list);
	if (status == TUTTI_OK)
		find_mtus(out);
	return status;
}

/* The driver of an interface without a wire reports no real speed. */
static bool is_without_wire(int fd, const struct tti_iface *iface)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ask = { .ifr_data = (char *)&info };

	memcpy(ask.ifr_name, iface->name, IFNAMSIZ);
	return ioctl(fd, SIOCETHTOOL, &ask) == 0 &&
	       (strcmp(info.driver, "veth") == 0 || strcmp(info.driver, "tun") == 0);
}

/* By ioctl, since /sys may be that of another network namespace. */
void tti_ifaces_measure(struct tti_ifaces *ifaces)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (size_t i = 0; i < ifaces->iface.n && fd >= 0; i++) {
		struct tti_iface *iface = &ifaces->iface.at[i];
		struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
		struct ifreq ask = { .ifr_data = (char *)&command };
		uint32_t mbps;

		memcpy(ask.ifr_name, iface->name, IFNAMSIZ);
		if (ioctl(fd, SIOCETHTOOL, &ask) || is_without_wire(fd, iface))
			continue;
		/* Not ethtool_cmd_speed(): it shifts an int, and -1 is "unknown". */
		mbps = (uint32_t)command.speed_hi << 16 | command.speed;
		iface->mbps = mbps == (uint32_t)SPEED_UNKNOWN || mbps == UINT16_MAX ? 0 : mbps;
	}
	tti_fd_close(&fd);
}

void tti_ifaces_release(struct tti_ifaces *ifaces)
{
	tti_vec_release(&ifaces->iface);
	tti_vec_release(&ifaces->addr);
}
