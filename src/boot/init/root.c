/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/init/root.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/init/root_group.h"
#include "boot/net/acceptor.h"
#include "boot/net/iface.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"
#include "util/strbuf.h"
#include "util/thread.h"

/* Pending connections; more than ranks come at once. */
#define PENDING_MOST 2048
/* Until what was said has reached the ranks. */
#define FLUSH_MS     2000
/* For ranks that come after the rank that serves the root has given up. */
#define SOON_MS      1000
/* The root looks at its NICs so long before a rank has to be told who is missing, but not before half of the
 * rank's time. A process that looks may wait for the kernel for seconds while others make or remove
 * NICs. */
#define LOOK_MS      5000

/* A connection of a rank, or of a process that says it is one. */
struct caller {
	struct tti_event_handler handler;
	struct tti_root *root;
	struct caller *next, **link;
	struct tti_tunnel *tunnel;
	struct tti_wire_who who;
	int rank;            /* -1: not checked in, or a border   */
	int64_t end_ns;      /* the end of its time limit           */
	int64_t deadline_ns; /* before that, so that the reason arrives */
	int64_t look_ns;     /* when to look at NICs                 */
	struct tti_framer framer;
	struct tti_outbox out;
	bool border;
	bool met; /* its ring stands, so it does not need the root */
};

struct seat {
	struct caller *caller; /* NULL: has not come, or has left */
	bool came, told;
	struct tti_wire_card card;
};

struct tti_root {
	struct tti_loop loop;
	struct tti_acceptor acceptor;
	atomic_int how; /* a tti_root_end */
	bool hurried;
	bool detached;
	pthread_t thread;
	uint8_t secret[TTI_SECRET_BYTES];
	int64_t start_ns, end_ns;

	struct tti_group group; /* nranks 0: nobody has come yet      */
	struct seat *seats;     /* of the group, then of the one after */
	int nseats, ncame;
	struct caller *callers;
	bool complete, failed;
	struct tti_failure failure; /* why, if failed */
	bool has_looked;
	char ifaces[256]; /* what is wrong with the NICs of this host, after a look */
};

/* -- Callers ---------------------------------------------------------------- */

static void hang_up(struct caller *caller)
{
	struct tti_root *root = caller->root;

	if (caller->rank >= 0)
		root->seats[caller->rank - root->group.first].caller = NULL;
	*caller->link = caller->next;
	if (caller->next)
		caller->next->link = caller->link;
	tti_loop_drop(&root->loop, caller->tunnel->fd);
	tti_tunnel_close(&caller->tunnel);
	tti_loop_free_later(&root->loop, &caller->handler);
}

static void flush(struct caller *caller)
{
	tti_outbox_flush(&caller->out, caller->tunnel);
	tti_loop_change(&caller->root->loop, caller->tunnel->fd,
			EPOLLIN | (caller->out.len > 0 ? (uint32_t)EPOLLOUT : 0), &caller->handler);
}

static void tell(struct caller *caller, enum tti_frame_type type, const void *body, size_t nbytes)
{
	if (tti_outbox_put(&caller->out, type, 0, body, nbytes, 0))
		flush(caller);
}

/* -- What is known ------------------------------------------------------------ */

/* The level is INFO if the rank that noticed the failure has logged it. */
TUTTI_PRINTF(5, 6)
static void fail_all(struct tti_root *root, enum tti_log_level level, tutti_status status,
		     int failed_rank, const char *fmt, ...)
{
	va_list args;

	if (root->failed)
		return;
	root->failed = true;
	va_start(args, fmt);
	root->failure = tti_failure_vmake(status, failed_rank, -1, fmt, args);
	va_end(args);
	tti_log(level, TTI_BOOT, "root: %s", root->failure.text);
	for (struct caller *at = root->callers; at; at = at->next)
		tell(at, TTI_FRAME_FAILURE, &root->failure, sizeof(root->failure));
}

