/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/canon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree/strip.h"
#include "util/error.h"
#include "util/mem.h"

struct piece {
	size_t at, nbytes;
};

struct tti_canon_work {
	TTI_VEC(struct piece) pieces;
	TTI_VEC(const struct tti_xml_attr *) attrs;
	TTI_VEC(char) sorted;
	struct tti_strip_hosts hosts;
};

static bool put(struct tti_canon *canon, const void *bytes, size_t nbytes)
{
	if (!tti_vec_reserve((void **)&canon->text.at, &canon->text.room, canon->text.n + nbytes,
			     1))
		return false;
	memcpy(canon->text.at + canon->text.n, bytes, nbytes);
	canon->text.n += nbytes;
	return true;
}

/* With its 0, which ends it: no string holds one. */
static bool put_text(struct tti_canon *canon, const char *text)
{
	return put(canon, text, strlen(text) + 1);
}

static bool put_host(struct tti_canon *canon, const struct tti_xml *cpu)
{
	const uint32_t host = tti_strip_host_of(&canon->work->hosts, cpu);
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, host);
	return host != TTI_INTERN_NONE && put_text(canon, "host_hash") && put_text(canon, number);
}

static int by_name(const void *a, const void *b)
{
	const struct tti_xml_attr *x = *(const struct tti_xml_attr *const *)a;
	const struct tti_xml_attr *y = *(const struct tti_xml_attr *const *)b;

	return strcmp(x->name, y->name);
}

static bool put_attrs(struct tti_canon *canon, const struct tti_xml *node,
		      enum tti_canon_order order)
{
	struct tti_canon_work *work = canon->work;

	if (work->hosts.several && tti_xml_is(node, "cpu") && !put_host(canon, node))
		return false;
	work->attrs.n = 0;
	for (uint32_t i = 0; i < node->nattrs; i++)
		if (!tti_strip_is_own(node, node->attrs[i].name) &&
		    !tti_vec_push(&work->attrs, &node->attrs[i]))
			return false;
	if (order == TTI_CANON_SORTED && work->attrs.n > 1)
		qsort(work->attrs.at, work->attrs.n, sizeof(*work->attrs.at), by_name);
	for (size_t i = 0; i < work->attrs.n; i++)
		if (!put_text(canon, work->attrs.at[i]->name) ||
		    !put_text(canon, work->attrs.at[i]->value))
			return false;
	return true;
}

static int by_bytes(const void *a, const void *b, void *text)
{
	const struct piece *x = a, *y = b;
	const size_t both = x->nbytes < y->nbytes ? x->nbytes : y->nbytes;
	const int order = memcmp((char *)text + x->at, (char *)text + y->at, both);

	return order ? order : (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

/* Bring the pieces from `first` on, which are the end of the text, into order. */
static bool sort_pieces(struct tti_canon *canon, size_t first)
{
	struct tti_canon_work *work = canon->work;
	struct piece *piece = work->pieces.at + first;
	const size_t n = work->pieces.n - first;
	bool sorted = true;
	size_t start, at = 0;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = by_bytes(&piece[i - 1], &piece[i], canon->text.at) <= 0;
	if (sorted)
		return true;
	start = piece[0].at;
	if (!tti_vec_reserve((void **)&work->sorted.at, &work->sorted.room, canon->text.n - start,
			     1))
		return false;
	qsort_r(piece, n, sizeof(*piece), by_bytes, canon->text.at);
	for (size_t i = 0; i < n; at += piece[i].nbytes, i++)
		memcpy(work->sorted.at + at, canon->text.at + piece[i].at, piece[i].nbytes);
	memcpy(canon->text.at + start, work->sorted.at, at);
	return true;
}

/* NAME ATTR VALUE ... 1 CHILD ... 2: no name begins with a 1 or a 2. */
static bool put_node(struct tti_canon *canon, const struct tti_xml *node,
		     enum tti_canon_order order)
{
	struct tti_canon_work *work = canon->work;
	const size_t first = work->pieces.n;

	if (!put_text(canon, node->name) || !put_attrs(canon, node, order) || !put(canon, "\1", 1))
		return false;
	for (const struct tti_xml *child = node->first; child; child = child->next) {
		struct piece piece = { .at = canon->text.n };

		if (!child->name)
			continue;
		if (!put_node(canon, child, order))
			return false;
		piece.nbytes = canon->text.n - piece.at;
		if (order == TTI_CANON_SORTED && !tti_vec_push(&work->pieces, piece))
			return false;
	}
	if (work->pieces.n > first && !sort_pieces(canon, first))
		return false;
	work->pieces.n = first;
	return put(canon, "\2", 1);
}

tutti_status tti_canon_write(struct tti_canon *canon, const struct tti_xml_doc *doc,
			     enum tti_canon_order order)
{
	bool good;

	if (!canon->work)
		canon->work = tti_zalloc(sizeof(*canon->work));
	if (!canon->work)
		return tti_fail(TUTTI_ENOMEM, "the canonical form of %s: out of memory",
				doc->source);
	canon->text.n = 0;
	canon->work->pieces.n = 0;
	tti_strip_hosts_init(&canon->work->hosts, doc);
	good = put_node(canon, doc->root, order);
	tti_strip_hosts_release(&canon->work->hosts);
	return good ? TUTTI_OK
		    : tti_fail(TUTTI_ENOMEM, "the canonical form of %s: out of memory",
			       doc->source);
}

void tti_canon_release(struct tti_canon *canon)
{
	tti_vec_release(&canon->text);
	if (canon->work) {
		tti_vec_release(&canon->work->pieces);
		tti_vec_release(&canon->work->attrs);
		tti_vec_release(&canon->work->sorted);
		tti_free(canon->work);
	}
	canon->work = NULL;
}
