/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* No cluster has so many, and it keeps a slip of the pen from becoming a rail. */
#define MOST_RAIL 65535

#define BLANKS " \t\r\n"

bool tti_glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	/* Only the last star needs another try: what the ones before took, fits as well. */
	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

static bool is_glob(const char *text)
{
	return text[strcspn(text, "*?")] != '\0';
}

/* -- Reading -------------------------------------------------------------------------------- */

/* "HOST NIC": neither holds a blank. */
static uint32_t find_exact(const struct tti_cluster_build *build, struct tti_strbuf *key,
			   const char *host, const char *nic)
{
	key->len = 0;
	tti_strbuf_addf(key, "%s %s", host, nic);
	return key->failed ? TTI_INTERN_NONE : tti_intern_find(&build->exact, key->text, key->len);
}

static tutti_status add_exact(struct tti_cluster_build *build, const struct tti_rail_rule *rule)
{
	struct tti_strbuf key = { 0 };
	const uint32_t at = find_exact(build, &key, rule->host, rule->nic);
	bool good = !key.failed;

	if (good && at != TTI_INTERN_NONE)
		build->exact_rule.at[at] = (uint32_t)build->rules.n;
	else if (good)
		good = tti_vec_grow(&build->exact_rule) &&
		       tti_intern(&build->exact, key.text, key.len) != TTI_INTERN_NONE &&
		       tti_vec_push(&build->exact_rule, (uint32_t)build->rules.n);
	tti_strbuf_release(&key);
	return good ? TUTTI_OK : tti_cluster_no_memory();
}

static tutti_status add_glob(struct tti_cluster_build *build, struct tti_rail_rule *rule)
{
	const uint32_t at = tti_vec_grow(&build->last_glob)
				    ? tti_intern_text(&build->globs, rule->nic)
				    : TTI_INTERN_NONE;

	if (at == TTI_INTERN_NONE)
		return tti_cluster_no_memory();
	if (at == build->last_glob.n)
		build->last_glob.at[build->last_glob.n++] = TTI_INTERN_NONE;
	rule->next = build->last_glob.at[at];
	build->last_glob.at[at] = (uint32_t)build->rules.n;
	return TUTTI_OK;
}

static bool parse_rail(const char *text, int32_t *out)
{
	char *end;
	long rail;

	*out = -1;
	if (strcmp(text, "-") == 0)
		return true;
	errno = 0;
	rail = strtol(text, &end, 10);
	*out = (int32_t)rail;
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && rail <= MOST_RAIL;
}

/* Up to 5 words of a line, which is cut up. */
static int split(char *line, char *word[5])
{
	char *rest = NULL;
	int n = 0;

	line[strcspn(line, "#")] = '\0';
	for (char *at = strtok_r(line, BLANKS, &rest); at && n < 5;
	     at = strtok_r(NULL, BLANKS, &rest))
		word[n++] = at;
	return n;
}

static tutti_status take_line(struct tti_cluster *cluster, const char *file, uint32_t number,
			      char *line)
{
	struct tti_cluster_build *build = cluster->build;
	struct tti_rail_rule rule = { .file = file, .line = number, .group = TTI_INTERN_NONE };
	char *word[5];
	const int n = split(line, word);

	if (n == 0)
		return TUTTI_OK;
	if (n < 3 || n > 4)
		return tti_fail(TUTTI_EINVAL,
				"%s:%" PRIu32 ": %s words, the line should be "
				"HOST NIC RAIL [GROUP]",
				file, number, n < 3 ? "too few" : "too many");
	if (!parse_rail(word[2], &rule.rail))
		return tti_fail(TUTTI_EINVAL,
				"%s:%" PRIu32 ": '%s' is no rail: it is a number "
				"from 0 to %d, or - for a NIC on none",
				file, number, word[2], MOST_RAIL);
	if (n == 4)
		rule.group = tti_intern_text(&build->words, word[3]);
	rule.host = tti_arena_strdup(&cluster->arena, word[0]);
	rule.nic = tti_arena_strdup(&cluster->arena, word[1]);
	if (!rule.host || !rule.nic || (n == 4 && rule.group == TTI_INTERN_NONE) ||
	    !tti_vec_grow(&build->rules))
		return tti_cluster_no_memory();
	if (is_glob(rule.host))
		TTI_TRY(add_glob(build, &rule));
	else
		TTI_TRY(add_exact(build, &rule));
	build->rules.at[build->rules.n++] = rule;
	return TUTTI_OK;
}