TUTTI_PRINTF(2, 3)
static void refuse(struct caller *caller, const char *fmt, ...)
{
	struct tti_failure failure;
	va_list args;

	va_start(args, fmt);
	failure = tti_failure_vmake(TUTTI_EMISMATCH, -1, -1, fmt, args);
	va_end(args);
	tti_log(TTI_LOG_WARN, TTI_BOOT, "root: %s", failure.text);
	tell(caller, TTI_FRAME_FAILURE, &failure, sizeof(failure));
}

/* The rank whose time limit ends first; NULL: none waits. */
static const struct caller *first_to_leave(const struct tti_root *root)
{
	const struct caller *first = NULL;

	for (const struct caller *at = root->callers; at; at = at->next)
		if (at->deadline_ns != TTI_NEVER &&
		    (!first || at->deadline_ns < first->deadline_ns))
			first = at;
	return first;
}

static void fail_missing(struct tti_root *root, int64_t end_ns)
{
	const char *turned_away = root->acceptor.turned_away;
	char text[128];
	int *missing = tti_calloc((size_t)root->nseats, sizeof(*missing));
	size_t n = 0;
	int first = -1;

	for (int i = 0; i < root->nseats; i++) {
		if (root->seats[i].came)
			continue;
		if (first < 0)
			first = tti_group_rank(&root->group, i);
		if (missing)
			missing[n++] = tti_group_rank(&root->group, i);
	}
	tti_format_ranks(text, sizeof(text), missing, n);
	tti_free(missing);
	fail_all(root, TTI_LOG_WARN, TUTTI_ETIMEOUT, first,
		 "rank%s %s of %d did not come within %.1f s: %s%s%s", n == 1 ? "" : "s", text,
		 root->group.nranks, (double)(end_ns - root->start_ns) / 1e9,
		 *turned_away ? "one was turned away, " : "",
		 *turned_away ? turned_away
			      : "running? with this id? kept out by a firewall? "
				"TUTTI_BOOT_TIMEOUT_MS or config.boot_timeout_ms is the limit",
		 root->ifaces);
}

/* Do what is due for the rank whose time limit ends first; when to look again. */
static int64_t attend(struct tti_root *root, const struct caller *first)
{
	if (!root->has_looked && tti_now_ns() >= first->look_ns) {
		(void)tti_iface_tell("the root's", root->ifaces, sizeof(root->ifaces));
		root->has_looked = true;
	}
	if (tti_now_ns() >= first->deadline_ns)
		fail_missing(root, first->end_ns);
	return root->has_looked ? first->deadline_ns : first->look_ns;
}

/* Tell seat i where the next one listens, if both have come. */
static void introduce(struct tti_root *root, int i)
{
	const int next = root->group.nroots == 1 ? (i + 1) % root->nseats : i + 1;

	if (i < 0 || i >= root->group.size || !root->seats[i].caller || root->seats[i].told ||
	    !root->seats[next].came)
		return;
	root->seats[i].told = true;
	tell(root->seats[i].caller, TTI_FRAME_NEXT, &root->seats[next].card,
	     sizeof(root->seats[next].card));
}

static void complete(struct tti_root *root)
{
	/* No longer open: a later job may use the same address. */
	tti_acceptor_close(&root->acceptor);
	root->complete = true;
	tti_log(TTI_LOG_INFO, TTI_BOOT, "root: all %d ranks came within %lld ms", root->group.size,
		(long long)((tti_now_ns() - root->start_ns) / TTI_NS_PER_MS));
	root->end_ns = tti_deadline(FLUSH_MS);
	for (struct caller *at = root->callers; at; at = at->next) {
		if (at->rank < 0)
			continue;
		tell(at, TTI_FRAME_ALL, NULL, 0);
		root->end_ns = at->end_ns > root->end_ns ? at->end_ns : root->end_ns;
	}
}

static tutti_status open_group(struct tti_root *root, const struct tti_wire_checkin *checkin)
{
	const struct tti_group group =
		tti_group_make(checkin->nranks, checkin->nroots, checkin->iroot);
	const int nseats = group.size + (group.nroots > 1);

	root->seats = tti_calloc((size_t)nseats, sizeof(*root->seats));
	if (!root->seats)
		return tti_fail(TUTTI_ENOMEM, "no memory to note %d ranks", nseats);
	root->nseats = nseats;
	root->group = group;
	return TUTTI_OK;
}

