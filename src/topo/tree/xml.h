/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_XML_H
#define TTI_TOPO_XML_H

/* A topology as a tree of elements: the format that NCCL writes and clouds
 * ship (<system><cpu><pci><gpu|nic><net|nvlink>, version 1, AMD's version 2).
 * Detection makes the same tree, so a file and a machine are one thing to all
 * that follows. Elements and attributes that nobody knows, and comments, are
 * kept in their place and written back.
 *
 * Owner: a document owns all its elements and strings; tti_xml_free() ends
 * them. Strings passed in are copied.
 * Threads: not synchronised; a document that nobody changes may be read by all. */

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
	/* By hash, of elements and attributes: a document has few, and very often. */
	const char *names[TTI_XML_NAMES];
};

/* An empty document: <system version="1">. */
TUTTI_CHECKED tutti_status tti_xml_create(const char *source, struct tti_xml_doc **out);
void tti_xml_free(struct tti_xml_doc *doc);

/* Read and check well-formedness, and what keeps an input bounded: no entity
 * is expanded but the five of XML, UTF-8, at most TTI_XML_BYTES, nesting of at
 * most TTI_XML_DEPTH, text between elements is white space. TUTTI_EINVAL, as "FILE:LINE:COLUMN: reason".
 * The result is not yet checked against the format (schema.h). */
#define TTI_XML_DEPTH 512
#define TTI_XML_BYTES (64 << 20)
TUTTI_CHECKED tutti_status tti_xml_read(const char *text, size_t nbytes, const char *source,
					struct tti_xml_doc **out);
TUTTI_CHECKED tutti_status tti_xml_read_file(const char *path, struct tti_xml_doc **out);

/* Two blanks a level, attributes in order, <x/> without children. What is
 * written reads as the same document; writing that gives the same bytes. */
void tti_xml_write(const struct tti_xml_doc *doc, struct tti_strbuf *out);
/* The whole file or none of it: a temporary one beside it that is renamed. A path
 * that is there and is no regular file is refused; a symbolic link is followed. */
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
/* In the place it has, or as the last. What XML cannot hold becomes '?'. */
bool tti_xml_set(struct tti_xml_doc *doc, struct tti_xml *node, const char *name,
		 const char *value);
TUTTI_PRINTF(4, 5)
bool tti_xml_setf(struct tti_xml_doc *doc, struct tti_xml *node, const char *name, const char *fmt,
		  ...);
/* Room for just so many attributes, before the first. */
bool tti_xml_reserve_attrs(struct tti_xml_doc *doc, struct tti_xml *node, uint32_t n);
/* As the last, without a look at whether there is one of that name. */
bool tti_xml_append_attr(struct tti_xml_doc *doc, struct tti_xml *node, const char *name,
			 const char *value);
/* What no XML can hold, such as the bytes of a broken device name, becomes '?'. */
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
/* All elements in document order, from doc->root on: NULL at the end. */
struct tti_xml *tti_xml_walk(const struct tti_xml *node);
/* Elements on the longest way down from this one, itself counted. */
uint32_t tti_xml_depth(const struct tti_xml *node);
/* The next sibling that is an element called `name` (NULL: any). */
struct tti_xml *tti_xml_next(const struct tti_xml *node, const char *name);

/* Fail with TUTTI_EINVAL as "FILE:LINE:COLUMN: <pci busid="..">: reason". */
TUTTI_CHECKED TUTTI_PRINTF(3, 4) tutti_status
	tti_xml_fail(const struct tti_xml_doc *doc, const struct tti_xml *node, const char *fmt,
		     ...);

/* Digits, decimal or after 0x, to the end of the text; false: it is no such number. */
bool tti_xml_digits(const char *text, uint64_t *out);

/* Typed attributes. Absent or "": `missing`. Not that type or not in min..max: tti_xml_fail. */
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
