/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch.h"
#include "tag.h"
#include "tool.h"

#define WORDS_MOST 64

struct remote {
	const struct job *job;
	const struct hosts *hosts;
	struct launch launch;
	struct launch_host *shells; /* one for each host */
	json_t *text;               /* the job, but for what differs between hosts */
	char *words[WORDS_MOST];    /* of the remote shell, without the host */
	int nwords;
	char *shell;                /* where they are */
	char command[PATH_MAX * 2]; /* what to run there */
};

/* In single quotes: the remote shell hands the command to a shell. */
static bool quote(const char *text, char *out, size_t size)
{
	size_t at = 0;

	for (const char *c = text; *c && at + 6 < size; c++) {
		if (c == text)
			out[at++] = '\'';
		if (*c == '\'')
			at += (size_t)snprintf(out + at, size - at, "'\\''");
		else
			out[at++] = *c;
		if (c[1])
			continue;
		snprintf(out + at, size - at, "'");
		return true;
	}
	return false;
}

static bool find_command(struct remote *remote, const char *shell)
{
	char path[PATH_MAX] = "", quoted[PATH_MAX + 512];
	char *rest, *word;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0 ||
	    !quote(path, quoted, sizeof(quoted))) {
		tool_fail("cannot find the path of this program: %s", strerror(errno));
		return false;
	}
	snprintf(remote->command, sizeof(remote->command), "%s run --agent", quoted);
	remote->shell = strdup(shell);
	word = remote->shell ? strtok_r(remote->shell, " ", &rest) : NULL;
	while (word && remote->nwords < WORDS_MOST - 3) {
		remote->words[remote->nwords++] = word;
		word = strtok_r(NULL, " ", &rest);
	}
	if (remote->nwords == 0 || word) {
		tool_bad_usage("--rsh: a command of 1 to %d words", WORDS_MOST - 3);
		return false;
	}
	return true;
}

/* Ours, but those that say who is who. NULL: one is not UTF-8, or there is no memory. */
static json_t *gather_variables(void)
{
	static const char *const own[] = {
		"TUTTI_RANK",      "TUTTI_NRANKS",      "TUTTI_COMM_ID",
		"TUTTI_COMM_FILE", "TUTTI_COMM_SECRET", "TUTTI_PTRACER"
	};
	json_t *variables = json_object();

	for (char **entry = environ; variables && *entry; entry++) {
		const size_t len = strcspn(*entry, "=");
		char name[64];
		bool is_own =
			strncmp(*entry, "TUTTI_", 6) != 0 || len >= sizeof(name) || !(*entry)[len];

		snprintf(name, sizeof(name), "%.*s", len < sizeof(name) ? (int)len : 0, *entry);
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			is_own |= strcmp(name, own[i]) == 0;
		if (!is_own &&
		    json_object_set_new(variables, name, json_string(*entry + len + 1)) != 0) {
			json_decref(variables);
			return NULL;
		}
	}
	return variables;
}

/* There was a secret in some of it. */
static void wipe_and_free(void *memory)
{
	if (memory)
		explicit_bzero(memory, malloc_usable_size(memory));
	free(memory);
}

/* Wipe what functions that have returned left on the stack. */
__attribute__((noinline)) static void wipe_stack(void)
{
	char room[16384];

	explicit_bzero(room, sizeof(room));
}