static bool is_of_group(const struct tti_root *root, const struct tti_wire_checkin *checkin)
{
	return checkin->nranks == root->group.nranks && checkin->nroots == root->group.nroots &&
	       checkin->iroot == root->group.iroot;
}

/* It came too late, but it may be the last rank that the root had to tell. */
static void note_late(struct tti_root *root, const struct tti_wire_checkin *checkin)
{
	struct seat *seat;

	if (root->group.nranks == 0 && open_group(root, checkin) != TUTTI_OK)
		return;
	if (!is_of_group(root, checkin) || checkin->border)
		return;
	seat = &root->seats[checkin->rank - root->group.first];
	if (!seat->came) {
		root->ncame++;
		seat->came = true;
		seat->card = checkin->card;
	}
}

static void take_checkin(struct caller *caller, const struct tti_wire_checkin *checkin)
{
	struct tti_root *root = caller->root;
	const int64_t left = checkin->left_ms;
	const int64_t margin = left / 10 < 200 ? left / 10 : 200;
	const int64_t ahead = left / 2 < LOOK_MS ? left / 2 : LOOK_MS;

	if (tti_checkin_check(checkin) != TUTTI_OK) {
		refuse(caller, "rank %d checked in with nonsense: %s", checkin->rank,
		       tti_error_text());
		return;
	}
	if (root->failed) {
		note_late(root, checkin);
		tell(caller, TTI_FRAME_FAILURE, &root->failure, sizeof(root->failure));
		return;
	}
	if (root->group.nranks == 0 && open_group(root, checkin) != TUTTI_OK) {
		refuse(caller, "the root: %s", tti_error_text());
		return;
	}
	if (!is_of_group(root, checkin)) {
		fail_all(root, TTI_LOG_WARN, TUTTI_EMISMATCH, checkin->rank,
			 "rank %d says %d ranks and %d ids, others say %d and %d: pass the same to "
			 "all",
			 checkin->rank, checkin->nranks, checkin->nroots, root->group.nranks,
			 root->group.nroots);
		return;
	}

	const int i = checkin->border ? root->group.size : checkin->rank - root->group.first;
	struct seat *seat = &root->seats[i];

	if (seat->came) {
		fail_all(root, TTI_LOG_WARN, TUTTI_EMISMATCH, checkin->rank,
			 "rank %d came twice: %s process %d, then %s process %d", checkin->rank,
			 seat->card.host, seat->card.pid, checkin->card.host, checkin->card.pid);
		return;
	}
	seat->came = true;
	seat->card = checkin->card;
	root->ncame++;
	caller->border = checkin->border != 0;
	if (caller->border) {
		tell(caller, TTI_FRAME_ALL, NULL, 0);
	} else {
		seat->caller = caller;
		caller->rank = checkin->rank;
		caller->end_ns = tti_deadline(checkin->left_ms);
		caller->deadline_ns = caller->end_ns - margin * TTI_NS_PER_MS;
		caller->look_ns = caller->deadline_ns - ahead * TTI_NS_PER_MS;
	}
	introduce(root, i);
	introduce(root, i > 0 ? i - 1 : root->nseats - 1);
	if (root->ncame == root->nseats)
		complete(root);
}

/* The root need not wait for the rank of this caller any more, checked in or not. */
static void note_end(const struct caller *caller)
{
	const struct tti_wire_checkin checkin = { .rank = caller->who.from,
						  .nranks = caller->who.nranks,
						  .iroot = caller->who.to,
						  .nroots = caller->who.what };

	if (tti_checkin_check(&checkin) == TUTTI_OK)
		note_late(caller->root, &checkin);
}

