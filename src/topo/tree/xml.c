/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/xml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* -- Strings ---------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at `text` that XML 1.0 allows; 0: none such. */
static size_t char_bytes(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	const size_t n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	uint32_t code = at[0];

	if (n == 1)
		return code >= 0x20 || code == '\t' || code == '\n' || code == '\r';
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	code &= 0xffu >> (n + 1);
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3fu);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code <= 0xdfff) || code == 0xfffe || code == 0xffff)
		return 0;
	return n;
}

void tti_xml_make_legal(char *text)
{
	while (*text) {
		const size_t n = char_bytes(text);

		if (n == 0)
			*text = '?';
		text += n ? n : 1;
	}
}

/* -- Documents -------------------------------------------------------------------- */

/* A copy of a name that is shared, until another name of the same hash comes. */
static const char *keep_name(struct tti_xml_doc *doc, const char *name)
{
	const char **slot = &doc->names[tti_hash_bytes(name, strlen(name)) % TTI_XML_NAMES];

	if (!*slot || strcmp(*slot, name) != 0)
		*slot = tti_arena_strdup(&doc->arena, name);
	return *slot;
}

static struct tti_xml *new_node(struct tti_xml_doc *doc, const char *name, const char *comment)
{
	struct tti_xml *node = tti_arena_alloc(&doc->arena, sizeof(*node));

	if (!node)
		return NULL;
	if (name)
		node->name = keep_name(doc, name);
	else
		node->comment = tti_arena_strdup(&doc->arena, comment);
	return node->name || node->comment ? node : NULL;
}

static struct tti_xml_doc *new_doc(const char *source)
{
	struct tti_xml_doc *doc = tti_zalloc(sizeof(*doc));

	if (!doc)
		return NULL;
	doc->source = tti_arena_strdup(&doc->arena, source);
	if (doc->source)
		return doc;
	tti_xml_free(doc);
	return NULL;
}

tutti_status tti_xml_create(const char *source, struct tti_xml_doc **out)
{
	struct tti_xml_doc *doc = new_doc(source);

	if (!doc)
		return tti_fail(TUTTI_ENOMEM, "a topology of %s: out of memory", source);
	doc->root = new_node(doc, "system", NULL);
	if (!doc->root || !tti_xml_set(doc, doc->root, "version", "1")) {
		tti_xml_free(doc);
		return tti_fail(TUTTI_ENOMEM, "a topology of %s: out of memory", source);
	}
	*out = doc;
	return TUTTI_OK;
}

void tti_xml_free(struct tti_xml_doc *doc)
{
	if (!doc)
		return;
	tti_arena_release(&doc->arena);
	tti_free(doc);
}

bool tti_xml_reserve_attrs(struct tti_xml_doc *doc, struct tti_xml *node, uint32_t n)
{
	node->attrs = tti_arena_alloc(&doc->arena, n * sizeof(*node->attrs));
	node->room = node->attrs ? n : 0;
	return node->attrs;
}

/* -- Copies ----------------------------------------------------------------------- */

/* A node alone: no parent, no children. */
static struct tti_xml *copy_node(struct tti_xml_doc *doc, const struct tti_xml *from)
{
	struct tti_xml *node = new_node(doc, from->name, from->comment);

	if (!node || from->nattrs == 0)
		return node;
	if (!tti_xml_reserve_attrs(doc, node, from->nattrs))
		return NULL;
	for (; node->nattrs < from->nattrs; node->nattrs++) {
		struct tti_xml_attr *attr = &node->attrs[node->nattrs];

		attr->name = keep_name(doc, from->attrs[node->nattrs].name);
		attr->value = tti_arena_strdup(&doc->arena, from->attrs[node->nattrs].value);
		if (!attr->name || !attr->value)
			return NULL;
	}
	return node;
}

static void append(struct tti_xml *node, struct tti_xml *parent)
{
	node->parent = parent;
	node->next = NULL;
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
}

/* Copy a node and all below it; `places`: with line and column. Not by recursion: a tree that
 * was built, not read, may be of any depth. */
static struct tti_xml *copy_tree(struct tti_xml_doc *doc, const struct tti_xml *from, bool places)
{
	struct tti_xml *top = copy_node(doc, from), *to = top;
	const struct tti_xml *at = from;

	while (to) {
		to->line = places ? at->line : 0;
		to->column = places ? at->column : 0;
		if (at->first) {
			struct tti_xml *child = copy_node(doc, at->first);

			if (child)
				append(child, to);
			at = at->first;
			to = child;
			continue;
		}
		while (at != from && !at->next) {
			at = at->parent;
			to = to->parent;
		}
		if (at == from)
			return top;
		at = at->next;
		to = to->parent;
		struct tti_xml *sibling = copy_node(doc, at);

		if (sibling)
			append(sibling, to);
		to = sibling;
	}
	return NULL;
}

/* The comments around the root: a chain without a parent. */
static bool copy_chain(struct tti_xml_doc *doc, const struct tti_xml *from, struct tti_xml **to)
{
	for (; from; from = from->next, to = &(*to)->next) {
		*to = copy_node(doc, from);
		if (!*to)
			return false;
		(*to)->line = from->line;
		(*to)->column = from->column;
	}
	return true;
}

tutti_status tti_xml_copy(const struct tti_xml_doc *doc, struct tti_xml_doc **out)
{
	struct tti_xml_doc *copy = new_doc(doc->source);

	if (copy)
		copy->root = copy_tree(copy, doc->root, true);
	if (!copy || !copy->root || !copy_chain(copy, doc->prolog, &copy->prolog) ||
	    !copy_chain(copy, doc->root->next, &copy->root->next)) {
		tti_xml_free(copy);
		return tti_fail(TUTTI_ENOMEM, "a copy of %s: out of memory", doc->source);
	}
	*out = copy;
	return TUTTI_OK;
}

