/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_XML_EDIT_H
#define TESTS_SUPPORT_XML_EDIT_H

/* What tests do to documents, and ranks and tools do not. */

#include <string.h>

#include "topo/tree/xml.h"

/* Move a node, with all below it, to be the last child of `parent`. */
static inline void xml_move(struct tti_xml *node, struct tti_xml *parent)
{
	tti_xml_unlink(node);
	node->parent = parent;
	node->next = NULL;
	*(parent->last ? &parent->last->next : &parent->first) = node;
	parent->last = node;
}

/* Take an attribute away, if it is there. */
static inline void xml_unset(struct tti_xml *node, const char *name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < node->nattrs; i++)
		if (strcmp(node->attrs[i].name, name) != 0)
			node->attrs[n++] = node->attrs[i];
	node->nattrs = n;
}

static inline bool xml_same_attrs(const struct tti_xml *a, const struct tti_xml *b)
{
	if (a->nattrs != b->nattrs)
		return false;
	for (uint32_t i = 0; i < a->nattrs; i++)
		if (strcmp(a->attrs[i].name, b->attrs[i].name) != 0 ||
		    strcmp(a->attrs[i].value, b->attrs[i].value) != 0)
			return false;
	return true;
}

/* Same elements and attributes in the same order. Comments and places in a file do not count.
 * At most TTI_XML_DEPTH deep. */
static inline bool xml_same(const struct tti_xml *a, const struct tti_xml *b)
{
	if (strcmp(a->name, b->name) != 0 || !xml_same_attrs(a, b))
		return false;
	a = tti_xml_find(a, NULL, NULL, NULL);
	b = tti_xml_find(b, NULL, NULL, NULL);
	while (a && b && xml_same(a, b)) {
		a = tti_xml_next(a, NULL);
		b = tti_xml_next(b, NULL);
	}
	return !a && !b;
}

#endif
