/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/iface.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/params.h"

/* "tutti-" and 32 digits; returns how many characters. */
static int unix_name(const struct tti_addr *addr, char *buf, size_t size)
{
	char digits[2 * sizeof(addr->ip) + 1];

	sodium_bin2hex(digits, sizeof(digits), addr->ip, sizeof(addr->ip));
	return snprintf(buf, size, "tutti-%s", digits);
}

static socklen_t unix_to_sock(const struct tti_addr *addr, struct sockaddr_storage *out)
{
	struct sockaddr_un *un = (struct sockaddr_un *)out;

	un->sun_family = AF_UNIX;
	/* A leading 0: abstract, in no directory. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)unix_name(addr, un->sun_path + 1, sizeof(un->sun_path) - 1));
}

socklen_t tti_addr_to_sock(const struct tti_addr *addr, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (addr->family == TTI_ADDR_UNIX)
		return unix_to_sock(addr, out);
	if (addr->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;

		in->sin_family = AF_INET;
		in->sin_port = addr->port;
		memcpy(&in->sin_addr, addr->ip, 4);
		return sizeof(*in);
	}

	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = addr->port;
	in6->sin6_scope_id = addr->scope;
	memcpy(&in6->sin6_addr, addr->ip, 16);
	return sizeof(*in6);
}

tutti_status tti_addr_from_sock(const struct sockaddr *sock, struct tti_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (sock->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sock, sizeof(in));
		out->family = 4;
		out->port = in.sin_port;
		memcpy(out->ip, &in.sin_addr, 4);
		return TUTTI_OK;
	}
	if (sock->sa_family != AF_INET6)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED, "address family %d", sock->sa_family);

	struct sockaddr_in6 in6;

	memcpy(&in6, sock, sizeof(in6));
	out->port = in6.sin6_port;
	if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
		out->family = 4;
		memcpy(out->ip, in6.sin6_addr.s6_addr + 12, 4);
		return TUTTI_OK;
	}
	out->family = 6;
	out->scope = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? in6.sin6_scope_id : 0;
	memcpy(out->ip, &in6.sin6_addr, 16);
	return TUTTI_OK;
}

const char *tti_addr_format(const struct tti_addr *addr, char *buf, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (addr->family == TTI_ADDR_UNIX) {
		(void)unix_name(addr, buf, size);
		return buf;
	}
	if (addr->family == 4 || addr->family == 6)
		(void)inet_ntop(addr->family == 4 ? AF_INET : AF_INET6, addr->ip, ip, sizeof(ip));
	if (addr->family != 0 && addr->port == 0) {
		(void)snprintf(buf, size, "%s", ip);
	} else if (addr->family == 4) {
		(void)snprintf(buf, size, "%s:%u", ip, ntohs(addr->port));
	} else if (addr->family == 6) {
		(void)snprintf(buf, size, "[%s]:%u", ip, ntohs(addr->port));
	} else {
		(void)snprintf(buf, size, "no address");
	}
	return buf;
}

tutti_status tti_addr_split(const char *text, char *host, size_t size, const char **port_out)
{
	const bool bracket = *text == '[';
	const char *start = text + bracket;
	const char *end = bracket ? strchr(start, ']') : strrchr(text, ':');
	const char *colon = end ? end + bracket : NULL;

	if (!end || *colon != ':' || end == start)
		return tti_fail(TUTTI_EINVAL,
				"\"%s\" is no address: write host:port or [ipv6]:port", text);

	const size_t len = (size_t)(end - start);

	if (len >= size)
		return tti_fail(TUTTI_EINVAL, "the host name in an address has %zu characters",
				len);
	if (!bracket && memchr(start, ':', len))
		return tti_fail(TUTTI_EINVAL,
				"\"%s\" is no address: an IPv6 address goes in brackets, "
				"[%.*s]:%s",
				text, (int)len, start, colon + 1);
	memcpy(host, start, len);
	host[len] = '\0';

	const size_t digits = strspn(colon + 1, "0123456789");
	const long port = digits > 0 && digits < 6 ? strtol(colon + 1, NULL, 10) : 0;

	if (colon[1 + digits] != '\0' || port < 1 || port > 65535)
		return tti_fail(TUTTI_EINVAL, "\"%s\" in \"%s\" is no port (1 to 65535)", colon + 1,
				text);
	*port_out = colon + 1;
	return TUTTI_OK;
}

/* Between two questions to the resolver, at first and at most. */
#define ASK_FIRST_MS 50
#define ASK_MOST_MS  1000
/* How often to look meanwhile whether this thread is to go on. */
#define LOOK_MS      50

/* Whether this can be the name of a host that the resolver may know later: letters, digits, - and _ between
 * dots, and not a wrong address. */
static bool may_be_name(const char *host)
{
	const char *last = host;

	for (const char *label = host; *label;) {
		const size_t len = strcspn(label, ".");

		if (len == 0 || len > 63)
			return false;
		for (size_t i = 0; i < len; i++)
			if (!isalnum((unsigned char)label[i]) && !strchr("-_", label[i]) &&
			    (unsigned char)label[i] < 0x80)
				return false;
		last = label;
		label += len + (label[len] == '.');
	}
	return last[strspn(last, "0123456789.")] != '\0';
}

/* Whether a name with this error may appear later. */
static bool may_come(int error)
{
#ifdef EAI_NODATA
	if (error == EAI_NODATA)
		return true;
#endif
	return error == EAI_NONAME || error == EAI_AGAIN || error == EAI_FAIL;
}

/* The error of getaddrinfo(); EAI_SYSTEM: errno has it. */
static tutti_status fail_to_resolve(const char *text, const char *host, int error, bool has_waited,
				    int64_t timeout_ms)
{
	if (error == EAI_SYSTEM)
		return tti_fail(TUTTI_ESYS, "the host in \"%s\" cannot be looked up: %m", text);
	if (has_waited)
		return tti_fail(TUTTI_ETIMEOUT,
				"no address of the host in \"%s\" within %lld ms: %s. Correct the "
				"name (TUTTI_COMM_ID or MASTER_ADDR), or write its address; see "
				"whether `getent hosts %s` knows it",
				text, (long long)timeout_ms, gai_strerror(error), host);
	return tti_fail(TUTTI_EINVAL, "no address of the host in \"%s\": %s", text,
			gai_strerror(error));
}

/* false: this thread is to wait no longer. */
static bool wait_to_ask(int ms)
{
	const int64_t until_ns = tti_deadline(ms);
	bool go_on = true;

	for (int left; go_on && (left = tti_left_ms(until_ns, LOOK_MS)) > 0;) {
		const struct timespec nap = { .tv_nsec = left * TTI_NS_PER_MS };

		nanosleep(&nap, NULL);
		go_on = !tti_interrupted();
	}
	return go_on;
}

/* The name of a service may appear only after its containers have started: ask until there is an answer. */
static tutti_status resolve(const char *text, const char *host, const char *port,
			    int64_t timeout_ms, struct addrinfo **out)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV };
	const int64_t deadline_ns = tti_deadline(timeout_ms);
	const bool may_wait = timeout_ms > 0 && may_be_name(host);
	int ask_ms = ASK_FIRST_MS;

	for (;;) {
		const int error = getaddrinfo(host, port, &hints, out);
		const bool waits = may_wait && may_come(error);
		int left_ms;

		if (error == 0)
			return TUTTI_OK;
		left_ms = waits ? tti_left_ms(deadline_ns, ask_ms) : 0;
		if (left_ms == 0)
			return fail_to_resolve(text, host, error, waits, timeout_ms);
		if (ask_ms == ASK_FIRST_MS)
			tti_log(TTI_LOG_WARN, TTI_BOOT,
				"\"%s\" has no address yet (%s): asking again for up to %lld ms",
				host, gai_strerror(error), (long long)timeout_ms);
		if (!wait_to_ask(left_ms))
			return tti_fail(TUTTI_EABORTED,
					"interrupted while the host in \"%s\" has no address yet: "
					"%s",
					text, gai_strerror(error));
		ask_ms = ask_ms * 2 < ASK_MOST_MS ? ask_ms * 2 : ASK_MOST_MS;
	}
}

