/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap of ranks in processes, from its first socket to its last. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/init/id.h"
#include "boot/init/root.h"
#include "boot/init/root_group.h"
#include "boot/net/sock.h"
#include "boot/watch/watcher.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/process.h"
#include "util/secret.h"

/* The exchange of addresses may last so long after the deadline, or after the ring stands if that is later:
 * joining waits for the root's word (join.c). */
#define GRACE_MS 1500

static void sock_close(struct tti_boot *boot)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	/* All that others may wait for goes out, then the goodbye. */
	tti_watcher_stop(&sock->base);
	tti_tunnel_close(&sock->prev_tunnel);
	tti_tunnel_close(&sock->next_tunnel);
	for (int i = 0; sock->in && i < boot->nranks; i++)
		tti_tunnel_close(&sock->in[i]);
	tti_tunnel_close(&sock->inbox_prev);
	tti_fd_close(&sock->inbox_fd);
	pthread_mutex_destroy(&sock->lock);
	tti_dispatcher_release(&boot->dispatcher);
	tti_free(sock->in);
	tti_free(sock->cards);
	tti_secret_free(sock);
}

static tutti_status sock_gather(struct tti_boot *boot, void *blobs, size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	return tti_sock_gather(sock, blobs, nbytes, nbytes ? "all_gather" : "barrier",
			       tti_deadline(sock->timeout_ms));
}

static tutti_status sock_broadcast(struct tti_boot *boot, int root, void *data, size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	return tti_sock_broadcast(sock, root, data, nbytes, "broadcast",
				  tti_deadline(sock->timeout_ms));
}

const struct tti_boot_ops tti_sock_ops = {
	.all_gather = sock_gather,
	.broadcast = sock_broadcast,
	.give_up = tti_sock_give_up,
	.close = sock_close,
	.watch_start = tti_watcher_take_over,
	.watch_notify = tti_watcher_notify,
	.watch_ask = tti_watcher_ask,
	.watch_tick = tti_watcher_tick,
	.watch_stop = tti_watcher_stop,
	.name = tti_sock_name_as,
	.mail = tti_watcher_mail,
};

/* Which process this is. */
static void sign(struct tti_wire_card *card)
{
	card->pid = (int32_t)getpid();
	card->identity = tti_process_identity(card->pid);
	if (gethostname(card->host, sizeof(card->host)) < 0)
		card->host[0] = '?';
	tti_wire_clean(card->host, sizeof(card->host));
}

static tutti_status make(const struct tti_boot_config *config, struct tti_sock **out)
{
	const size_t n = (size_t)config->nranks;
	struct tti_sock *sock = tti_secret_zalloc(sizeof(*sock));

	if (!sock)
		return tti_fail(TUTTI_ENOMEM, "no memory for the bootstrap");
	sock->base.ops = &tti_sock_ops;
	sock->base.rank = config->rank;
	sock->base.nranks = config->nranks;
	sock->timeout_ms = config->timeout_ms;
	sock->stop = config->stop;
	sock->on_broken = config->on_broken;
	sock->self = config->self;
	sock->inbox_fd = -1;
	pthread_mutex_init(&sock->lock, NULL);
	sock->cards = tti_calloc(n, sizeof(*sock->cards));
	sock->in = tti_calloc(n, sizeof(*sock->in));
	*out = sock;
	if (!sock->cards || !sock->in)
		return tti_fail(TUTTI_ENOMEM, "no memory for %zu ranks", n);
	sign(&sock->cards[config->rank]);
	TTI_TRY(tti_dispatcher_init(&sock->base.dispatcher, config->nranks));
	sock->inbox_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (sock->inbox_fd < 0)
		return tti_fail(TUTTI_ESYS, "eventfd: %m");
	return TUTTI_OK;
}

/* Without a network, ranks of one host reach each other by unix sockets. If variables exclude all NICs,
 * other hosts are meant, and only a rank that is alone does without. */
static tutti_status listen_for_peers(int nranks, struct tti_addr *addrs, size_t *n, int *fd)
{
	tutti_status status = tti_iface_list(addrs, TTI_IFACE_MOST, n, NULL);
	uint16_t port = 0;

	if (status == TUTTI_ESYS || (status == TUTTI_EUSAGE && nranks == 1)) {
		*n = 1;
		return tti_listen_unix(4096, addrs, fd);
	}
	if (status != TUTTI_OK)
		return tti_fail(status, "%s", tti_error_text());
	TTI_TRY(tti_listen(&port, 4096, fd));
	addrs[0].port = htons(port);
	return TUTTI_OK;
}

static tutti_status listen_and_tell(int nranks, struct tti_wire_card *card, int *fd)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n;

	TTI_TRY(listen_for_peers(nranks, addrs, &n, fd));
	card->port = addrs[0].port;
	card->addr_bytes = (uint8_t)tti_addrs_pack(addrs, n, card->addrs, sizeof(card->addrs));
	return TUTTI_OK;
}

/* An id made by hand is served by the first rank of its group. */
static tutti_status serve_root(const struct tti_boot_config *config, struct tti_root **out)
{
	const int iroot = tti_group_of(config->nranks, config->nids, config->rank);
	tutti_status status = TUTTI_OK;
	struct tti_id id;
	uint16_t port;
	int fd;

	TTI_TRY(tti_id_decode(&config->ids[iroot], &id));
	if (!(id.flags & TTI_ID_BY_HAND) ||
	    tti_group_make(config->nranks, config->nids, iroot).first != config->rank)
		goto done;
	if (id.flags & TTI_ID_OPEN)
		tti_log(TTI_LOG_WARN, TTI_BOOT,
			"the ranks meet at a given address without TUTTI_COMM_SECRET: whoever "
			"reaches its port can join");

	port = ntohs(id.addrs[0].port);
	status = tti_listen(&port, 16384, &fd);
	if (status == TUTTI_OK)
		status = tti_root_start(fd, id.secret, config->timeout_ms, out);
done:
	explicit_bzero(id.secret, sizeof(id.secret));
	return status;
}

