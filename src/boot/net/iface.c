/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/iface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

/* How many addresses before addr[i] are of the same interface and family. Link-local ones count as a family
 * of their own. */
static size_t turn_of(const struct tti_iface_addr *addr, size_t i)
{
	size_t before = 0;

	for (size_t k = 0; k < i; k++)
		before += addr[k].iface == addr[i].iface &&
			  addr[k].addr.family == addr[i].addr.family &&
			  !addr[k].addr.scope == !addr[i].addr.scope;
	return before;
}

size_t tti_iface_choose(const struct tti_iface_addr *addr, size_t n, size_t most, bool *take)
{
	size_t taken = 0, left = n;

	memset(take, 0, n * sizeof(*take));
	for (size_t turn = 0; left > 0 && taken < most; turn++) {
		for (size_t i = 0; i < n && taken < most; i++) {
			if (take[i] || turn_of(addr, i) != turn)
				continue;
			take[i] = true;
			taken++;
			left--;
		}
	}
	return taken;
}

static const struct tti_iface *iface_of(const struct tti_ifaces *ifaces, size_t addr)
{
	return &ifaces->iface.at[ifaces->addr.at[addr].iface];
}

size_t tti_ifaces_offered(const struct tti_ifaces *ifaces, size_t *nrunning)
{
	size_t n = 0;
	bool has_nic = false;

	for (; n < ifaces->addr.n && iface_of(ifaces, n)->running; n++)
		has_nic |= iface_of(ifaces, n)->kind == TTI_IFACE_NIC;
	*nrunning = n;
	while (!has_nic && n < ifaces->addr.n && iface_of(ifaces, n)->up)
		n++;
	return n;
}

/* Keep the addresses of addr[from .. to-1] for which there is room. */
static tutti_status keep(const struct tti_ifaces *ifaces, size_t from, size_t to,
			 struct tti_addr *out, size_t most, size_t *n)
{
	bool *take;

	if (from == to)
		return TUTTI_OK;
	take = tti_calloc(to - from, sizeof(*take));
	if (!take)
		return tti_fail(TUTTI_ENOMEM, "%zu addresses", ifaces->addr.n);
	(void)tti_iface_choose(ifaces->addr.at + from, to - from, most - *n, take);
	for (size_t i = from; i < to; i++) {
		char addr[TTI_ADDR_TEXT];

		if (!take[i - from])
			continue;
		out[*n] = ifaces->addr.at[i].addr;
		tti_log(TTI_LOG_INFO, TTI_BOOT, "offering %s (%s%s)",
			tti_addr_format(&out[*n], addr, sizeof(addr)), out[*n].ifname,
			iface_of(ifaces, i)->running ? "" : ", up, but not running yet");
		(*n)++;
	}
	tti_free(take);
	return TUTTI_OK;
}

tutti_status tti_iface_list(struct tti_addr *out, size_t most, size_t *n, size_t *nrunning)
{
	struct tti_ifaces ifaces;
	struct tti_strbuf why = { 0 };
	tutti_status status = tti_ifaces_look(&ifaces, &why);
	char *text = tti_strbuf_take(&why);
	size_t running, offered = tti_ifaces_offered(&ifaces, &running);

	*n = 0;
	if (status == TUTTI_OK)
		status = keep(&ifaces, 0, running, out, most, n);
	if (nrunning)
		*nrunning = *n;
	if (status == TUTTI_OK)
		status = keep(&ifaces, running, offered, out, most, n);
	if (status == TUTTI_OK && *n == 0)
		status = tti_fail_quiet(
			ifaces.nexcluded > 0 ? TUTTI_EUSAGE : TUTTI_ESYS,
			"no usable network address: %s. Bring an interface up, or change "
			"TUTTI_SOCKET_IFNAME or TUTTI_SOCKET_FAMILY",
			text && *text ? text : "there is no interface with an address");
	free(text);
	tti_ifaces_release(&ifaces);
	return status;
}

const char *tti_iface_tell(const char *host, char *buf, size_t size)
{
	struct tti_ifaces ifaces;
	struct tti_strbuf why = { 0 };
	const int head = snprintf(buf, size, "; on %s host ", host);

	if (tti_ifaces_look(&ifaces, &why) == TUTTI_OK && why.len > 0 && !why.failed &&
	    (size_t)head < size)
		tti_copy_list(buf + head, size - (size_t)head, why.text);
	else
		*buf = '\0';
	tti_strbuf_release(&why);
	tti_ifaces_release(&ifaces);
	return buf;
}