static tutti_status take_file(struct tti_cluster *cluster, FILE *file, const char *path)
{
	const char *name = tti_arena_strdup(&cluster->arena, path);
	tutti_status status = name ? TUTTI_OK : tti_cluster_no_memory();
	uint32_t number = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while (status == TUTTI_OK && (len = getline(&line, &room, file)) >= 0) {
		number++;
		if (memchr(line, '\0', (size_t)len))
			status = tti_fail(TUTTI_EINVAL,
					  "%s:%" PRIu32 ": a zero byte: this is no "
					  "text",
					  path, number);
		else
			status = take_line(cluster, name, number, line);
	}
	if (status == TUTTI_OK && ferror(file))
		status = tti_fail(TUTTI_ESYS, "%s: %m", path);
	free(line);
	return status;
}

tutti_status tti_cluster_read_rails(struct tti_cluster *cluster, const char *path)
{
	tutti_status status;
	FILE *file;

	if (!cluster->build)
		return tti_fail(TUTTI_EUSAGE, "%s: this cluster is sealed, its rails are known",
				path);
	file = fopen(path, "re");
	if (!file)
		return tti_fail(TUTTI_EINVAL, "%s: %m", path);
	status = take_file(cluster, file, path);
	fclose(file);
	return status;
}

/* -- Applying ------------------------------------------------------------------------------- */

/* The last line that is for exactly this NIC or whose globs match. */
static uint32_t find_rule(const struct tti_cluster_build *build, struct tti_strbuf *key,
			  const char *host, const char *nic)
{
	const uint32_t exact = find_exact(build, key, host, nic);
	const uint32_t glob = tti_intern_find(&build->globs, nic, strlen(nic));
	uint32_t best = exact == TTI_INTERN_NONE ? TTI_INTERN_NONE : build->exact_rule.at[exact];
	uint32_t at = glob == TTI_INTERN_NONE ? TTI_INTERN_NONE : build->last_glob.at[glob];

	for (; at != TTI_INTERN_NONE; at = build->rules.at[at].next) {
		if (best != TTI_INTERN_NONE && at < best)
			break;
		if (tti_glob_match(build->rules.at[at].host, host))
			return at;
	}
	return best;
}

static tutti_status note_unused(struct tti_cluster *cluster)
{
	const struct tti_cluster_build *build = cluster->build;

	for (size_t i = 0; i < build->rules.n; i++) {
		const struct tti_rail_rule *rule = &build->rules.at[i];

		if (!rule->used)
			TTI_TRY(tti_cluster_note(cluster,
						 "%s:%" PRIu32 ": %s %s: no NIC takes its "
						 "rail from this line",
						 rule->file, rule->line, rule->host, rule->nic));
	}
	return TUTTI_OK;
}

tutti_status tti_rail_rules_apply(struct tti_cluster *cluster)
{
	struct tti_cluster_build *build = cluster->build;
	struct tti_strbuf key = { 0 };

	if (!build->rules.n)
		return TUTTI_OK;
	for (size_t h = 0; h < build->hosts.n; h++) {
		const struct tti_cluster_host *host = &build->hosts.at[h];
		const struct tti_cluster_kind *kind = &build->kinds.at[host->kind];

		for (uint32_t i = 0; i < kind->nports; i++) {
			const uint32_t rule = find_rule(build, &key, host->name,
							tti_cluster_port_node(kind, i)->name);

			build->said.at[host->first_nic + i].rule = rule;
			if (rule != TTI_INTERN_NONE)
				build->rules.at[rule].used = true;
		}
	}
	if (key.failed) {
		tti_strbuf_release(&key);
		return tti_cluster_no_memory();
	}
	tti_strbuf_release(&key);
	return note_unused(cluster);
}
