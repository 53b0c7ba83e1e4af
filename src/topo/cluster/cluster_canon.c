/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/cluster/cluster_canon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"

/* What is a host's own: who it is, how its parts are called in the world, where its
 * cables end, what was measured; and how much memory a node has, which firmware makes a
 * little different from boot to boot. */
static const char *const own_attrs[] = {
	"guid",         "host_hash",     "rank",         "serial",
	"uuid",         "tutti_fabric",  "tutti_host",   "tutti_mac",
	"tutti_mem_ns", "tutti_mem_mib", "tutti_path",   "tutti_mem_gbps",
	"tutti_serial", "tutti_subnet",  "tutti_switch", "tutti_uuid",
};

struct piece {
	size_t at, nbytes;
};

struct tti_canon_work {
	TTI_VEC(struct piece) pieces;
	TTI_VEC(const struct tti_xml_attr *) attrs;
	TTI_VEC(char) sorted;
	struct tti_canon_hosts hosts;
};

/* -- Hosts of a document ------------------------------------------------------------ */

/* Whether its CPUs are of several hosts: only then host_hash says something. It is a
 * number, which one file may hold in several words. */
static bool has_several(const struct tti_xml_doc *doc)
{
	const struct tti_xml *first = tti_xml_find(doc->root, "cpu", NULL, NULL);
	const uint64_t hash = first ? tti_schema_host(first) : 0;

	for (const struct tti_xml *cpu = first; cpu; cpu = tti_xml_next(cpu, "cpu"))
		if (tti_schema_host(cpu) != hash)
			return true;
	return false;
}

void tti_canon_hosts_init(struct tti_canon_hosts *hosts, const struct tti_xml_doc *doc)
{
	*hosts = (struct tti_canon_hosts){ .several = has_several(doc) };
}

void tti_canon_hosts_release(struct tti_canon_hosts *hosts)
{
	tti_intern_release(&hosts->seen);
}

uint32_t tti_canon_host_of(struct tti_canon_hosts *hosts, const struct tti_xml *cpu)
{
	const uint64_t hash = hosts->several ? tti_schema_host(cpu) : 0;

	return tti_intern(&hosts->seen, &hash, sizeof(hash));
}

/* -- As bytes ------------------------------------------------------------------------ */

static bool is_own(const struct tti_xml *node, const char *attr)
{
	if (!node->parent) /* <system> may carry anything, of which the version counts */
		return strcmp(attr, "version") != 0;
	for (size_t i = 0; i < sizeof(own_attrs) / sizeof(own_attrs[0]); i++)
		if (own_attrs[i][0] == attr[0] && strcmp(own_attrs[i], attr) == 0)
			return true;
	return false;
}

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
	const uint32_t host = tti_canon_host_of(&canon->work->hosts, cpu);
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
		if (!is_own(node, node->attrs[i].name) &&
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
		return tti_fail(TUTTI_ENOMEM, "canonical form of %s", doc->source);
	canon->text.n = 0;
	canon->work->pieces.n = 0;
	tti_canon_hosts_init(&canon->work->hosts, doc);
	good = put_node(canon, doc->root, order);
	tti_canon_hosts_release(&canon->work->hosts);
	return good ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "canonical form of %s", doc->source);
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

/* -- As a document -------------------------------------------------------------------- */

/* Which host a CPU belongs to stays, as a number. */
static bool copy_attrs(struct tti_xml_doc *doc, struct tti_xml *to, const struct tti_xml *from,
		       struct tti_canon_hosts *hosts)
{
	if (hosts->several && tti_xml_is(from, "cpu")) {
		const uint32_t host = tti_canon_host_of(hosts, from);

		if (host == TTI_INTERN_NONE ||
		    !tti_xml_setf(doc, to, "host_hash", "0x%" PRIx32, host))
			return false;
	}
	for (uint32_t i = 0; i < from->nattrs; i++)
		if (!is_own(from, from->attrs[i].name) &&
		    !tti_xml_set(doc, to, from->attrs[i].name, from->attrs[i].value))
			return false;
	return true;
}

static bool copy_tree(struct tti_xml_doc *doc, struct tti_xml *to, const struct tti_xml *from,
		      struct tti_canon_hosts *hosts)
{
	to->line = from->line;
	to->column = from->column;
	if (!copy_attrs(doc, to, from, hosts))
		return false;
	for (const struct tti_xml *child = from->first; child; child = child->next) {
		struct tti_xml *copy;

		if (!child->name)
			continue;
		copy = tti_xml_add(doc, to, child->name);
		if (!copy || !copy_tree(doc, copy, child, hosts))
			return false;
	}
	return true;
}

tutti_status tti_canon_strip(const struct tti_xml_doc *doc, struct tti_xml_doc **out)
{
	struct tti_canon_hosts hosts;
	struct tti_xml_doc *copy;
	bool good;

	TTI_TRY(tti_xml_create(doc->source, &copy));
	tti_canon_hosts_init(&hosts, doc);
	good = copy_tree(copy, copy->root, doc->root, &hosts);
	tti_canon_hosts_release(&hosts);
	if (!good) {
		tti_xml_free(copy);
		return tti_fail(TUTTI_ENOMEM, "copy of %s", doc->source);
	}
	*out = copy;
	return TUTTI_OK;
}