/* The part of the job that is the same for all agents. */
static bool make_text(struct remote *remote)
{
	const struct job *job = remote->job;
	json_t *words = json_array(), *variables = gather_variables();
	char dir[PATH_MAX], address[300], secret[65];
	uint8_t random[32];
	bool good = words && variables;

	for (char **word = job->program; good && *word; word++)
		good = json_array_append_new(words, json_string(*word)) == 0;
	if (!good || !getcwd(dir, sizeof(dir)) ||
	    getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		tool_fail("cannot describe the job: its words and the variables "
			  "TUTTI_... must be UTF-8, and this folder must exist");
		json_decref(words);
		json_decref(variables);
		return false;
	}
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(secret + 2 * i, 3, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
	hosts_address(&remote->hosts->list[0], address, sizeof(address));
	json_set_alloc_funcs(malloc, wipe_and_free);
	remote->text =
		json_pack("{s:i, s:i, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:i, s:o, s:o}", "version",
			  tutti_version(), "nranks_all", job->nranks, "secret", secret, "host",
			  address, "dir", dir, "tag", job->tag, "no_bind", job->no_bind,
			  "keep_going", job->keep_going, "shared_malloc", job->shared_malloc,
			  "gpus", job->gpus, "program", words, "variables", variables);
	explicit_bzero(secret, sizeof(secret));
	wipe_stack();
	if (!remote->text)
		tool_fail("cannot describe the job: its folder must be UTF-8");
	return remote->text != NULL;
}

/* Over the control, which nobody else sees. */
static void tell(struct remote *remote, int at, int port)
{
	const struct host *host = &remote->hosts->list[at];
	char *line = NULL;
	size_t len;

	if (json_object_set_new(remote->text, "first_rank", json_integer(host->first_rank)) == 0 &&
	    json_object_set_new(remote->text, "nranks", json_integer(host->nranks)) == 0 &&
	    json_object_set_new(remote->text, "port", json_integer(port)) == 0)
		line = json_dumps(remote->text, JSON_COMPACT);
	if (!line) {
		tool_fail("out of memory");
		launch_end(&remote->launch, SIGTERM, TOOL_FINDING);
		return;
	}
	len = strlen(line);
	line[len] = '\n'; /* in the place of its 0 */
	launch_send(&remote->launch, at, line, len + 1);
}

/* The first agent has a port: the others may begin. */
static bool take_port(void *self, const char *line, size_t len)
{
	struct remote *remote = self;
	const size_t prefix = strlen(RUN_PORT_LINE);
	char number[8] = "";
	long port = 0;

	if (len < prefix || memcmp(line, RUN_PORT_LINE, prefix) != 0)
		return false;
	remote->launch.tags[0].take = NULL;
	line += prefix;
	len -= prefix;
	if (len < sizeof(number)) {
		memcpy(number, line, len);
		if (strspn(number, "0123456789") == len)
			port = strtol(number, NULL, 10);
	}
	if (port < 1 || port > 65535) {
		tool_fail("%s says that rank 0 has the port \"%.*s\", and a port is 1 to 65535: "
			  "--rsh has to start what it is given, and the same `tutti`",
			  remote->shells[0].name, len < 80 ? (int)len : 80, line);
		launch_end(&remote->launch, SIGTERM, TOOL_FINDING);
		return true;
	}
	for (int i = 1; i < remote->hosts->n; i++)
		tell(remote, i, (int)port);
	/* Nobody else is told, so the secret is not kept. */
	json_decref(remote->text);
	remote->text = NULL;
	return true;
}

/* In the child. */
static void exec_shell(struct remote *remote, int at, int control)
{
	char **words = remote->words;

	words[remote->nwords] = remote->hosts->list[at].name;
	words[remote->nwords + 1] = remote->command;
	words[remote->nwords + 2] = NULL;
	/* Signals of the terminal are ours to hand on. */
	setsid();
	if (dup2(control, 0) == 0)
		execvp(words[0], words);
	fprintf(stderr, "tutti run: cannot run '%s': %s\n", words[0], strerror(errno));
	_exit(127);
}

static bool start_shells(struct remote *remote)
{
	for (int i = 0; i < remote->hosts->n; i++) {
		int pair[2];
		pid_t pid;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
			tool_fail("a socket to the remote shell: %s", strerror(errno));
			return false;
		}
		remote->shells[i].control = pair[0];
		pid = launch_fork(&remote->launch, i);
		if (pid == 0)
			exec_shell(remote, i, pair[1]);
		close(pair[1]);
		if (pid < 0)
			return false;
	}
	return true;
}

static int run_shells(struct remote *remote, int port)
{
	struct launch *launch = &remote->launch;
	int code = TOOL_FINDING;

	if (launch_open(launch, "run", remote->hosts->n, true)) {
		launch_set_hosts(launch, remote->shells);
		launch->keeps_going = remote->job->keep_going;
		launch->tags[0].take = take_port;
		launch->tags[0].self = remote;
		if (start_shells(remote))
			tell(remote, 0, port);
		else
			launch_end(launch, SIGTERM, TOOL_FINDING);
		code = launch_wait(launch);
	}
	launch_close(launch);
	return code;
}

/* False for a name that means another host on each of them: ranks cannot meet there. */
static bool is_reached_by_others(const struct hosts *hosts)
{
	char name[300];

	hosts_address(&hosts->list[0], name, sizeof(name));
	if (hosts->n == 1 || (strcmp(name, "localhost") != 0 && strncmp(name, "127.", 4) != 0 &&
			      strcmp(name, "[::1]") != 0))
		return true;
	tool_bad_usage(
		"the ranks meet at the first host, and %s is another one on each of them: name "
		"it as the others know it",
		name);
	return false;
}

int run_on_hosts(const struct job *job, const struct hosts *hosts, const char *shell, int port)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	int code = TOOL_FINDING;

	if (!remote || !(remote->shells = calloc((size_t)hosts->n, sizeof(*remote->shells)))) {
		free(remote);
		return tool_fail("out of memory");
	}
	remote->job = job;
	remote->hosts = hosts;
	remote->launch.failed = -1;
	for (int i = 0; i < hosts->n; i++)
		remote->shells[i] =
			(struct launch_host){ .name = hosts->list[i].name, .control = -1 };
	if (!is_reached_by_others(hosts))
		code = TOOL_USAGE;
	else if (find_command(remote, shell) && make_text(remote))
		code = run_shells(remote, port);
	for (int i = 0; i < hosts->n; i++)
		if (remote->shells[i].control >= 0)
			close(remote->shells[i].control);
	if (job->json)
		run_print_json(job, &remote->launch, code);
	json_decref(remote->text);
	free(remote->shell);
	free(remote->shells);
	free(remote);
	return code;
}
