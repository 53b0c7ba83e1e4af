/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run.h"
#include "tool.h"

#define LINE_MOST (4 << 20)

/* The first line, byte by byte: what follows is for launch_wait(). NULL: there is none, and the error was printed. */
static char *read_job(void)
{
	size_t len = 0, size = 4096;
	char *line = malloc(size), *more;
	ssize_t n = 0;

	while (line && len < LINE_MOST) {
		n = read(0, line + len, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || line[len] == '\n')
			break;
		if (++len == size) {
			size *= 2;
			more = realloc(line, size);
			if (!more)
				free(line);
			line = more;
		}
	}
	if (line && n == 1 && line[len] == '\n') {
		line[len] = '\0';
		return line;
	}
	free(line);
	/* A byte without a line is a signal: the job has ended before it began here. */
	if (len != 1)
		tool_fail("--agent: no job came over standard input: this is for `tutti "
			  "run --hosts`");
	return NULL;
}

/* `port`, or for 0 any, if nobody has it now. 0: somebody has (errno). */
static int free_port(int port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	socklen_t len = sizeof(six);
	int found = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool has_six = fd >= 0;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&six, sizeof(six)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&six, &len) == 0)
		found = ntohs(six.sin6_port);
	if (fd >= 0)
		close(fd);
	if (found || (has_six && errno == EADDRINUSE))
		return found;
	/* A host without IPv6. */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	len = sizeof(four);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&four, sizeof(four)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&four, &len) == 0)
		found = ntohs(four.sin_port);
	if (fd >= 0)
		close(fd);
	return found;
}

/* A port that rank 0 can listen on; 0: there is none, and the error was printed. */
static int find_port(void)
{
	const char *const set = tool_parameter("TUTTI_PORT_RANGE"), *range = set ? set : "";
	unsigned first = 0, last = 0;
	int port = 0;
	char more;

	if (*range && (sscanf(range, "%5u-%5u%c", &first, &last, &more) != 2 || first < 1 ||
		       last > 65535 || first > last)) {
		tool_fail("TUTTI_PORT_RANGE=%s is no range of ports: write it as 40000-40999",
			  range);
		return 0;
	}
	/* As ranks look: counted from another port in each process. */
	for (unsigned i = 0, n = last - first + 1; i < n && !port; i++)
		port = free_port(first ? (int)(first + ((unsigned)getpid() + i) % n) : 0);
	if (!port)
		tool_fail("no free port for rank 0%s%s: %s", *range ? " in TUTTI_PORT_RANGE=" : "",
			  range, strerror(errno));
	return port;
}

/* The job's address becomes that of its rank 0, which is told to whoever has started us. */
static bool settle_port(struct job *job, const char *host, int port)
{
	const bool is_first = job->first_rank == 0;

	if (!port)
		port = find_port();
	if (!port)
		return false;
	snprintf(job->address, sizeof(job->address), "%s:%d", host, port);
	if (is_first) {
		printf(RUN_PORT_LINE "%d\n", port);
		fflush(stdout);
	}
	return true;
}

static bool set_variables(const json_t *variables)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)variables, name,
			    value) if (!json_is_string(value) ||
				       setenv(name, json_string_value(value), 1) != 0) return false;
	return true;
}

static bool take_words(const json_t *words, struct job *job)
{
	const size_t n = json_array_size(words);

	job->program = calloc(n + 1, sizeof(*job->program));
	for (size_t i = 0; job->program && i < n; i++) {
		const char *word = json_string_value(json_array_get(words, i));

		job->program[i] = word ? strdup(word) : NULL;
		if (!job->program[i])
			return false;
	}
	return n > 0 && job->program;
}

static bool read_fields(json_t *root, struct job *job)
{
	int version = 0, tag = 0, no_bind = 0, keep_going = 0, shared_malloc = 0, port = 0;
	const char *secret = NULL, *host = NULL, *dir = NULL;
	json_t *words = NULL, *variables = NULL;

	if (json_unpack(
		    root,
		    "{s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:b, s:i, s:o, s:o}",
		    "version", &version, "nranks", &job->nranks, "first_rank", &job->first_rank,
		    "nranks_all", &job->nranks_all, "secret", &secret, "host", &host, "dir", &dir,
		    "port", &port, "tag", &tag, "no_bind", &no_bind, "keep_going", &keep_going,
		    "shared_malloc", &shared_malloc, "gpus", &job->gpus, "program", &words,
		    "variables", &variables) != 0 ||
	    job->nranks < 1 || version != tutti_version()) {
		tool_fail("--agent: the job is of another version of `tutti`, or is none: the same "
			  "one has to be at this path on all hosts");
		return false;
	}
	if (chdir(dir) != 0) {
		tool_fail("cannot go to the folder %s: %s", dir, strerror(errno));
		return false;
	}
	job->is_agent = true;
	job->tag = tag;
	job->no_bind = no_bind;
	job->keep_going = keep_going;
	job->shared_malloc = shared_malloc;
	snprintf(job->secret, sizeof(job->secret), "%s", secret);
	if (!set_variables(variables) || !take_words(words, job)) {
		tool_fail("out of memory");
		return false;
	}
	return settle_port(job, host, port);
}

int run_agent(void)
{
	char *line = read_job();
	json_t *root = line ? json_loads(line, 0, NULL) : NULL;
	struct job job = { 0 };
	int code = TOOL_FINDING;

	if (line && read_fields(root, &job))
		code = run_local(&job);
	for (size_t i = 0; job.program && job.program[i]; i++)
		free(job.program[i]);
	free(job.program);
	json_decref(root);
	free(line);
	return code;
}
