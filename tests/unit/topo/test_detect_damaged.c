/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture.h"
#include "insight/topo/gather.h"
#include "support/sanitizer.h"
#include "topo/detect/detect.h"
#include "topo/graph/graph.h"
#include "topo/tree/schema.h"
#include "util/error.h"

/* Captured machines come from anybody, by mail and cut off. Whatever is in their files and
 * wherever their links lead: what is detected is a topology, or an error says why not. */

#define NROUNDS  (SANITIZED ? 2 : 6)
#define NCHANGES 30

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

/* All files and links of a machine. */
static char **entries;
static size_t nentries, room;

static int note(const char *path, const struct stat *info, int type, struct FTW *place)
{
	(void)info;
	(void)place;
	if (type != FTW_F && type != FTW_SL)
		return 0;
	if (nentries == room) {
		room = room ? 2 * room : 1024;
		entries = realloc(entries, room * sizeof(entries[0]));
		assert_non_null(entries);
	}
	entries[nentries] = strdup(path);
	assert_non_null(entries[nentries++]);
	return 0;
}

static void forget(void)
{
	for (size_t i = 0; i < nentries; i++)
		free(entries[i]);
	free(entries);
	entries = NULL;
	nentries = room = 0;
}

static void write_junk(const char *path)
{
	static const char *const junk[] = {
		"",
		"\n",
		"-1\n",
		"0\n",
		"4294967295\n",
		"99999999999999999999999\n",
		"0xffffffffffffffffff\n",
		"nan",
		"1e999 Gb/sec",
		"\xff\xfe\x80<&\"'>\n",
		"ffffffff,ffffffff,ffffffff,ffffffff\n",
		"0-4000000000\n",
		"0-3,2-1,,-\n",
		"10 20 30 40 50 60 70 80 90\n",
		"0x060400\n",
		"0x030200\n",
		"0x020000\n",
		"1\n",
		"DEVTYPE=",
		"8 GT/s\n",
		"255\n",
		"0000:0000:0000:0000\n",
		"Unknown speed\n",
	};
	const char *const text = junk[draw(sizeof(junk) / sizeof(junk[0]))];
	FILE *const file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_noise(const char *path)
{
	FILE *const file = fopen(path, "we");
	const uint64_t n = draw(8192);

	assert_non_null(file);
	for (uint64_t i = 0; i < n; i++)
		fputc((int)draw(256), file);
	assert_int_equal(fclose(file), 0);
}

/* A link to where another one leads, to nowhere, to itself or up. */
static void make_link(const char *path)
{
	static const char *const targets[] = { "..", ".", "../../..", "nowhere", "/", "/etc" };
	const uint64_t which = draw(sizeof(targets) / sizeof(targets[0]) + 2);
	char target[512] = "";
	const char *const other = entries[draw(nentries)];

	if (which == 0)
		snprintf(target, sizeof(target), "%s", strrchr(path, '/') + 1);
	else if (which == 1)
		snprintf(target, sizeof(target), "%s", strstr(other, "/sys"));
	else
		snprintf(target, sizeof(target), "%s", targets[which - 2]);
	assert_int_equal(symlink(target, path), 0);
}

static void damage(const char *path)
{
	const uint64_t what = draw(8);

	/* Whatever it has become by now. */
	if (unlink(path) != 0 && rmdir(path) != 0)
		assert_int_equal(errno, ENOENT);
	if (what < 4)
		write_junk(path);
	else if (what == 4)
		write_noise(path);
	else if (what == 5)
		assert_int_equal(mkdir(path, 0700), 0);
	else if (what == 6)
		make_link(path);
}

static void look(const char *root, bool all)
{
	const struct tti_detect_config config = { .sysfs_root = root, .all = all };
	struct tti_graph *graph;
	struct tti_xml_doc *doc;
	const tutti_status status = tti_detect_machine(&config, &doc);

	if (status) {
		assert_int_equal(status, TUTTI_EINVAL);
		assert_true(tti_error_text()[0] != '\0');
		return;
	}
	if (tti_schema_check(doc) != TUTTI_OK)
		fail_msg("detected what is no topology: %s", tti_error_text());
	assert_int_equal(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph), TUTTI_OK);
	assert_int_equal(tti_graph_check(graph), TUTTI_OK);
	tti_graph_free(graph);
	tti_xml_free(doc);
}

static void run(const char *name)
{
	struct tti_gather_report report;
	struct capture capture;
	struct tti_sysfs sysfs;

	seed = 1;
	capture_unpack(&capture, name);
	assert_int_equal(tti_sysfs_open(capture.root, &sysfs), TUTTI_OK);
	for (int round = 0; round < NROUNDS; round++) {
		struct tree copy;

		/* The part that is read, so that every change counts. */
		tree_make(&copy);
		assert_int_equal(tti_gather(&sysfs, copy.top, &report), TUTTI_OK);
		assert_int_equal(nftw(copy.top, note, 32, FTW_PHYS), 0);
		for (int change = 0; change < NCHANGES; change++) {
			for (int i = 0; i <= round * 6; i++)
				damage(entries[draw(nentries)]);
			look(copy.top, change % 2);
		}
		forget();
		tree_remove(&copy);
	}
	tti_sysfs_close(&sysfs);
	capture_remove(&capture);
}

static void a_machine_with_nics_and_switches(void **state)
{
	(void)state;
	run("qemu-q35-2numa-pciswitch-sysfs.tar.gz");
}

static void a_machine_with_four_numa_nodes(void **state)
{
	(void)state;
	run("40intel64-2g2n4c+pcilocality.tar.bz2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_with_nics_and_switches),
		cmocka_unit_test(a_machine_with_four_numa_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
