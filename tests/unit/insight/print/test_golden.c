/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed of each topology file and each captured machine, beside what it was:
 * tests/golden/topo/NAME.{tree,paths,lint}.txt, or NAME.refused.txt for what is refused.
 * With --write they are written instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <glob.h>

#include "insight/lint/lint.h"
#include "insight/print/print.h"
#include "insight/topo/paths_check.h"
#include "topo/detect/detect.h"
#include "topo/tree/schema.h"
#include "unit/topo/capture.h"
#include "util/error.h"
#include "util/mem.h"

static const struct tti_print_config plain = { .utf8 = true };

static bool write_golden;
static size_t nread; /* golden files that something was compared with */

/* -- Comparing ------------------------------------------------------------------------- */

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t len = 0, room = 1 << 20;
	char *text = malloc(room);

	assert_non_null(text);
	if (!file) {
		free(text);
		return NULL;
	}
	len = fread(text, 1, room - 1, file);
	assert_true(len < room - 1);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void write_all(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (!file)
		fail_msg("%s: %s", path, strerror(errno));
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The first line in which two texts differ. */
static void show_difference(const char *path, const char *is, const char *was)
{
	unsigned line = 1;

	while (*is && *is == *was) {
		line += *is == '\n';
		is++;
		was++;
	}
	while (line > 1 && is[-1] != '\n') {
		is--;
		was--;
	}
	fail_msg("%s:%u: now\n  %.*s\nin place of\n  %.*s\n"
		 "If that is right: unit_golden --write, and look at the difference.",
		 path, line, (int)strcspn(is, "\n"), is, (int)strcspn(was, "\n"), was);
}

/* Takes what is in the buffer. */
static void compare(const char *name, const char *what, struct tti_strbuf *buf)
{
	char *text = tti_strbuf_take(buf), *was;
	char path[512];

	assert_non_null(text);
	assert_null(strstr(text, "/tmp/"));
	assert_null(strstr(text, "/shm/"));
	assert_true((size_t)snprintf(path, sizeof(path), "%s/topo/%s.%s.txt", TEST_GOLDEN, name,
				     what) < sizeof(path));
	if (write_golden)
		write_all(path, text);
	was = read_all(path);
	if (!was)
		fail_msg("%s is missing: unit_golden --write makes it", path);
	if (strcmp(text, was) != 0)
		show_difference(path, text, was);
	nread++;
	free(was);
	free(text);
}

/* -- What is printed --------------------------------------------------------------------- */

static void must(const char *name, tutti_status status)
{
	if (status)
		fail_msg("%s: %s", name, tti_error_text());
}

/* A document that is good: everything that follows is, too. */
static void show(const char *name, const struct tti_xml_doc *doc)
{
	struct tti_graph *graph = NULL;
	struct tti_paths *paths = NULL;
	struct tti_routes *routes = NULL;
	struct tti_lint *lint = NULL;
	struct tti_strbuf out = { 0 };

	must(name, tti_graph_build(doc, TTI_MODEL_TUTTI, &graph));
	must(name, tti_graph_check(graph));
	must(name, tti_paths_build(graph, &paths));
	must(name, tti_paths_check(paths));
	must(name, tti_routes_build(paths, NULL, &routes));
	must(name, tti_lint_run(doc, graph, paths, routes, &lint));
	tti_print_tree(graph, &plain, &out);
	compare(name, "tree", &out);
	must(name, tti_print_paths(routes, &plain, &out));
	compare(name, "paths", &out);
	tti_print_lint(lint, &plain, &out);
	compare(name, "lint", &out);
	tti_lint_free(lint);
	tti_routes_free(routes);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

/* Read under its bare name, so that no message holds a path of this machine. */
static bool show_file(const char *path, const char *prefix)
{
	const char *file = strrchr(path, '/') + 1;
	char *text = read_all(path), name[256];
	struct tti_xml_doc *doc = NULL;
	struct tti_strbuf out = { 0 };
	tutti_status status;

	assert_non_null(text);
	snprintf(name, sizeof(name), "%s%.*s", prefix, (int)strlen(file) - 4, file);
	status = tti_xml_read(text, strlen(text), file, &doc);
	if (status == TUTTI_OK)
		status = tti_schema_check(doc);
	if (status == TUTTI_OK) {
		show(name, doc);
	} else {
		assert_int_equal(status, TUTTI_EINVAL);
		tti_strbuf_addf(&out, "%s\n", tti_error_text());
		compare(name, "refused", &out);
	}
	tti_xml_free(doc);
	free(text);
	return status == TUTTI_OK;
}

static void topology_files_look_as_they_did(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 30);
	for (size_t i = 0; i < files.gl_pathc; i++)
		assert_true(show_file(files.gl_pathv[i], ""));
	globfree(&files);
}

static void raw_files_are_read_or_refused_as_they_were(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/raw/*.xml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 8);
	for (size_t i = 0; i < files.gl_pathc; i++)
		show_file(files.gl_pathv[i], "raw__");
	globfree(&files);
}

static void captured_machines_look_as_they_did(void **state)
{
	(void)state;
	for (size_t i = 0; i < NCAPTURES; i++) {
		struct tti_detect_config config = { 0 };
		struct tti_xml_doc *doc = NULL;
		struct capture capture;
		char name[256];

		snprintf(name, sizeof(name), "%.*s",
			 (int)(strstr(captures[i], ".tar") - captures[i]), captures[i]);
		capture_unpack(&capture, captures[i]);
		config.sysfs_root = capture.root;
		must(name, tti_detect_machine(&config, &doc));
		doc->source = name;
		must(name, tti_schema_check(doc));
		show(name, doc);
		tti_xml_free(doc);
		capture_remove(&capture);
	}
}

static void nothing_is_kept_that_nothing_prints(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_GOLDEN "/topo/*.txt", 0, NULL, &files), 0);
	assert_int_equal(files.gl_pathc, nread);
	globfree(&files);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_files_look_as_they_did),
		cmocka_unit_test(raw_files_are_read_or_refused_as_they_were),
		cmocka_unit_test(captured_machines_look_as_they_did),
		cmocka_unit_test(nothing_is_kept_that_nothing_prints),
	};

	write_golden = argc > 1 && strcmp(argv[1], "--write") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
