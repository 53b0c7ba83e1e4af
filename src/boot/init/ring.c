/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over the ring. In an all-gather every blob travels half the ring in each direction; in a
 * broadcast one blob does.
 *
 *     clockwise          rank-2 -> rank-1 -> rank -> rank+1       nranks/2 steps
 *     counterclockwise   rank-1 <- rank <- rank+1 <- rank+2       (nranks-1)/2
 *
 * A rank sends its own block first and then what comes in, in that order; it never waits for a step to
 * end. So a rank that was away catches up in few system calls with all that has piled up, which is what
 * matters when there are more ranks than cores. */
#include "boot/net/sock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/strbuf.h"

#define SCRATCH 8192
#define IOV     32 /* pieces in one system call */

/* One direction through this rank. */
struct way {
	struct tti_tunnel *in, *out;
	int in_peer;
	int sign;             /* blob i of what goes out is that of rank - sign * i */
	int own;              /* blocks that go out without having come in          */
	int all_in, all_out;  /* blocks in the end                                  */
	int nin, nout;        /* whole ones so far                                  */
	size_t in_at, out_at; /* bytes of the next one                              */
	struct tti_frame head;
	bool full; /* the socket takes no more now                            */
	bool left; /* the connection was closed after all had come in         */
	bool *torn;
};

struct gather {
	struct tti_sock *sock;
	const char *what;
	uint8_t *blobs; /* one for each rank, or one for all */
	size_t nbytes;
	int root;              /* the rank with the only blob; -1: each has one */
	struct tti_frame head; /* of every block */
	struct way ways[2];
};

static uint8_t *blob(const struct gather *gather, const struct way *way, int i)
{
	const int n = gather->sock->base.nranks;
	const int rank = ((gather->sock->base.rank - way->sign * i) % n + n) % n;

	if (gather->root >= 0)
		return gather->blobs;
	return gather->blobs + (size_t)rank * gather->nbytes;
}

/* -- Out ---------------------------------------------------------------------------- */

/* How many blocks are here and may go out. */
static int sendable(const struct way *way)
{
	const int have = way->nin + way->own;

	return have < way->all_out ? have : way->all_out;
}

static size_t fill_iov(struct gather *gather, const struct way *way, struct iovec *iov)
{
	size_t n = 0, skip = way->out_at;

	for (int i = way->nout; i < sendable(way) && n + 2 <= IOV; i++) {
		if (skip < sizeof(gather->head)) {
			iov[n++] = (struct iovec){ (uint8_t *)&gather->head + skip,
						   sizeof(gather->head) - skip };
			skip = sizeof(gather->head);
		}
		skip -= sizeof(gather->head);
		if (gather->nbytes > skip)
			iov[n++] = (struct iovec){ blob(gather, way, i) + skip,
						   gather->nbytes - skip };
		skip = 0;
	}
	return n;
}

/* TUTTI_OK: something was sent; TUTTI_AGAIN: nothing is to be sent, or can. */
static tutti_status push(struct gather *gather, struct way *way)
{
	struct iovec iov[IOV];
	const size_t niov = fill_iov(gather, way, iov);
	const size_t block = sizeof(gather->head) + gather->nbytes;

	if (niov == 0)
		return TUTTI_AGAIN;

	const ssize_t n = tti_tunnel_sendv(way->out, iov, niov);

	if (n < 0) {
		/* The peer is gone: first read what it has said. */
		way->full = true;
		return TUTTI_AGAIN;
	}

	const size_t at = way->out_at + (size_t)n;

	way->nout += (int)(at / block);
	way->out_at = at % block;
	*way->torn = way->out_at != 0;
	return TUTTI_OK;
}

/* -- In ----------------------------------------------------------------------------- */

/* A whole head has come, perhaps of another frame than a block. */
static tutti_status check_head(struct gather *gather, struct way *way, const uint8_t *rest,
			       size_t nrest)
{
	if (memcmp(&way->head, &gather->head, sizeof(way->head)) == 0)
		return TUTTI_OK;
	return tti_sock_broken_by(gather->sock, way->in_peer, way->in, &way->head, rest, nrest,
				  gather->what);
}

/* Take bytes of blocks out of a buffer. */
static tutti_status take(struct gather *gather, struct way *way, const uint8_t *data, size_t nbytes)
{
	const size_t head = sizeof(way->head);

	while (nbytes > 0) {
		size_t n;

		if (way->in_at < head) {
			n = head - way->in_at < nbytes ? head - way->in_at : nbytes;
			memcpy((uint8_t *)&way->head + way->in_at, data, n);
		} else {
			const size_t left = head + gather->nbytes - way->in_at;

			n = left < nbytes ? left : nbytes;
			memcpy(blob(gather, way, way->nin + 1) + way->in_at - head, data, n);
		}
		way->in_at += n;
		data += n;
		nbytes -= n;
		if (way->in_at == head)
			TTI_TRY(check_head(gather, way, data, nbytes));
		if (way->in_at == head + gather->nbytes) {
			way->nin++;
			way->in_at = 0;
		}
	}
	return TUTTI_OK;
}

