/* SPDX-License-Identifier: BSD-3-Clause */
/* The list has a line for each vendor, "10de  NVIDIA Corporation", and below it one for
 * each device, "<tab>31c2  GB110 [GB300]"; two tabs are a subsystem, which has no use here. */
#include "insight/topo/pci_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/graph/words.h"
#include "util/error.h"
#include "util/vec.h"

#define NAME_MAX_BYTES 32

static const char *const usual_paths[] = {
	"/usr/share/misc/pci.ids",
	"/usr/share/hwdata/pci.ids",
};

/* A device without a name. */
struct wanted {
	uint32_t id; /* vendor and device */
	uint32_t node;
};
typedef TTI_VEC(struct wanted) wanted_vec;

static int by_id(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
			      : (x->node > y->node) - (x->node < y->node);
}

static bool find_wanted(const struct tti_graph *graph, wanted_vec *out)
{
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct tti_node *node = &graph->nodes[i];
		const struct tti_pci_info *pci = &node->pci;

		if (node->type != TTI_NODE_DEV && node->type != TTI_NODE_PCI &&
		    node->type != TTI_NODE_NIC)
			continue;
		if (!pci->vendor || pci->vendor == 0xffff || !pci->device ||
		    tti_words_device(pci->vendor, pci->device))
			continue;
		if (!tti_vec_push(
			    out, ((struct wanted){ (uint32_t)pci->vendor << 16 | pci->device, i })))
			return false;
	}
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_id);
	return true;
}

/* "31c2  GB110 [GB300]": the four digits, and behind the blanks the name. */
static bool parse_line(const char *line, uint32_t *id, const char **name)
{
	char *end;
	const unsigned long value = strtoul(line, &end, 16);

	if (end != line + 4 || end[0] != ' ' || strspn(line, "0123456789abcdefABCDEF") != 4)
		return false;
	*id = (uint32_t)value;
	*name = end + strspn(end, " ");
	return true;
}

/* The product name, which stands in brackets. It goes to terminals, so only plain text is kept. */
static const char *keep_name(struct tti_graph *graph, const char *name)
{
	const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
	char text[NAME_MAX_BYTES];
	size_t len = 0;

	if (close && close > open + 1)
		name = open + 1;
	else
		close = NULL;
	for (;
	     name[len] >= ' ' && name[len] <= '~' && name + len != close && len < sizeof(text) - 1;
	     len++)
		text[len] = name[len];
	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	return tti_arena_strdup(&graph->arena, text);
}

/* All nodes of that id. */
static bool set_name(struct tti_graph *graph, const wanted_vec *wanted, uint32_t id,
		     const char *name)
{
	const char *kept = NULL;
	size_t low = 0, high = wanted->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (wanted->at[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < wanted->n && wanted->at[low].id == id; low++) {
		if (!kept)
			kept = keep_name(graph, name);
		if (!kept)
			return false;
		if (kept[0])
			graph->nodes[wanted->at[low].node].pci.name = kept;
	}
	return true;
}

static bool read_list(struct tti_graph *graph, const wanted_vec *wanted, FILE *file)
{
	bool ok = true, inside = false;
	uint32_t vendor = 0, device;
	const char *name;
	char *line = NULL;
	size_t room = 0;

	while (ok && getline(&line, &room, file) >= 0) {
		if (line[0] == '\t') {
			if (inside && parse_line(line + 1, &device, &name))
				ok = set_name(graph, wanted, vendor << 16 | device, name);
		} else if (line[0] != '#' && line[0] != '\n') {
			inside = parse_line(line, &vendor, &name);
		}
	}
	free(line);
	return ok;
}

tutti_status tti_pci_ids_name(struct tti_graph *graph, const char *path)
{
	wanted_vec wanted = { 0 };
	bool ok = find_wanted(graph, &wanted);
	FILE *file = NULL;

	if (ok && wanted.n && path)
		file = fopen(path, "re");
	for (size_t i = 0; ok && wanted.n && !path && !file && i < 2; i++)
		file = fopen(usual_paths[i], "re");
	if (file) {
		ok = read_list(graph, &wanted, file);
		fclose(file);
	}
	tti_vec_release(&wanted);
	return ok ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "no memory for the names of PCI devices");
}
