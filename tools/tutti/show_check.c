/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti show --check: whether the algorithm in a file is right, and what it does. */
#include "show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti/algo_file.h"

/* No program that a person or a generator writes comes near this. */
#define MAX_FILE   ((size_t)1 << 30)
/* Links that are listed one by one. */
#define MAX_LISTED 32

/* All of a file, or of standard input for "-", as one string. */
static char *read_file(const char *path, size_t *len_out)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t len = 0, room = 65536;
	char *text = file ? malloc(room) : NULL;
	char *bigger;

	while (text && !feof(file) && !ferror(file)) {
		len += fread(text + len, 1, room - len - 1, file);
		if (len < room - 1)
			continue;
		room *= 2;
		bigger = room > MAX_FILE ? NULL : realloc(text, room);
		if (!bigger) {
			free(text);
			errno = EFBIG;
		}
		text = bigger;
	}
	if (text && ferror(file)) {
		free(text);
		text = NULL;
	}
	if (text)
		text[len] = '\0';
	*len_out = len;
	if (file && file != stdin) {
		const int saved = errno;

		fclose(file);
		errno = saved;
	}
	return text;
}

static void print_range(const struct tutti_algo_report *report)
{
	if (report->max_bytes == SIZE_MAX)
		printf("%zu bytes and more", report->min_bytes);
	else
		printf("%zu to %zu bytes", report->min_bytes, report->max_bytes);
}

static void print_report(const struct tutti_algo_report *report, const uint64_t *link,
			 size_t nbytes)
{
	const size_t n = (size_t)report->nranks;

	printf("%s: %s of %d ranks, %d chunks, root %d, for ", report->name,
	       tutti_collective_name(report->collective), report->nranks, report->nchunks,
	       report->root);
	print_range(report);
	printf("\nsteps      %zu, at most %zu of a rank\n", report->steps, report->most_steps);
	printf("of %zu bytes: at most %" PRIu64 " sent by a rank, %" PRIu64 " over each of %d "
	       "links; predicted %.2f us on one host\n",
	       nbytes, report->most_sent_bytes, report->most_link_bytes, report->links,
	       report->predicted_us);
	for (size_t i = 0; report->links <= MAX_LISTED && i < n * n; i++)
		if (link[i])
			printf("  %zu -> %zu  %" PRIu64 "\n", i / n, i % n, link[i]);
}

static json_t *pack_report(const struct tutti_algo_report *report, const uint64_t *link,
			   size_t nbytes)
{
	const size_t n = (size_t)report->nranks;
	json_t *links = json_array();

	for (size_t i = 0; links && i < n * n; i++)
		if (link[i] &&
		    json_array_append_new(
			    links, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)(i / n), "to",
					     (json_int_t)(i % n), "bytes", (json_int_t)link[i]))) {
			json_decref(links);
			return NULL;
		}
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:i, s:I, s:o, s:I, s:I, s:I, s:f, s:o}", "name",
		report->name, "collective", tutti_collective_name(report->collective), "ranks",
		report->nranks, "chunks", report->nchunks, "root", report->root, "min_bytes",
		(json_int_t)report->min_bytes, "max_bytes",
		report->max_bytes == SIZE_MAX ? json_null()
					      : json_integer((json_int_t)report->max_bytes),
		"steps", (json_int_t)report->steps, "most_steps", (json_int_t)report->most_steps,
		"bytes", (json_int_t)nbytes, "predicted_us", report->predicted_us, "links", links);
}

int show_check(const char *path, size_t nbytes, bool json)
{
	struct tutti_algo_report report = TUTTI_ALGO_REPORT_INIT;
	uint64_t *link = NULL;
	size_t len;
	char *text = read_file(path, &len);
	tutti_status status;
	const char *why;
	bool printed = true;

	if (!text)
		return tool_bad_usage("cannot read '%s': %s", path, strerror(errno));
	status = tutti_algo_file_check(text, len, path, nbytes, &report, &link);
	free(text);
	why = status ? tool_why(NULL, status) : NULL;
	if (json) {
		printed = tool_print_json(json_pack(
			"{s:s, s:b, s:s?, s:o*}", "file", path, "ok", status == TUTTI_OK, "reason",
			why, "algorithm", status ? NULL : pack_report(&report, link, nbytes)));
	} else if (status) {
		tool_fail("%s", why);
	} else {
		printf("%s: proven: every output is right and nothing can deadlock\n", path);
		print_report(&report, link, nbytes);
	}
	free(link);
	return status == TUTTI_OK && printed ? TOOL_GOOD : TOOL_FINDING;
}
