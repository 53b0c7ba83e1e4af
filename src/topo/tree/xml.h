/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_XML_H
#define TTI_TOPO_TREE_XML_H

/* A topology as a tree of elements: the format that NCCL writes and clouds
 * ship (<system><cpu><pci><gpu|nic><net|nvlink>, version 1, AMD's version 2).
 * Detection makes the same tree, so all that follows need not tell a file from a machine.
 * Unknown elements and attributes, and comments, are kept in their place and written back.
 *
 * Owner: a document owns all its elements and strings; tti_xml_free() ends
 * them. Strings passed in are copied.
 * Threads: not synchronised; all threads may read a document that no thread changes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/tree/busid.h"
#include "tutti/status.h"
#include "util/arena.h"
#include "util/strbuf.h"

#define TTI_XML_NAMES 64

struct tti_xml_attr {
	const char *name, *value; /* value: entities resolved */
};

/* An element, or a comment: then `name` is NULL and `comment` its text. */
struct tti_xml {
	const char *name, *comment;
	struct tti_xml *parent, *first, *last, *next;
	struct tti_xml_attr *attrs; /* in the order of the file */
	uint32_t nattrs, room;
	uint32_t line, column; /* where it begins, from 1; 0: not from a file */
};

struct tti_xml_doc {
	struct tti_arena arena;
	struct tti_xml *root;   /* <system>; root->next: the comments behind it  */
	struct tti_xml *prolog; /* the comments before it, a chain through next  */
	const char *source;     /* "FILE", or "this machine": for messages       */
	/* Names of elements and attributes by hash: few names are there very often. */
	const char *names[TTI_XML_NAMES];
};

/* An empty document: <system version="1">. */
TUTTI_CHECKED tutti_status tti_xml_create(const char *source, struct tti_xml_doc **out);
void tti_xml_free(struct tti_xml_doc *doc);

/* Read UTF-8 text that is well-formed XML. What keeps an input bounded: no entities but the
 * five of XML, at most TTI_XML_BYTES, nested at most TTI_XML_DEPTH deep, nothing but white
 * space between elements. TUTTI_EINVAL, as "FILE:LINE:COLUMN: reason".
 * The result is not yet checked against the format (schema.h). */
#define TTI_XML_DEPTH 512
#define TTI_XML_BYTES (64 << 20)
TUTTI_CHECKED tutti_status tti_xml_read(const char *text, size_t nbytes, const char *source,
					struct tti_xml_doc **out);
TUTTI_CHECKED tutti_status tti_xml_read_file(const char *path, struct tti_xml_doc **out);

/* Two blanks a level, attributes in order, <x/> without children. Reading the text gives the
 * same document, and writing that gives the same bytes. */
void tti_xml_write(const struct tti_xml_doc *doc, struct tti_strbuf *out);
/* Write the whole file or none of it: a temporary file beside it is renamed. A path that exists
 * and is no regular file is refused; a symbolic link is followed. */
TUTTI_CHECKED tutti_status tti_xml_write_file(const struct tti_xml_doc *doc, const char *path);

/* A copy of a document. */
TUTTI_CHECKED tutti_status tti_xml_copy(const struct tti_xml_doc *doc, struct tti_xml_doc **out);

/* -- Building: NULL or false when out of memory, nothing changed then ------------- */

/* A new last child; parent NULL: left to the caller to link. */
struct tti_xml *tti_xml_add(struct tti_xml_doc *doc, struct tti_xml *parent, const char *name);
/* A copy of `from` (with all below it) as the last child of `parent`. */
struct tti_xml *tti_xml_add_copy(struct tti_xml_doc *doc, struct tti_xml *parent,
				 const struct tti_xml *from);
/* A comment, likewise. */
struct tti_xml *tti_xml_add_comment(struct tti_xml_doc *doc, struct tti_xml *parent,
				    const char *comment);
/* Set an attribute, in the place that it has or as the last. What XML cannot hold becomes '?'. */
bool tti_xml_set(struct tti_xml_doc *doc, struct tti_xml *node, const char *name,
		 const char *value);
TUTTI_PRINTF(4, 5)
bool tti_xml_setf(struct tti_xml_doc *doc, struct tti_xml *node, const char *name, const char *fmt,
		  ...);
/* Room for just so many attributes, before the first. */
bool tti_xml_reserve_attrs(struct tti_xml_doc *doc, struct tti_xml *node, uint32_t n);
/* Add an attribute as the last, without a look for one of that name. */
bool tti_xml_append_attr(struct tti_xml_doc *doc, struct tti_xml *node, const char *name,
			 const char *value);
/* Bytes that XML cannot hold, such as those of a broken device name, become '?'. */
void tti_xml_make_legal(char *text);
/* Take a node out of its parent (its memory stays the document's). */
void tti_xml_unlink(struct tti_xml *node);

/* -- Looking ---------------------------------------------------------------------- */

/* NULL: not there. */
const char *tti_xml_get(const struct tti_xml *node, const char *attr);
bool tti_xml_is(const struct tti_xml *node, const char *name);
/* The first child of that name (NULL: any element) with attr = value (attr NULL: any). */
struct tti_xml *tti_xml_find(const struct tti_xml *node, const char *name, const char *attr,
			     const char *value);
/* The element after this one in document order; NULL at the end. */
struct tti_xml *tti_xml_walk(const struct tti_xml *node);
/* How deep the tree below this element is, with the element itself. */
uint32_t tti_xml_depth(const struct tti_xml *node);
/* The next sibling that is an element called `name` (NULL: any). */
struct tti_xml *tti_xml_next(const struct tti_xml *node, const char *name);

/* Fail with TUTTI_EINVAL as "FILE:LINE:COLUMN: <pci busid="..">: reason". */
TUTTI_CHECKED TUTTI_PRINTF(3, 4) tutti_status
	tti_xml_fail(const struct tti_xml_doc *doc, const struct tti_xml *node, const char *fmt,
		     ...);

/* A text that is decimal digits, or hexadecimal ones after 0x; false: it is not. */
bool tti_xml_digits(const char *text, uint64_t *out);

/* Typed attributes. An absent or empty one gives `missing`. One that is not of the type, or not
 * in min..max, fails as tti_xml_fail(). */
TUTTI_CHECKED tutti_status tti_xml_int(const struct tti_xml_doc *doc, const struct tti_xml *node,
				       const char *attr, int64_t min, int64_t max, int64_t missing,
				       int64_t *out);
/* "0x1a" or decimal. */
TUTTI_CHECKED tutti_status tti_xml_hex(const struct tti_xml_doc *doc, const struct tti_xml *node,
				       const char *attr, uint64_t max, uint64_t missing,
				       uint64_t *out);
/* Finite and not negative. */
TUTTI_CHECKED tutti_status tti_xml_real(const struct tti_xml_doc *doc, const struct tti_xml *node,
					const char *attr, double max, double missing, double *out);

#endif