static tutti_status check_config(const struct tti_boot_config *config)
{
	if (config->nranks < 1 || config->rank < 0 || config->rank >= config->nranks)
		return tti_fail(TUTTI_EINVAL, "rank %d of %d ranks: it must be 0 to nranks - 1",
				config->rank, config->nranks);
	if (config->nranks > TTI_BOOT_RANKS_MOST)
		return tti_fail(TUTTI_EINVAL, "%d ranks: at most %d", config->nranks,
				TTI_BOOT_RANKS_MOST);
	if (config->nids < 1 || config->nids > config->nranks || !config->ids)
		return tti_fail(TUTTI_EINVAL, "%d unique ids for %d ranks: it must be 1 to nranks",
				config->nids, config->nranks);
	return TUTTI_OK;
}

/* Say goodbye once the ring stands, or why this rank gives up. Whether the root hears that. */
static bool leave_root(struct tti_sock *sock, tutti_status status)
{
	const struct tti_frame bye = { .type = TTI_FRAME_BYE };
	const bool hears = sock->root_tunnel;

	if (status == TUTTI_OK && hears)
		(void)tti_tunnel_send(sock->root_tunnel, &bye, sizeof(bye));
	else if (hears)
		tti_sock_tell(sock, sock->root_tunnel);
	tti_tunnel_close(&sock->root_tunnel);
	return hears;
}

static int64_t end_of_gather(int64_t deadline_ns)
{
	const int64_t now = tti_now_ns();

	return (now > deadline_ns ? now : deadline_ns) + GRACE_MS * TTI_NS_PER_MS;
}

static tutti_status connect_all(struct tti_sock *sock, const struct tti_boot_config *config,
				bool *root_hears)
{
	const int64_t deadline_ns = tti_deadline(config->timeout_ms);
	struct tti_wire_card *own = &sock->cards[config->rank];
	struct tti_id id;
	tutti_status status;
	int fd;

	TTI_TRY(tti_id_decode(&config->ids[0], &id));
	memcpy(sock->base.secret, id.secret, TTI_SECRET_BYTES);
	explicit_bzero(id.secret, sizeof(id.secret));
	TTI_TRY(listen_and_tell(config->nranks, own, &fd));
	TTI_TRY(tti_watcher_start(sock, fd));
	status = tti_sock_join(sock, config, own, deadline_ns);
	/* If a rank of another root is missing, this exchange says so. */
	if (status == TUTTI_OK && config->nranks > 1)
		status = tti_sock_gather(sock, sock->cards, sizeof(*sock->cards),
					 "the exchange of addresses", end_of_gather(deadline_ns));
	if (status != TUTTI_OK)
		tti_boot_give_up(&sock->base);
	*root_hears = leave_root(sock, status);
	return status;
}

/* A rank that fails before it has checked in says so at the root. One that serves the root does so for a
 * while all the same. */
static void tell_root(const struct tti_boot_config *config, const struct tti_failure *failure,
		      struct tti_root **root)
{
	if (!*root && serve_root(config, root) != TUTTI_OK)
		return;
	tti_sock_decline(config, failure);
}

static struct tti_failure failure_of(const struct tti_boot_config *config)
{
	struct tti_wire_card card;
	char name[TTI_BOOT_NAME];
	struct tti_failure failure;

	sign(&card);
	failure =
		tti_failure_of(config->rank, tti_wire_name(&card, config->rank, name, sizeof(name)),
			       tti_error_text());
	if (config->rank < 0 || config->rank >= config->nranks)
		failure.failed_rank = -1;
	if (config->on_broken)
		config->on_broken(config->self, &failure);
	return failure;
}

tutti_status tti_boot_connect(const struct tti_boot_config *config, struct tti_boot **out)
{
	struct tti_sock *sock = NULL;
	struct tti_root *root = NULL;
	struct tti_failure failure;
	char why[TTI_FAILURE_TEXT];
	bool root_hears = false;
	tutti_status status;

	tti_fd_raise_limit();
	TTI_TRY(check_config(config));
	status = make(config, &sock);
	if (status == TUTTI_OK)
		status = serve_root(config, &root);
	if (status == TUTTI_OK)
		status = connect_all(sock, config, &root_hears);
	if (status == TUTTI_OK) {
		tti_root_join(root, TTI_ROOT_DONE);
		*out = &sock->base;
		return TUTTI_OK;
	}
	(void)snprintf(why, sizeof(why), "%s", tti_error_text());
	failure = sock && sock->told.status ? sock->told : failure_of(config);
	/* First, for what it holds may be what this process has too few of. */
	if (sock)
		tti_boot_close(&sock->base);
	/* Otherwise it is the root that fails, or the id that is none. */
	if (!root_hears && status > TUTTI_STATUS_LOST && status != TUTTI_EINVAL)
		tell_root(config, &failure, &root);
	tti_root_join(root, tti_boot_stopped(config->stop) ? TTI_ROOT_NOW : TTI_ROOT_SOON);
	tti_error_set(why);
	return status;
}

void tti_boot_decline(const struct tti_boot_config *config, const struct tti_failure *failure)
{
	const struct tti_failure own = failure ? *failure : failure_of(config);
	struct tti_root *root = NULL;
	char why[TTI_FAILURE_TEXT];

	(void)snprintf(why, sizeof(why), "%s", tti_error_text());
	tell_root(config, &own, &root);
	tti_root_join(root, TTI_ROOT_SOON);
	tti_error_set(why);
}
