/* SPDX-License-Identifier: BSD-3-Clause */
/* What the printers call things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/graph/words.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Compares what was added, and empties the buffer. */
static void expect_text(struct tti_strbuf *buf, const char *wanted)
{
	assert_false(buf->failed);
	assert_string_equal(buf->text ? buf->text : "", wanted);
	tti_strbuf_release(buf);
}

static void masks_become_ranges(void **state)
{
	static const struct {
		const char *mask, *cpus;
	} cases[] = {
		{ "", "" },
		{ "0", "" },
		{ "1", "0" },
		{ "f", "0-3" },
		{ "80000000", "31" },
		{ "00000001,00000000", "32" },
		{ "00000000,0000ffff,ff000000", "24-47" },
		{ "0000ffff,0000ffff", "0-15,32-47" },
		{ "FFFFFFFF,ffffffff", "0-63" },
		{ "0x0f", "0-3" }, /* not how kernels write it, but what people do */
		{ "5", "0,2" },
		{ "15", "0,2,4" },
		{ "55555555", "0-30:2" },
		{ "aaaa,0000000f", "0-3,33-47:2" },
		{ "1112f1115", "0,2,4,8,12,16-19,21,24,28,32" },
	};
	struct tti_strbuf buf = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		tti_words_cpus(cases[i].mask, &buf);
		expect_text(&buf, cases[i].cpus);
	}
	/* Commas are between runs, not in front of what was there. */
	tti_strbuf_add(&buf, "cpus ");
	tti_words_cpus("5", &buf);
	expect_text(&buf, "cpus 0,2");
}

static void names_are_shortened(void **state)
{
	static const char *const runs[] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_4", "eth0" };
	static const char *const traps[] = { "a9", "a10", "b11", "c01", "c02", "d", "d", "" };
	static const char *const same[] = { "GPU1", "GPU1" };
	struct tti_strbuf buf = { 0 };

	(void)state;
	tti_words_names(runs, COUNT(runs), &buf);
	expect_text(&buf, "mlx5_0-2, mlx5_4, eth0");
	tti_words_names(traps, COUNT(traps), &buf);
	expect_text(&buf, "a9-10, b11, c01, c02, d, d, ");
	tti_words_names(same, COUNT(same), &buf);
	expect_text(&buf, "GPU1, GPU1");
	tti_words_names(runs, 0, &buf);
	expect_text(&buf, "");
}

static void a_terminal_is_told_nothing_but_text(void **state)
{
	struct tti_strbuf buf = { 0 };

	(void)state;
	tti_words_text("eth\033[2J\n0\177", &buf);
	expect_text(&buf, "eth?[2J?0?");
	tti_words_text("\xc2\x9b"
		       "2J",
		       &buf);
	expect_text(&buf, "?2J");
	tti_words_text("\xc3\xa9th0", &buf);
	expect_text(&buf, "\xc3\xa9th0");
}

static void devices_have_names(void **state)
{
	static const struct {
		struct tti_pci_info pci;
		const char *words;
	} cases[] = {
		{ { .vendor = 0x10de, .device = 0x2330, .class_code = 0x030200 },
		  "NVIDIA H100 SXM" },
		{ { .vendor = 0x10de, .device = 0x2324, .class_code = 0x030200 }, "NVIDIA H800" },
		{ { .vendor = 0x10de, .device = 0x26ba, .class_code = 0x030200 }, "NVIDIA L20" },
		{ { .vendor = 0x10de, .device = 0x31c2, .class_code = 0x030200 }, "NVIDIA GB300" },
		{ { .vendor = 0x10de, .device = 0x2e12, .class_code = 0x030000 }, "NVIDIA GB10" },
		{ { .vendor = 0x10de, .device = 0x2230, .class_code = 0x030000 },
		  "NVIDIA RTX A6000" },
		{ { .vendor = 0x1002, .device = 0x75a0, .class_code = 0x120000 },
		  "AMD Instinct MI350X" },
		{ { .vendor = 0x15b3, .device = 0x197c, .class_code = 0x060400 },
		  "Mellanox ConnectX bridge" },
		{ { .vendor = 0x10de, .device = 0x0001, .class_code = 0x030200 }, "NVIDIA GPU" },
		{ { .vendor = 0x15b3, .device = 0x1021, .class_code = 0x020700 },
		  "Mellanox ConnectX-7" },
		{ { .vendor = 0x10b5, .device = 0x8747, .class_code = 0x060400 }, "PLX PEX 8747" },
		{ { .vendor = 0x1bcf, .device = 0x9999, .class_code = 0x0b4000 },
		  "NEC accelerator" },
		{ { .vendor = 0x4321, .device = 0x5678, .class_code = 0x010802 },
		  "NVMe disk 4321:5678" },
		{ { .class_code = 0x060400 }, "switch" },
		{ { .vendor = 0xffff, .class_code = 0x068000 }, "NVSwitch" },
		{ { .vendor = 0, .class_code = 0 }, "device" },
	};
	char buf[TTI_WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		tti_words_pci(&cases[i].pci, buf);
		assert_string_equal(buf, cases[i].words);
	}
}

static void figures_are_short(void **state)
{
	struct tti_pci_info pci = { .gts = 16, .width = 8 };
	char buf[TTI_WORDS_MAX];

	(void)state;
	tti_words_pci_link(&pci, buf);
	assert_string_equal(buf, "gen4 x8");
	pci.gts = 3;
	tti_words_pci_link(&pci, buf);
	assert_string_equal(buf, "3 GT/s x8");
	pci.gts = 0;
	tti_words_pci_link(&pci, buf);
	assert_string_equal(buf, "x8");
	pci.width = 0;
	tti_words_pci_link(&pci, buf);
	assert_string_equal(buf, "");
	tti_words_gbps(0.1875, buf);
	assert_string_equal(buf, "0.19");
	tti_words_gbps(24, buf);
	assert_string_equal(buf, "24.0");
	tti_words_gbps(1800, buf);
	assert_string_equal(buf, "1800");
	tti_words_net_speed(400000, buf);
	assert_string_equal(buf, "400 Gb/s");
	tti_words_net_speed(-1, buf);
	assert_string_equal(buf, "speed unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_become_ranges),
		cmocka_unit_test(names_are_shortened),
		cmocka_unit_test(a_terminal_is_told_nothing_but_text),
		cmocka_unit_test(devices_have_names),
		cmocka_unit_test(figures_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