static tutti_status gone(struct gather *gather, struct way *way, ssize_t n)
{
	if (n < 0 && errno == EAGAIN)
		return TUTTI_OK;
	return tti_sock_closed_by(gather->sock, way->in_peer, way->in, gather->what);
}

/* Read no more than what belongs to this all-gather. */
static tutti_status pull(struct gather *gather, struct way *way)
{
	uint8_t scratch[SCRATCH];
	const size_t head = sizeof(way->head);
	const size_t block = head + gather->nbytes;
	const size_t left = (size_t)(way->all_in - way->nin) * block - way->in_at;
	ssize_t n;

	/* A large blob is read into its place. */
	if (way->in_at >= head && block - way->in_at >= SCRATCH) {
		n = tti_tunnel_recv(way->in, blob(gather, way, way->nin + 1) + way->in_at - head,
				    block - way->in_at);
		if (n <= 0)
			return gone(gather, way, n);
		way->in_at += (size_t)n;
		if (way->in_at == block) {
			way->nin++;
			way->in_at = 0;
		}
		return TUTTI_OK;
	}

	n = tti_tunnel_recv(way->in, scratch, left < SCRATCH ? left : SCRATCH);
	if (n <= 0)
		return gone(gather, way, n);
	return take(gather, way, scratch, (size_t)n);
}

/* -- Both ---------------------------------------------------------------------------- */

static bool done(const struct gather *gather)
{
	for (int i = 0; i < 2; i++)
		if (gather->ways[i].nin < gather->ways[i].all_in ||
		    gather->ways[i].nout < gather->ways[i].all_out)
			return false;
	return true;
}

static tutti_status fail_broadcast(struct gather *gather)
{
	struct tti_sock *sock = gather->sock;
	const bool waits = gather->ways[0].nin < gather->ways[0].all_in ||
			   gather->ways[1].nin < gather->ways[1].all_in;

	if (!waits)
		return tti_sock_break(sock, TUTTI_ETIMEOUT, -1,
				      "%s: a neighbour took nothing within %lld ms", gather->what,
				      (long long)sock->timeout_ms);
	return tti_sock_break(sock, TUTTI_ETIMEOUT, gather->root,
			      "%s: nothing came from rank %d within %lld ms", gather->what,
			      gather->root, (long long)sock->timeout_ms);
}

static tutti_status fail_deadline(struct gather *gather)
{
	struct tti_sock *sock = gather->sock;
	int *missing = tti_calloc((size_t)sock->base.nranks, sizeof(*missing));
	char text[128];
	size_t n = 0;
	int first = -1;

	for (int rank = 0; rank < sock->base.nranks; rank++) {
		const int ahead = (rank - sock->base.rank + sock->base.nranks) % sock->base.nranks;
		const int behind = sock->base.nranks - ahead;

		if (ahead <= gather->ways[1].nin || behind <= gather->ways[0].nin)
			continue;
		if (missing)
			missing[n++] = rank;
		if (first < 0 || ahead == 1 || behind == 1)
			first = rank;
	}
	tti_format_ranks(text, sizeof(text), missing, n);
	tti_free(missing);
	return tti_sock_break(sock, TUTTI_ETIMEOUT, first,
			      "%s: nothing came from rank%s %s of %d within %lld ms", gather->what,
			      n == 1 ? "" : "s", text, sock->base.nranks,
			      (long long)sock->timeout_ms);
}

/* Nothing can be sent that way any more. The same connection says why: the other direction, if it still
 * reads, will find that. */
static tutti_status lost_out(struct gather *gather, int i)
{
	const struct way *way = &gather->ways[i], *other = &gather->ways[1 - i];
	struct tti_sock *sock = gather->sock;
	const int peer = way->sign > 0 ? tti_sock_next(sock) : tti_sock_prev(sock);

	if (other->in == way->out && other->nin < other->all_in)
		return TUTTI_OK;
	TTI_TRY(tti_sock_check_neighbour(sock, peer, way->out, gather->what));
	return tti_sock_closed_by(sock, peer, way->out, gather->what);
}

/* Whether blocks are in the tunnel, where poll() does not see them. */
static bool may_pull(const struct way *way)
{
	return way->nin < way->all_in && tti_tunnel_holds(way->in);
}

