/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_MADE_H
#define TESTS_TOPO_MADE_H

/* A made-up machine: its files, and what is detected of it as a short text.
 * cmocka's header comes before this one. */

#include <stdarg.h>

#include "topo/detect/detect.h"
#include "tree.h"
#include "util/strbuf.h"

/* A file of the machine with a line in it, whose name is put together. */
__attribute__((format(printf, 3, 4))) static inline void
made_file(struct tree *tree, const char *line, const char *fmt, ...)
{
	char name[512], text[512];
	va_list args;

	va_start(args, fmt);
	assert_true((size_t)vsnprintf(name, sizeof(name), fmt, args) < sizeof(name));
	va_end(args);
	assert_true((size_t)snprintf(text, sizeof(text), "%s\n", line) < sizeof(text));
	tree_file(tree, name, text);
}

static inline void made_node(struct tree *tree, int id, const char *cpumap, const char *distance)
{
	made_file(tree, cpumap, "sys/devices/system/node/node%d/cpumap", id);
	made_file(tree, distance, "sys/devices/system/node/node%d/distance", id);
}

/* Two nodes of four CPUs. */
static inline void made_two_nodes(struct tree *tree)
{
	made_node(tree, 0, "0f", "10 20");
	made_node(tree, 1, "f0", "20 10");
}

/* A function at a place below sys/devices, "pci0000:00/0000:00:01.0/0000:01:00.0". */
static inline void made_pci(struct tree *tree, const char *place, const char *class)
{
	char name[1024], target[1024];
	const char *slash = strrchr(place, '/');

	made_file(tree, class, "sys/devices/%s/class", place);
	snprintf(target, sizeof(target), "../../../devices/%s", place);
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s", slash ? slash + 1 : place);
	tree_link(tree, name, target);
}

static inline void made_attr(struct tree *tree, const char *place, const char *file,
			     const char *line)
{
	made_file(tree, line, "sys/devices/%s/%s", place, file);
}

static inline void made_add_shape(const struct tti_xml *xml, struct tti_strbuf *out)
{
	const struct tti_xml *below = tti_xml_find(xml, "pci", NULL, NULL);
	const char *separator = "(";

	if (tti_xml_is(xml, "cpu"))
		tti_strbuf_addf(out, "cpu%s", tti_xml_get(xml, "numaid"));
	else
		tti_strbuf_add(out, tti_xml_get(xml, "busid"));
	for (; below; below = tti_xml_next(below, "pci")) {
		tti_strbuf_add(out, separator);
		made_add_shape(below, out);
		separator = " ";
	}
	tti_strbuf_add(out, separator[0] == ' ' ? ")" : "");
}

/* CPUs and PCI functions, "cpu0(0000:01:00.0(0000:02:00.0)) cpu1": to be freed. */
static inline char *made_shape(const struct tti_xml_doc *doc)
{
	struct tti_strbuf out = { 0 };

	for (const struct tti_xml *cpu = doc->root->first; cpu; cpu = cpu->next) {
		tti_strbuf_add(&out, out.len > 0 ? " " : "");
		made_add_shape(cpu, &out);
	}
	return tti_strbuf_take(&out);
}

static inline struct tti_xml_doc *made_detect(struct tree *tree, bool all)
{
	const struct tti_detect_config config = { .sysfs_root = tree->top, .all = all };
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	return doc;
}

static inline void made_assert_shape(struct tree *tree, bool all, const char *want)
{
	struct tti_xml_doc *doc = made_detect(tree, all);
	char *shape = made_shape(doc);

	assert_string_equal(shape, want);
	free(shape);
	tti_xml_free(doc);
}

#endif