/* Its tunnel failed: only a rank gets as far as that. */
static void spoiled(struct caller *caller)
{
	char why[TTI_TUNNEL_WHY];

	note_end(caller);
	fail_all(caller->root, TTI_LOG_WARN, TUTTI_EPROTO, caller->who.from,
		 "init: the root's connection to rank %d %s", caller->who.from,
		 tti_tunnel_why(caller->tunnel, why));
}

static void handle_caller(struct tti_event_handler *handler, uint32_t events)
{
	struct caller *caller = (struct caller *)handler;
	struct tti_root *root = caller->root;
	uint8_t data[TTI_TUNNEL_RECORD];
	ssize_t n;

	if (events & EPOLLOUT)
		flush(caller);
	n = tti_tunnel_recv(caller->tunnel, data, sizeof(data));
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0 && caller->tunnel->failed)
		spoiled(caller);
	if (n <= 0) {
		const int rank = caller->met ? -1 : caller->rank;
		char name[TTI_BOOT_NAME];

		hang_up(caller);
		if (rank >= 0)
			fail_all(root, TTI_LOG_WARN, TUTTI_EPEER, rank,
				 "%s left before all ranks had met",
				 tti_wire_name(&root->seats[rank - root->group.first].card, rank,
					       name, sizeof(name)));
		return;
	}
	for (size_t at = 0, used; at < (size_t)n; at += used) {
		const tutti_status status =
			tti_framer_feed(&caller->framer, data + at, (size_t)n - at, &used);

		if (status == TUTTI_AGAIN)
			return;
		if (status == TUTTI_OK && caller->framer.head.type == TTI_FRAME_FAILURE) {
			const struct tti_failure *failure = &caller->framer.body.failure;

			note_end(caller);
			fail_all(root, TTI_LOG_INFO, (tutti_status)failure->status,
				 failure->failed_rank, "%s", failure->text);
			continue;
		}
		if (status == TUTTI_OK && caller->framer.head.type == TTI_FRAME_BYE) {
			caller->met = true;
			continue;
		}
		if (status < 0 || caller->framer.head.type != TTI_FRAME_CHECKIN ||
		    caller->rank >= 0 || caller->border) {
			refuse(caller, "a rank checked in with a malformed message");
			return;
		}
		take_checkin(caller, &caller->framer.body.checkin);
	}
}

/* -- The thread ----------------------------------------------------------------- */

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	(void)self;
	(void)who;
	return kind == TTI_AUTH_ROOT;
}

/* The root fails, so all do. */
static void turn_away(struct tti_root *root, struct tti_tunnel *tunnel,
		      const struct tti_wire_who *who, const char *why)
{
	struct {
		struct tti_frame head;
		struct tti_failure failure;
	} out = { .head = { .type = TTI_FRAME_FAILURE, .nbytes = sizeof(out.failure) } };

	fail_all(root, TTI_LOG_WARN, TUTTI_EPEER, -1,
		 "the root, where the ranks meet, in process %d, cannot let rank %d in: %s",
		 (int)getpid(), who->from, why);
	out.failure = root->failure;
	(void)tti_tunnel_send(tunnel, &out, sizeof(out));
}

static void enter(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
		  const struct tti_wire_who *who)
{
	struct tti_root *root = self;
	struct caller *caller = tti_zalloc(sizeof(*caller));

	const uint32_t events = tti_tunnel_holds(tunnel) ? EPOLLIN | EPOLLOUT : EPOLLIN;

	(void)kind;
	if (!caller ||
	    tti_loop_add(&root->loop, tunnel->fd, events, &caller->handler) != TUTTI_OK) {
		turn_away(root, tunnel, who, caller ? tti_error_text() : "out of memory");
		tti_tunnel_close(&tunnel);
		tti_free(caller);
		return;
	}
	caller->handler.handle = handle_caller;
	caller->root = root;
	caller->tunnel = tunnel;
	caller->who = *who;
	caller->rank = -1;
	caller->deadline_ns = TTI_NEVER;
	caller->next = root->callers;
	caller->link = &root->callers;
	if (caller->next)
		caller->next->link = &caller->next;
	root->callers = caller;
}

