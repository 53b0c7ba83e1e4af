/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names by the first bytes of the class code; longer prefixes come first. */
static const struct {
	uint32_t prefix;
	unsigned shift;
	const char *name;
} classes[] = {
	{ 0x0604, 8, "switch" },
	{ 0x0680, 8, "NVSwitch" },
	{ 0x0801, 8, "switch" },
	{ 0x0106, 8, "SATA controller" },
	{ 0x0108, 8, "NVMe disk" },
	{ 0x0207, 8, "InfiniBand HCA" },
	{ 0x0c03, 8, "USB controller" },
	{ 0x0c06, 8, "InfiniBand HCA" },
	{ 0x0b40, 8, "accelerator" },
	{ 0x01, 16, "disk controller" },
	{ 0x02, 16, "NIC" },
	{ 0x03, 16, "GPU" },
	{ 0x04, 16, "audio" },
	{ 0x05, 16, "memory" },
	{ 0x06, 16, "bridge" },
	{ 0x07, 16, "serial port" },
	{ 0x08, 16, "system device" },
	{ 0x0c, 16, "bus controller" },
	{ 0x0d, 16, "wireless" },
	{ 0x12, 16, "accelerator" },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *tti_words_class(uint32_t class_code)
{
	for (size_t i = 0; i < COUNT(classes); i++)
		if (class_code >> classes[i].shift == classes[i].prefix)
			return classes[i].name;
	return "device";
}

void tti_words_pci(const struct tti_pci_info *pci, char buf[TTI_WORDS_MAX])
{
	const char *vendor = tti_words_vendor(pci->vendor);
	const char *own = tti_words_device(pci->vendor, pci->device);
	const char *device = own ? own : pci->name;
	const char *kind = tti_words_class(pci->class_code);

	if (vendor && device)
		snprintf(buf, TTI_WORDS_MAX, "%s %s", vendor, device);
	else if (device)
		snprintf(buf, TTI_WORDS_MAX, "%s", device);
	else if (pci->vendor == 0x10b5) /* the number of the part is its id */
		snprintf(buf, TTI_WORDS_MAX, "PLX PEX %04x", pci->device);
	else if (vendor)
		snprintf(buf, TTI_WORDS_MAX, "%s %s", vendor, kind);
	else if (pci->vendor && pci->vendor != 0xffff)
		snprintf(buf, TTI_WORDS_MAX, "%s %04x:%04x", kind, pci->vendor, pci->device);
	else
		snprintf(buf, TTI_WORDS_MAX, "%s", kind);
}

/* 8 GT/s is generation 3; 0: the speed is not stated, or is none of these. */
static int generation(double gts)
{
	static const double speeds[] = { 2.5, 5, 8, 16, 32, 64, 128 };

	for (size_t i = 0; i < COUNT(speeds); i++)
		if (gts > speeds[i] * 0.95 && gts < speeds[i] * 1.05)
			return (int)i + 1;
	return 0;
}

void tti_words_pci_link(const struct tti_pci_info *pci, char buf[TTI_WORDS_MAX])
{
	const int gen = generation(pci->gts);
	char speed[24] = "", width[16] = "";

	if (gen)
		snprintf(speed, sizeof(speed), "gen%d", gen);
	else if (pci->gts > 0)
		snprintf(speed, sizeof(speed), "%g GT/s", pci->gts);
	if (pci->width)
		snprintf(width, sizeof(width), "x%d", pci->width);
	snprintf(buf, TTI_WORDS_MAX, "%s%s%s", speed, speed[0] && width[0] ? " " : "", width);
}

void tti_words_gbps(double gbps, char buf[TTI_WORDS_MAX])
{
	const int digits = gbps >= 1000 ? 0 : gbps >= 1 ? 1 : gbps >= 0.095 ? 2 : 3;

	snprintf(buf, TTI_WORDS_MAX, "%.*f", digits, gbps);
}

void tti_words_net_speed(int64_t mbps, char buf[TTI_WORDS_MAX])
{
	if (mbps <= 0)
		snprintf(buf, TTI_WORDS_MAX, "speed unknown");
	else
		snprintf(buf, TTI_WORDS_MAX, "%g Gb/s", (double)mbps / 1000);
}

/* A list of CPUs under construction. Single CPUs wait for others at the same stride. */
struct cpu_list {
	struct tti_strbuf *out;
	size_t begin;
	size_t start, last, stride, n; /* the single ones */
};

static void add_item(struct cpu_list *list, size_t first, size_t last, size_t stride)
{
	if (list->out->len > list->begin)
		tti_strbuf_add(list->out, ",");
	tti_strbuf_addf(list->out, "%zu", first);
	if (first != last)
		tti_strbuf_addf(list->out, "-%zu", last);
	if (stride > 1)
		tti_strbuf_addf(list->out, ":%zu", stride);
}

/* Four or more single CPUs are written as taskset reads them, "0-62:2". */
static void flush_singles(struct cpu_list *list)
{
	if (list->n >= 4)
		add_item(list, list->start, list->last, list->stride);
	for (size_t i = 0; i < list->n && list->n < 4; i++)
		add_item(list, list->start + i * list->stride, list->start + i * list->stride, 1);
	list->n = 0;
}

static void add_run(struct cpu_list *list, size_t first, size_t last)
{
	if (first != last) {
		flush_singles(list);
		add_item(list, first, last, 1);
		return;
	}
	if (list->n > 1 && first - list->last != list->stride)
		flush_singles(list);
	if (list->n == 0)
		list->start = first;
	else
		list->stride = first - list->last;
	list->last = first;
	list->n++;
}

void tti_words_cpus(const char *mask, struct tti_strbuf *out)
{
	struct cpu_list list = { .out = out, .begin = out->len };
	size_t cpu = 0, first = 0;
	bool inside = false;

	/* From its end: the last digit holds CPUs 0 to 3. */
	for (const char *at = mask + strlen(mask); at-- > mask;) {
		const char one[] = { *at, '\0' };
		const long digit = strtol(one, NULL, 16);

		if (!isxdigit((unsigned char)*at))
			continue;
		for (int bit = 0; bit < 4; bit++, cpu++) {
			const bool set = digit >> bit & 1;

			if (set && !inside)
				first = cpu;
			if (!set && inside)
				add_run(&list, first, cpu - 1);
			inside = set;
		}
	}
	if (inside)
		add_run(&list, first, cpu - 1);
	flush_singles(&list);
}

/* The number at the end of a name, -1: none; *stem_out: the length of the rest. */
static long number_of(const char *name, size_t *stem_out)
{
	size_t stem = strlen(name);

	while (stem && isdigit((unsigned char)name[stem - 1]))
		stem--;
	*stem_out = stem;
	/* A longer number is no count, and 007 would be printed as 7. */
	if (!name[stem] || strlen(name + stem) > 9 || (name[stem] == '0' && name[stem + 1]))
		return -1;
	return strtol(name + stem, NULL, 10);
}

void tti_words_names(const char *const *names, size_t n, struct tti_strbuf *out)
{
	size_t stem, other;

	for (size_t first = 0, end; first < n; first = end) {
		const long from = number_of(names[first], &stem);

		for (end = first + 1; from >= 0 && end < n; end++)
			if (number_of(names[end], &other) != from + (long)(end - first) ||
			    other != stem || memcmp(names[end], names[first], stem))
				break;
		if (first)
			tti_strbuf_add(out, ", ");
		tti_words_text(names[first], out);
		if (end > first + 1)
			tti_strbuf_addf(out, "-%ld", from + (long)(end - first) - 1);
	}
}

/* The bytes of a control character, which a terminal would obey; 0: none. UTF-8 has some of
 * two bytes. */
static size_t control_at(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
		return 2;
	return at[0] < ' ' || at[0] == 0x7f;
}

void tti_words_text(const char *text, struct tti_strbuf *out)
{
	for (size_t len; *text; text += len) {
		for (len = 0; text[len] && !control_at(text + len);)
			len++;
		if (len) {
			tti_strbuf_addf(out, "%.*s", (int)len, text);
		} else {
			tti_strbuf_add(out, "?");
			len = control_at(text);
		}
	}
}

static bool has_xgmi(const struct tti_graph *graph)
{
	return graph && graph->ntype[TTI_NODE_GPU] &&
	       tti_graph_is_amd(graph, graph->by_type[TTI_NODE_GPU][0]);
}

const char *tti_words_path_type(const struct tti_graph *graph, enum tti_path_type type)
{
	return type == TTI_PATH_NVL && has_xgmi(graph) ? "XGMI" : tti_path_type_name(type);
}

const char *tti_words_link_type(const struct tti_graph *graph, enum tti_link_type type)
{
	return type == TTI_LINK_NVL && has_xgmi(graph) ? "XGMI" : tti_link_type_name(type);
}
