/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "util/params.h"
#include "util/params_read.h"

/* A line is at most PIPE_BUF, so that a pipe keeps it in one piece as well. */
#define LINE_BYTES 4096
#define ALL_SUBSYS UINT32_MAX

static const char *const level_names[] = { "NONE", "WARN", "INFO", "TRACE" };
static const char *const subsys_names[] = {
#define X(name, text) (text),
	TTI_LOG_SUBSYS_MAP(X)
#undef X
};
#define NSUBSYS (sizeof(subsys_names) / sizeof(subsys_names[0]))

static struct {
	pthread_once_t once;
	enum tti_log_level level;
	uint32_t subsys; /* bit i: subsystem i is logged */
	int fd;
	bool has_time;
	atomic_bool no_errors; /* on a terminal, see tti_log_error() */
	char host[64];
} sink = { .once = PTHREAD_ONCE_INIT, .fd = STDERR_FILENO };

static _Thread_local int thread_rank = -1;

static void write_all(int fd, const char *line, size_t len)
{
	while (len > 0) {
		const ssize_t n = write(fd, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line += n;
		len -= (size_t)n;
	}
}

/* What a text may hold that would break the line, or the terminal. */
static void flatten(char *text)
{
	for (; *text; text++)
		if (*text == '\n' || *text == '\t')
			*text = ' ';
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* "2026-11-23T14:00:49.123456Z ", or nothing if it is not asked for. */
static void format_time(char *out, size_t size)
{
	struct timespec now;
	struct tm utc;
	size_t len;

	*out = '\0';
	if (!sink.has_time)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out + len, size - len, ".%06ldZ ", now.tv_nsec / 1000);
}

TUTTI_PRINTF(4, 0)
static void write_line(enum tti_log_level level, enum tti_log_subsys subsys, int error,
		       const char *fmt, va_list args)
{
	char line[LINE_BYTES];
	char rank[16] = "", time[40];
	size_t len;
	int more;

	if (thread_rank >= 0)
		snprintf(rank, sizeof(rank), "[%d]", thread_rank);
	format_time(time, sizeof(time));
	len = (size_t)snprintf(line, sizeof(line), "%stutti %s %s%s%s:%d%s ", time,
			       level_names[level],
			       level == TTI_LOG_WARN ? "" : subsys_names[subsys],
			       level == TTI_LOG_WARN ? "" : " ", sink.host, (int)getpid(), rank);
	errno = error;
	more = vsnprintf(line + len, sizeof(line) - 1 - len, fmt, args);
	if (more < 0)
		return;
	flatten(line + len);
	if ((size_t)more < sizeof(line) - 1 - len) {
		len += (size_t)more;
	} else {
		len = sizeof(line) - 2;
		memcpy(line + len - 3, "...", 3);
	}
	line[len++] = '\n';
	write_all(sink.fd, line, len);
}

/* For what goes wrong while the sink is being opened. */
TUTTI_PRINTF(1, 2) static void warn_early(const char *fmt, ...)
{
	const int error = errno;
	va_list args;

	if (sink.level < TTI_LOG_WARN)
		return;
	va_start(args, fmt);
	write_line(TTI_LOG_WARN, TTI_ENV, error, fmt, args);
	va_end(args);
}

/* The bits of one name, 0 if there is no such subsystem. */
static uint32_t subsys_bits(const char *name, size_t len)
{
	if (len == 3 && !strncasecmp(name, "all", len))
		return ALL_SUBSYS;
	for (size_t i = 0; i < NSUBSYS; i++)
		if (strlen(subsys_names[i]) == len && !strncasecmp(name, subsys_names[i], len))
			return UINT32_C(1) << i;
	return 0;
}

/* "boot,shm": these; "^coll,shm": all but these. */
static uint32_t parse_subsys(const char *list)
{
	const bool excludes = list && list[0] == '^';
	uint32_t bits = 0;

	if (!list)
		return ALL_SUBSYS;
	for (list += excludes; *list;) {
		const size_t len = strcspn(list, ",");
		uint32_t found;

		/* Some write it before each name. */
		if (excludes && *list == '^') {
			list++;
			continue;
		}
		found = subsys_bits(list, len);
		if (len && !found)
			warn_early(
				"TUTTI_DEBUG_SUBSYS: there is no subsystem \"%.*s\"; there are "
				"core, boot, gpu, shm, tcp, coll, engine, topo, plan, env and all",
				(int)(len < 64 ? len : 64), list);
		bits |= found;
		list += len + (list[len] == ',');
	}
	return excludes ? ~bits : bits;
}

/* `pattern` with %h, %p and %% filled in; false: too long, or another %. */
static bool expand_path(const char *pattern, char *out, size_t size)
{
	size_t len = 0;

	for (; *pattern; pattern++) {
		char piece[80] = { *pattern, '\0' };
		int n;

		if (*pattern == '%') {
			pattern++;
			if (*pattern == 'h')
				snprintf(piece, sizeof(piece), "%s", sink.host);
			else if (*pattern == 'p')
				snprintf(piece, sizeof(piece), "%d", (int)getpid());
			else if (*pattern != '%')
				return false;
		}
		n = snprintf(out + len, size - len, "%s", piece);
		if (n < 0 || (size_t)n >= size - len)
			return false;
		len += (size_t)n;
	}
	return true;
}

static void open_file(const char *pattern)
{
	char path[1024];
	int fd;

	if (!expand_path(pattern, path, sizeof(path))) {
		warn_early("TUTTI_DEBUG_FILE=%s: longer than %zu, or a %% without h, p or %% after "
			   "it; logging to stderr",
			   pattern, sizeof(path));
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		warn_early("TUTTI_DEBUG_FILE: cannot open %s: %m; logging to stderr", path);
	else
		sink.fd = fd;
}

/* Reads the parameters without their reports, which need the sink. */
static void open_sink(void)
{
	if (gethostname(sink.host, sizeof(sink.host) - 1))
		snprintf(sink.host, sizeof(sink.host), "?");
	sink.host[strcspn(sink.host, ".")] = '\0';
	sink.level = (enum tti_log_level)tti_params_quiet()->debug;
	sink.has_time = tti_params_quiet()->debug_time;
	if (tti_params_quiet()->debug_file && sink.level > TTI_LOG_NONE)
		open_file(tti_params_quiet()->debug_file);
	sink.subsys = parse_subsys(tti_params_quiet()->debug_subsys);
}

bool tti_log_enabled(enum tti_log_level level, enum tti_log_subsys subsys)
{
	pthread_once(&sink.once, open_sink);
	if (level == TTI_LOG_NONE || level > sink.level)
		return false;
	return level == TTI_LOG_WARN || (sink.subsys >> (unsigned)subsys & 1);
}

void tti_log(enum tti_log_level level, enum tti_log_subsys subsys, const char *fmt, ...)
{
	const int error = errno;

	if (tti_log_enabled(level, subsys)) {
		va_list args;

		va_start(args, fmt);
		write_line(level, subsys, error, fmt, args);
		va_end(args);
	}
	errno = error;
}

void tti_log_error(const char *fmt, ...)
{
	const int error = errno;

	if (tti_log_enabled(TTI_LOG_WARN, TTI_CORE) &&
	    !(atomic_load(&sink.no_errors) && sink.level == TTI_LOG_WARN &&
	      sink.fd == STDERR_FILENO)) {
		va_list args;

		va_start(args, fmt);
		write_line(TTI_LOG_WARN, TTI_CORE, error, fmt, args);
		va_end(args);
	}
	errno = error;
}

void tti_log_set_errors(bool shown)
{
	atomic_store(&sink.no_errors, !shown);
}

void tti_log_set_rank(int rank)
{
	thread_rank = rank;
}