/* -- Building --------------------------------------------------------------------- */

static struct tti_xml *add(struct tti_xml *node, struct tti_xml *parent)
{
	if (node && parent)
		append(node, parent);
	return node;
}

struct tti_xml *tti_xml_add(struct tti_xml_doc *doc, struct tti_xml *parent, const char *name)
{
	return add(new_node(doc, name, NULL), parent);
}

struct tti_xml *tti_xml_add_comment(struct tti_xml_doc *doc, struct tti_xml *parent,
				    const char *comment)
{
	return add(new_node(doc, NULL, comment), parent);
}

struct tti_xml *tti_xml_add_copy(struct tti_xml_doc *doc, struct tti_xml *parent,
				 const struct tti_xml *from)
{
	return add(copy_tree(doc, from, false), parent);
}

bool tti_xml_append_attr(struct tti_xml_doc *doc, struct tti_xml *node, const char *name,
			 const char *value)
{
	if (node->nattrs == node->room) {
		const uint32_t room = node->room ? 2 * node->room : 8;
		struct tti_xml_attr *attrs =
			tti_arena_alloc(&doc->arena, room * sizeof(*node->attrs));

		if (!attrs)
			return false;
		if (node->nattrs)
			memcpy(attrs, node->attrs, node->nattrs * sizeof(*attrs));
		node->attrs = attrs;
		node->room = room;
	}
	name = keep_name(doc, name);
	value = tti_arena_strdup(&doc->arena, value);
	if (!name || !value)
		return false;
	node->attrs[node->nattrs++] = (struct tti_xml_attr){ name, value };
	return true;
}

static struct tti_xml_attr *find_attr(const struct tti_xml *node, const char *name)
{
	for (uint32_t i = 0; i < node->nattrs; i++)
		if (strcmp(node->attrs[i].name, name) == 0)
			return &node->attrs[i];
	return NULL;
}

/* `value` is the document's already. */
static bool set_owned(struct tti_xml_doc *doc, struct tti_xml *node, const char *name, char *value)
{
	struct tti_xml_attr *attr = find_attr(node, name);

	if (!value)
		return false;
	tti_xml_make_legal(value);
	if (!attr) {
		if (!tti_xml_append_attr(doc, node, name, ""))
			return false;
		attr = &node->attrs[node->nattrs - 1];
	}
	attr->value = value;
	return true;
}

bool tti_xml_set(struct tti_xml_doc *doc, struct tti_xml *node, const char *name, const char *value)
{
	return set_owned(doc, node, name, tti_arena_strdup(&doc->arena, value));
}

bool tti_xml_setf(struct tti_xml_doc *doc, struct tti_xml *node, const char *name, const char *fmt,
		  ...)
{
	char *value = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len >= 0)
		value = tti_arena_alloc_aligned(&doc->arena, 1, (size_t)len + 1);
	if (!value)
		return false;
	va_start(args, fmt);
	vsnprintf(value, (size_t)len + 1, fmt, args);
	va_end(args);
	return set_owned(doc, node, name, value);
}

void tti_xml_unlink(struct tti_xml *node)
{
	struct tti_xml *parent = node->parent, *before = NULL;

	if (!parent)
		return;
	for (struct tti_xml *at = parent->first; at != node; at = at->next)
		before = at;
	if (before)
		before->next = node->next;
	else
		parent->first = node->next;
	if (parent->last == node)
		parent->last = before;
	node->parent = node->next = NULL;
}

/* -- Looking ---------------------------------------------------------------------- */

const char *tti_xml_get(const struct tti_xml *node, const char *attr)
{
	const struct tti_xml_attr *found = find_attr(node, attr);

	return found ? found->value : NULL;
}

bool tti_xml_is(const struct tti_xml *node, const char *name)
{
	return node->name && strcmp(node->name, name) == 0;
}

/* `node` or the first after it that is an element of that name. */
static struct tti_xml *element_from(struct tti_xml *node, const char *name)
{
	while (node && (name ? !tti_xml_is(node, name) : !node->name))
		node = node->next;
	return node;
}

struct tti_xml *tti_xml_next(const struct tti_xml *node, const char *name)
{
	return element_from(node->next, name);
}

struct tti_xml *tti_xml_find(const struct tti_xml *node, const char *name, const char *attr,
			     const char *value)
{
	struct tti_xml *child = element_from(node->first, name);

	while (child && attr) {
		const char *have = tti_xml_get(child, attr);

		if (have && strcmp(have, value) == 0)
			break;
		child = tti_xml_next(child, name);
	}
	return child;
}

struct tti_xml *tti_xml_walk(const struct tti_xml *node)
{
	struct tti_xml *next = element_from(node->first, NULL);

	while (!next && node->parent) {
		next = tti_xml_next(node, NULL);
		node = node->parent;
	}
	return next;
}

uint32_t tti_xml_depth(const struct tti_xml *node)
{
	const struct tti_xml *next;
	uint32_t depth = 1, most = 1;

	/* Not by recursion: a tree that was built, not read, may be of any depth. */
	for (;;) {
		next = element_from(node->first, NULL);
		if (next) {
			depth++;
			most = depth > most ? depth : most;
		}
		while (!next && depth > 1) {
			next = tti_xml_next(node, NULL);
			if (!next) {
				node = node->parent;
				depth--;
			}
		}
		if (!next)
			return most;
		node = next;
	}
}