tutti_status tti_addr_parse(const char *text, int64_t timeout_ms, struct tti_addr *out, size_t most,
			    size_t *n)
{
	char host[256];
	const char *port = NULL;
	struct addrinfo *list;

	*n = 0;
	TTI_TRY(tti_addr_split(text, host, sizeof(host), &port));
	TTI_TRY(resolve(text, host, port, timeout_ms, &list));
	for (const struct addrinfo *at = list; at && *n < most; at = at->ai_next)
		if (tti_addr_from_sock(at->ai_addr, &out[*n]) == TUTTI_OK)
			(*n)++;
	freeaddrinfo(list);
	if (*n == 0)
		return tti_fail(TUTTI_EINVAL, "no usable address of the host in \"%s\"", text);
	return TUTTI_OK;
}

/* A bound socket of this family, -1 with errno if there is none. */
static int bound(int family, uint16_t port)
{
	const int yes = 1, no = 0;
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };
	const socklen_t len =
		family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int fd = tti_fork_socket(family, SOCK_STREAM | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	if (family == AF_INET)
		((struct sockaddr_in *)&any)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&any)->sin6_port = htons(port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, (const struct sockaddr *)&any, len) < 0) {
		const int error = errno;

		tti_fd_close(&fd);
		errno = error;
	}
	return fd;
}