static bool flushed(const struct tti_root *root)
{
	for (const struct caller *at = root->callers; at; at = at->next)
		if (at->out.len > 0)
			return false;
	return true;
}

/* The rank that serves this root gives up. */
static void hurry(struct tti_root *root)
{
	const int64_t soon_ns = tti_deadline(SOON_MS);

	root->hurried = true;
	root->end_ns = soon_ns < root->end_ns ? soon_ns : root->end_ns;
}

/* Whether the root's work is done; else *next_ns says when to look again. */
static bool done(struct tti_root *root, int64_t *next_ns)
{
	const int64_t now = tti_now_ns();

	*next_ns = root->end_ns;
	/* First read what that rank has told the root. */
	if (atomic_load(&root->how) == TTI_ROOT_SOON && !root->hurried) {
		hurry(root);
		*next_ns = now;
		return false;
	}
	if (root->hurried)
		fail_all(root, TTI_LOG_INFO, TUTTI_EPEER, root->group.first,
			 "rank %d, where the ranks meet, gave up during init", root->group.first);
	if (atomic_load(&root->how) == TTI_ROOT_NOW || atomic_load(&root->how) == TTI_ROOT_DONE)
		return true;
	if (root->complete && !root->failed)
		return !root->callers || now >= root->end_ns;
	if (root->complete || (root->failed && root->nseats > 0 && root->ncame == root->nseats))
		return flushed(root) || now >= root->end_ns;
	if (!root->failed) {
		const struct caller *first = first_to_leave(root);

		if (first)
			*next_ns = attend(root, first);
		else if (now >= root->end_ns)
			return true;
		return false;
	}
	return now >= root->end_ns;
}

static void destroy(struct tti_root *root)
{
	tti_acceptor_close(&root->acceptor);
	while (root->callers)
		hang_up(root->callers);
	tti_loop_release(&root->loop);
	tti_free(root->seats);
	tti_secret_free(root);
}

static void *serve(void *self)
{
	struct tti_root *root = self;
	int64_t next_ns;

	while (!done(root, &next_ns)) {
		const int64_t expire_ns =
			root->complete ? TTI_NEVER : tti_acceptor_expire(&root->acceptor);

		tti_loop_wait(&root->loop,
			      tti_loop_left(next_ns < expire_ns ? next_ns : expire_ns));
	}
	if (root->detached)
		destroy(root);
	return NULL;
}

static tutti_status open_root(struct tti_root *root, int listen_fd)
{
	root->acceptor = (struct tti_acceptor){ .loop = &root->loop,
						.secret = root->secret,
						.listen_fd = listen_fd,
						.most = PENDING_MOST,
						.self = root,
						.admit = admit,
						.on_accept = enter };
	TTI_TRY(tti_loop_init(&root->loop));
	return tti_acceptor_open(&root->acceptor);
}

tutti_status tti_root_start(int listen_fd, const uint8_t *secret, int64_t timeout_ms,
			    struct tti_root **out)
{
	struct tti_root *root = tti_secret_zalloc(sizeof(*root));
	tutti_status status;
	pthread_t thread;

	if (!root) {
		tti_fd_close(&listen_fd);
		return tti_fail(TUTTI_ENOMEM, "no memory for the root");
	}
	memcpy(root->secret, secret, sizeof(root->secret));
	root->detached = !out;
	root->start_ns = tti_now_ns();
	root->end_ns = tti_deadline(timeout_ms);
	status = open_root(root, listen_fd);
	if (status == TUTTI_OK)
		status = tti_thread_start(&thread, "tutti-root", serve, root);
	if (status != TUTTI_OK) {
		destroy(root);
		return status;
	}
	if (!out) {
		(void)pthread_detach(thread);
		return TUTTI_OK;
	}
	root->thread = thread;
	*out = root;
	return TUTTI_OK;
}

void tti_root_join(struct tti_root *root, enum tti_root_end how)
{
	if (!root)
		return;
	atomic_store(&root->how, (int)how);
	tti_loop_wake(&root->loop);
	(void)pthread_join(root->thread, NULL);
	destroy(root);
}
