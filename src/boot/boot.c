/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/boot.h"

#include <stdio.h>

#include "boot/base.h"
#include "boot/net/wire.h"
#include "util/error.h"

const char *tti_boot_name(const struct tti_boot *boot, int rank, char buf[TTI_BOOT_NAME])
{
	if (boot->ops->name)
		return boot->ops->name(boot, rank, rank, buf);
	(void)snprintf(buf, TTI_BOOT_NAME, "rank %d", rank);
	return buf;
}

int tti_boot_rank(const struct tti_boot *boot)
{
	return boot->rank;
}

int tti_boot_nranks(const struct tti_boot *boot)
{
	return boot->nranks;
}

int tti_boot_is_local(const struct tti_boot *boot)
{
	return boot->local;
}

const uint8_t *tti_boot_secret(const struct tti_boot *boot)
{
	return boot->secret;
}

static tutti_status check_phase(const struct tti_boot *boot)
{
	if (boot->watching)
		return tti_fail(TUTTI_EUSAGE, "the bootstrap's connections belong to the watch "
					      "since tti_watch_start()");
	return TUTTI_OK;
}

tutti_status tti_boot_all_gather(struct tti_boot *boot, void *blobs, size_t nbytes)
{
	TTI_TRY(check_phase(boot));
	return boot->nranks == 1 ? TUTTI_OK : boot->ops->all_gather(boot, blobs, nbytes);
}

/* A rank hands a piece on when it has all of it. */
#define PIECE ((size_t)16 << 10)

tutti_status tti_boot_broadcast(struct tti_boot *boot, int root, void *data, size_t nbytes)
{
	const size_t piece = boot->local ? nbytes : PIECE;
	uint8_t *at = data;

	TTI_TRY(check_phase(boot));
	if (root < 0 || root >= boot->nranks)
		return tti_fail(TUTTI_EINVAL, "a broadcast of rank %d among %d ranks", root,
				boot->nranks);
	for (size_t left = nbytes; left > 0 && boot->nranks > 1;) {
		const size_t now = left < piece ? left : piece;

		TTI_TRY(boot->ops->broadcast(boot, root, at, now));
		at += now;
		left -= now;
	}
	return TUTTI_OK;
}

void tti_boot_give_up(struct tti_boot *boot)
{
	char why[TTI_FAILURE_TEXT], name[TTI_BOOT_NAME];
	struct tti_failure failure;

	if (!boot)
		return;
	(void)snprintf(why, sizeof(why), "%s", tti_error_text());
	failure = tti_failure_of(boot->rank, tti_boot_name(boot, boot->rank, name), why);
	if (boot->watching)
		boot->ops->watch_notify(boot, &failure);
	else
		boot->ops->give_up(boot, &failure);
	tti_error_set(why);
}

void tti_boot_close(struct tti_boot *boot)
{
	if (!boot)
		return;
	tti_watch_stop(boot);
	boot->ops->close(boot);
}

tutti_status tti_watch_start(struct tti_boot *boot, const struct tti_watch_events *events)
{
	TTI_TRY(check_phase(boot));
	TTI_TRY(boot->ops->watch_start(boot, events));
	boot->watching = true;
	return TUTTI_OK;
}

void tti_watch_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	boot->ops->watch_notify(boot, failure);
}

void tti_watch_ask(struct tti_boot *boot, int peer)
{
	if (peer >= 0 && peer < boot->nranks && peer != boot->rank)
		boot->ops->watch_ask(boot, peer);
}

bool tti_watch_tick(struct tti_boot *boot)
{
	if (!boot->ops->watch_tick)
		return false;
	boot->ops->watch_tick(boot);
	return true;
}

void tti_watch_stop(struct tti_boot *boot)
{
	if (boot && boot->watching)
		boot->ops->watch_stop(boot);
}