bool tti_addr_is_loopback(const struct tti_addr *addr)
{
	static const struct tti_addr six = { .family = 6, .ip = { [15] = 1 } };

	return (addr->family == 4 && addr->ip[0] == 127) ||
	       (addr->family == 6 && memcmp(addr->ip, six.ip, sizeof(addr->ip)) == 0);
}

/* A listening socket of a family that is allowed; -1 with errno. */
static int listening(uint16_t port, int backlog)
{
	int fd = tti_params()->socket_family == 1 ? -1 : bound(AF_INET6, port);

	if (fd < 0 && tti_params()->socket_family != 2)
		fd = bound(AF_INET, port);
	if (fd >= 0 && listen(fd, backlog) < 0)
		tti_fd_close(&fd);
	return fd;
}

/* Listen on a free port of TUTTI_PORT_RANGE; each process begins to look at another one. */
static tutti_status listen_in_range(const char *range, int backlog, int *fd_out)
{
	unsigned first = 0, last = 0, n;
	char more;

	if (sscanf(range, "%5u-%5u%c", &first, &last, &more) != 2 || first < 1 || last > 65535 ||
	    first > last)
		return tti_fail(TUTTI_EINVAL,
				"TUTTI_PORT_RANGE=%s is no range of ports: write it as 40000-40999",
				range);
	n = last - first + 1;
	*fd_out = -1;
	for (unsigned i = 0; i < n && *fd_out < 0; i++)
		*fd_out = listening((uint16_t)(first + ((unsigned)getpid() + i) % n), backlog);
	if (*fd_out < 0)
		return tti_fail(
			TUTTI_ESYS,
			"cannot listen on any of the %u ports of TUTTI_PORT_RANGE=%s: %m; a "
			"rank needs two and one for each of its NICs",
			n, range);
	return TUTTI_OK;
}

tutti_status tti_listen(uint16_t *port, int backlog, int *fd_out)
{
	const char *range = tti_params()->port_range;
	struct sockaddr_storage self;
	socklen_t len = sizeof(self);
	struct tti_addr addr;
	int fd;

	if (*port == 0 && range)
		TTI_TRY(listen_in_range(range, backlog, &fd));
	else
		fd = listening(*port, backlog);
	if (fd < 0)
		return tti_fail(TUTTI_ESYS,
				"cannot listen on port %u: %m (is another program there? "
				"TUTTI_SOCKET_FAMILY too narrow?)",
				*port);
	if (getsockname(fd, (struct sockaddr *)&self, &len) < 0 ||
	    tti_addr_from_sock((const struct sockaddr *)&self, &addr) != TUTTI_OK) {
		const tutti_status status = tti_fail(TUTTI_ESYS, "cannot listen: %m");

		tti_fd_close(&fd);
		return status;
	}
	*port = ntohs(addr.port);
	*fd_out = fd;
	return TUTTI_OK;
}

tutti_status tti_listen_unix(int backlog, struct tti_addr *out, int *fd_out)
{
	struct sockaddr_storage self;
	socklen_t len;
	int fd = tti_fork_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);

	*out = (struct tti_addr){ .family = TTI_ADDR_UNIX, .port = 1 };
	randombytes_buf(out->ip, sizeof(out->ip));
	len = tti_addr_to_sock(out, &self);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&self, len) < 0 ||
	    listen(fd, backlog) < 0) {
		const tutti_status status =
			tti_fail(TUTTI_ESYS, "cannot listen on a unix socket: %m (see ulimit -n)");

		tti_fd_close(&fd);
		return status;
	}
	*fd_out = fd;
	return TUTTI_OK;
}
