/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi/pmi_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/params.h"

/* The value of the word `name` of a line into out. False: it is not there, or too long. */
static bool find_word(const char *line, const char *name, char *out, size_t size)
{
	const size_t length = strlen(name);

	for (const char *at = line; *at; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		if (strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		at += length + 1;

		const size_t nbytes = strcspn(at, " ");

		if (nbytes >= size)
			return false;
		memcpy(out, at, nbytes);
		out[nbytes] = '\0';
		return true;
	}
	return false;
}

static tutti_status failed(const char *asked, tutti_status st)
{
	if (st == TUTTI_ETIMEOUT)
		return tti_fail(st,
				"the launcher has not answered \"%s\" in time "
				"(TUTTI_BOOT_TIMEOUT_MS): some rank of the job has not come, or "
				"the launcher hangs",
				asked);
	if (st == TUTTI_EPEER)
		return tti_fail(st,
				"the launcher closed PMI_FD when asked \"%s\": it is ending the "
				"job, or this process or one that it took the place of had said "
				"goodbye to it already (MPI_Finalize() does)",
				asked);
	return tti_fail(st, "asking the launcher \"%s\" over PMI_FD: %m", asked);
}

/* The next line, with 0 for its end, into wire->read. */
static tutti_status read_line(struct tti_pmi_wire *wire, const char *asked, int64_t deadline_ns)
{
	wire->nread -= wire->nline;
	memmove(wire->read, wire->read + wire->nline, wire->nread);
	for (;;) {
		struct pollfd fd = { .fd = wire->fd, .events = POLLIN };
		char *const end = memchr(wire->read, '\n', wire->nread);
		ssize_t n;
		int ready;

		wire->nline = end ? (size_t)(end - wire->read) + 1 : 0;
		if (end) {
			*end = '\0';
			return TUTTI_OK;
		}
		if (wire->nread == sizeof(wire->read))
			return tti_fail(TUTTI_EINVAL,
					"the launcher's answer to \"%s\" is a line of more than "
					"%zu bytes: PMI_FD speaks no PMI-1",
					asked, sizeof(wire->read));
		ready = poll(&fd, 1, tti_left_ms(deadline_ns, 1 << 20));
		if ((ready < 0 && errno == EINTR) || (ready == 0 && tti_now_ns() < deadline_ns))
			continue;
		if (ready <= 0)
			return failed(asked, ready ? TUTTI_ESYS : TUTTI_ETIMEOUT);
		n = recv(wire->fd, wire->read + wire->nread, sizeof(wire->read) - wire->nread,
			 MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return failed(asked, n && errno != ECONNRESET ? TUTTI_ESYS : TUTTI_EPEER);
		wire->nread += (size_t)n;
	}
}

/* Say `format`, a line without its end, and read the answer, which must be of the kind `expected`. In
 * texts of errors the value of a put, which is a secret, stands as `shown`; NULL: the line itself. */
TUTTI_PRINTF(5, 6)
static tutti_status ask(struct tti_pmi_wire *wire, int64_t deadline_ns, const char *expected,
			const char *shown, const char *format, ...)
{
	char line[2048], kind[32] = "", rc[16] = "";
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	tti_assert(n > 0 && n < (int)sizeof(line) - 1);
	shown = shown ? shown : format;
	line[n] = '\n';

	tutti_status st = tti_fd_send_all(wire->fd, line, (size_t)n + 1, deadline_ns, NULL);

	sodium_memzero(line, sizeof(line));
	if (st != TUTTI_OK)
		return failed(shown, st);
	TTI_TRY(read_line(wire, shown, deadline_ns));
	if (!find_word(wire->read, "cmd", kind, sizeof(kind)) || strcmp(kind, expected) != 0)
		return tti_fail(TUTTI_EINVAL,
				"the launcher answered \"%s\" with \"%.60s\" in place of cmd=%s: "
				"PMI_FD speaks no PMI-1",
				shown, wire->read, expected);
	if (find_word(wire->read, "rc", rc, sizeof(rc)) && strcmp(rc, "0") != 0)
		return tti_fail(TUTTI_ESYS, "the launcher refused \"%s\": %.200s", shown,
				wire->read);
	return TUTTI_OK;
}

tutti_status tti_pmi_wire_begin(struct tti_pmi_wire *wire, int fd, int64_t deadline_ns)
{
	memset(wire, 0, sizeof(*wire));
	wire->fd = fd;
	TTI_TRY(ask(wire, deadline_ns, "response_to_init", NULL,
		    "cmd=init pmi_version=1 pmi_subversion=1"));
	TTI_TRY(ask(wire, deadline_ns, "my_kvsname", NULL, "cmd=get_my_kvsname"));
	if (!find_word(wire->read, "kvsname", wire->kvsname, sizeof(wire->kvsname)))
		return tti_fail(TUTTI_EINVAL,
				"the launcher's answer has no name of a key-value store of less "
				"than %zu bytes: \"%.60s\"",
				sizeof(wire->kvsname), wire->read);
	return TUTTI_OK;
}

tutti_status tti_pmi_wire_exchange(struct tti_pmi_wire *wire, const struct tti_pmi_call *call)
{
	bool is_found;

	if (call->value)
		TTI_TRY(ask(wire, call->deadline_ns, "put_result", "cmd=put",
			    "cmd=put kvsname=%s key=%s value=%s", wire->kvsname, call->key,
			    call->value));
	TTI_TRY(ask(wire, call->deadline_ns, "barrier_out", NULL, "cmd=barrier_in"));
	if (call->value)
		return TUTTI_OK;
	TTI_TRY(ask(wire, call->deadline_ns, "get_result", "cmd=get", "cmd=get kvsname=%s key=%s",
		    wire->kvsname, call->key));
	is_found = find_word(wire->read, "value", call->out, call->out_size);
	sodium_memzero(wire->read, wire->nline);
	if (!is_found)
		return tti_fail(TUTTI_EINVAL,
				"the launcher's answer has no value of %s of less than %zu bytes",
				call->key, call->out_size);
	return TUTTI_OK;
}

void tti_pmi_wire_finish(struct tti_pmi_wire *wire, int64_t deadline_ns)
{
	static const char word[] = "cmd=finalize\n";
	char answer[64];

	/* The launcher closes its end after its answer; nobody minds if it is gone already. */
	if (tti_fd_send_all(wire->fd, word, sizeof(word) - 1, deadline_ns, NULL) == TUTTI_OK)
		(void)!tti_fd_recv_all(wire->fd, answer, strlen("cmd=finalize_ack\n"), deadline_ns,
				       NULL);
}

/* -- The socket of this process ------------------------------------------------------ */

/* The launcher has given it to the process. Guarded by the lock of tti_pmi_share_id(). */
static struct {
	struct tti_pmi_wire wire;
	pid_t pid; /* 0: not begun */
} own = { .wire = { .fd = -1 } };

static tutti_status open_own(int64_t deadline_ns)
{
	const char *text = tti_env_foreign("PMI_FD");
	char *end = NULL;
	const long number = text ? strtol(text, &end, 10) : -1;
	struct stat file;
	int fd;

	if (!text)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"PMI_RANK is set and PMI_FD is not: the launcher has no PMI-1 by a "
				"socket; set MASTER_ADDR and MASTER_PORT, or TUTTI_COMM_ID to "
				"host:port of rank 0, with TUTTI_COMM_SECRET");
	if (end == text || *end || number < 0 || number > 1 << 24)
		return tti_fail(TUTTI_EUSAGE,
				"PMI_FD=\"%s\" is no socket of a launcher: set TUTTI_COMM_ID to "
				"host:port of rank 0, with TUTTI_COMM_SECRET",
				text);
	if (fstat((int)number, &file) < 0 || !S_ISSOCK(file.st_mode))
		return tti_fail(TUTTI_EUSAGE,
				"PMI_FD=%ld is no socket: it was closed, by a program that this "
				"one was started from or by MPI_Finalize(); start this program "
				"itself by the launcher, or set TUTTI_COMM_ID",
				number);
	/* A number of our own: the socket's may become that of another file, once MPI closes it. */
	fd = tti_fork_close(fcntl((int)number, F_DUPFD_CLOEXEC, 3));
	if (fd < 0)
		return tti_fail(TUTTI_ESYS, "duplicating PMI_FD=%ld: %m", number);

	const tutti_status st = tti_pmi_wire_begin(&own.wire, fd, deadline_ns);

	if (st != TUTTI_OK) {
		tti_fd_close(&own.wire.fd);
		return st;
	}
	own.pid = getpid();
	return TUTTI_OK;
}

tutti_status tti_pmi_wire(const struct tti_pmi_call *call)
{
	if (!own.pid)
		TTI_TRY(open_own(call->deadline_ns));
	return tti_pmi_wire_exchange(&own.wire, call);
}

/* The last one that says something here: the store is of no use after that. */
__attribute__((destructor)) static void finish_own(void)
{
	if (own.pid && own.pid == getpid())
		tti_pmi_wire_finish(&own.wire, tti_deadline(TTI_PMI_FINISH_MS));
}