static tutti_status await(struct gather *gather, int64_t deadline_ns)
{
	struct tti_sock *sock = gather->sock;
	struct pollfd fds[4];
	bool holds = false;

	for (int i = 0; i < 2; i++) {
		struct way *way = &gather->ways[i];

		/* A rank that has sent all its blocks may still die; the other side then waits for what
		 * went through that rank. */
		fds[2 * i] =
			(struct pollfd){ .fd = way->left ? -1 : way->in->fd,
					 .events = way->nin < way->all_in ? POLLIN : POLLRDHUP };
		fds[2 * i + 1] =
			(struct pollfd){ .fd = way->full ? way->out->fd : -1, .events = POLLOUT };
		holds |= may_pull(way);
	}
	if (tti_boot_stopped(sock->stop))
		return tti_sock_break(sock, TUTTI_EABORTED, -1, "%s was aborted", gather->what);
	if (tti_left_ms(deadline_ns, 1) == 0)
		return gather->root < 0 ? fail_deadline(gather) : fail_broadcast(gather);
	(void)poll(fds, 4,
		   holds ? 0 : tti_left_ms(deadline_ns, sock->stop ? TTI_BOOT_NAP_MS : 60000));
	for (int i = 0; i < 2; i++) {
		struct way *way = &gather->ways[i];

		if (may_pull(way) || (fds[2 * i].revents && way->nin < way->all_in)) {
			TTI_TRY(pull(gather, way));
		} else if (fds[2 * i].revents) {
			way->left = true;
			TTI_TRY(tti_sock_check_neighbour(sock, way->in_peer, way->in,
							 gather->what));
		}
	}
	for (int i = 0; i < 2; i++) {
		gather->ways[i].full &= !fds[2 * i + 1].revents;
		if (fds[2 * i + 1].revents & (POLLERR | POLLHUP))
			TTI_TRY(lost_out(gather, i));
	}
	return TUTTI_OK;
}

static tutti_status run(struct gather *gather, int64_t deadline_ns)
{
	struct tti_sock *sock = gather->sock;

	TTI_TRY(tti_sock_check(sock));
	/* Otherwise the others go on with what this rank sends, and see only later that it left. */
	if (tti_boot_stopped(sock->stop))
		return tti_sock_break(sock, TUTTI_EABORTED, -1, "%s was aborted", gather->what);
	for (;;) {
		for (int i = 0; i < 2; i++) {
			tutti_status status = TUTTI_OK;

			while (status == TUTTI_OK)
				status = push(gather, &gather->ways[i]);
			if (status < 0)
				return status;
		}
		if (done(gather)) {
			sock->ended = sock->seq;
			return TUTTI_OK;
		}
		TTI_TRY(await(gather, deadline_ns));
	}
}

static struct gather begin(struct tti_sock *sock, void *blobs, size_t nbytes, const char *what)
{
	return (struct gather){
		.sock = sock,
		.what = what,
		.blobs = blobs,
		.nbytes = nbytes,
		.root = -1,
		.head = { .type = TTI_FRAME_BLOCK, .seq = ++sock->seq, .nbytes = nbytes },
		.ways = { { .in = sock->prev_tunnel,
			    .out = sock->next_tunnel,
			    .in_peer = tti_sock_prev(sock),
			    .sign = 1,
			    .torn = &sock->next_torn },
			  { .in = sock->next_tunnel,
			    .out = sock->prev_tunnel,
			    .in_peer = tti_sock_next(sock),
			    .sign = -1,
			    .torn = &sock->prev_torn } },
	};
}

tutti_status tti_sock_gather(struct tti_sock *sock, void *blobs, size_t nbytes, const char *what,
			     int64_t deadline_ns)
{
	struct gather gather = begin(sock, blobs, nbytes, what);
	const int n = sock->base.nranks;

	for (int i = 0; i < 2; i++) {
		struct way *way = &gather.ways[i];

		way->own = 1;
		way->all_in = way->all_out = i == 0 ? n / 2 : (n - 1) / 2;
	}
	return run(&gather, deadline_ns);
}

/* Clockwise to the next n / 2 ranks, as in the all-gather, and the other way to the others. */
tutti_status tti_sock_broadcast(struct tti_sock *sock, int root, void *data, size_t nbytes,
				const char *what, int64_t deadline_ns)
{
	struct gather gather = begin(sock, data, nbytes, what);
	const int n = sock->base.nranks;

	gather.root = root;
	for (int i = 0; i < 2; i++) {
		struct way *way = &gather.ways[i];
		const int reach = i == 0 ? n / 2 : (n - 1) / 2;
		const int hops = ((sock->base.rank - root) * way->sign % n + n) % n;

		way->own = hops == 0;
		way->all_in = hops > 0 && hops <= reach;
		way->all_out = hops < reach;
	}
	return run(&gather, deadline_ns);
}
