/* SPDX-License-Identifier: BSD-3-Clause */
/* From a tree of elements to text and files. */
#include "topo/xml.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/mem.h"

/* Deeper levels are not indented further: the text stays in proportion to the tree. */
#define INDENT_MOST 24

static void indent(size_t depth, struct tti_strbuf *out)
{
	static const char blanks[] = "                                                ";
	const size_t n = 2 * (depth < INDENT_MOST ? depth : INDENT_MOST);

	_Static_assert(sizeof(blanks) == 2 * INDENT_MOST + 1, "two a level");
	tti_strbuf_add(out, blanks + 2 * INDENT_MOST - n);
}

static const char *escape_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\n':
		return "&#10;";
	case '\r':
		return "&#13;";
	default:
		return "&#9;";
	}
}

/* White space other than blanks would be read as blanks. */
static void write_value(const char *value, struct tti_strbuf *out)
{
	for (;;) {
		const size_t plain = strcspn(value, "&<>\"\n\r\t");

		if (value[plain] == '\0') {
			tti_strbuf_add(out, value);
			return;
		}
		if (plain)
			tti_strbuf_addf(out, "%.*s", (int)plain, value);
		tti_strbuf_add(out, escape_of(value[plain]));
		value += plain + 1;
	}
}

/* The start of a node: the whole of a comment or of an element without children. */
static void open_node(const struct tti_xml *node, size_t depth, struct tti_strbuf *out)
{
	indent(depth, out);
	if (!node->name) {
		tti_strbuf_add(out, "<!--");
		tti_strbuf_add(out, node->comment);
		tti_strbuf_add(out, "-->\n");
		return;
	}
	tti_strbuf_add(out, "<");
	tti_strbuf_add(out, node->name);
	for (uint32_t i = 0; i < node->nattrs; i++) {
		tti_strbuf_add(out, " ");
		tti_strbuf_add(out, node->attrs[i].name);
		tti_strbuf_add(out, "=\"");
		write_value(node->attrs[i].value, out);
		tti_strbuf_add(out, "\"");
	}
	tti_strbuf_add(out, node->first ? ">\n" : "/>\n");
}

static void close_node(const struct tti_xml *node, size_t depth, struct tti_strbuf *out)
{
	indent(depth, out);
	tti_strbuf_add(out, "</");
	tti_strbuf_add(out, node->name);
	tti_strbuf_add(out, ">\n");
}

void tti_xml_write(const struct tti_xml_doc *doc, struct tti_strbuf *out)
{
	const struct tti_xml *at = doc->root;
	size_t depth = 0;

	for (const struct tti_xml *comment = doc->prolog; comment; comment = comment->next)
		open_node(comment, 0, out);
	while (at) {
		open_node(at, depth, out);
		if (at->first) {
			at = at->first;
			depth++;
			continue;
		}
		while (!at->next && at->parent) {
			at = at->parent;
			close_node(at, --depth, out);
		}
		at = at->next;
	}
}

/* -- Files ------------------------------------------------------------------------ */

static tutti_status write_all(int fd, const char *text, size_t nbytes, const char *path)
{
	while (nbytes > 0) {
		const ssize_t n = write(fd, text, nbytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tti_fail(TUTTI_ESYS, "write %s: %m", path);
		text += n;
		nbytes -= (size_t)n;
	}
	return TUTTI_OK;
}

/* A name beside `path` that no other process or host has, freed with tti_free(). */
static char *name_beside(const char *path)
{
	struct tti_strbuf name = { 0 };
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (uint64_t)getpid();
	tti_strbuf_addf(&name, "%s.%016" PRIx64, path, number);
	return tti_strbuf_take(&name);
}

static tutti_status replace(const char *path, const char *text, size_t nbytes)
{
	char *beside = name_beside(path);
	tutti_status st;
	int fd = -1;

	if (!beside)
		return tti_fail(TUTTI_ENOMEM, "writing %s: out of memory", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		st = tti_fail(TUTTI_ESYS, "create %s: %m", beside);
		goto done;
	}
	st = write_all(fd, text, nbytes, beside);
	if (close(fd) < 0 && st == TUTTI_OK)
		st = tti_fail(TUTTI_ESYS, "write %s: %m", beside);
	if (st == TUTTI_OK && rename(beside, path) < 0)
		st = tti_fail(TUTTI_ESYS, "rename %s to %s: %m", beside, path);
	if (st != TUTTI_OK)
		unlink(beside);

done:
	tti_free(beside);
	return st;
}

tutti_status tti_xml_write_file(const struct tti_xml_doc *doc, const char *path)
{
	char *real = realpath(path, NULL);
	const char *target = real ? real : path;
	struct tti_strbuf text = { 0 };
	struct stat info;
	tutti_status st;

	tti_xml_write(doc, &text);
	if (text.failed)
		st = tti_fail(TUTTI_ENOMEM, "writing %s: out of memory", path);
	else if (real && stat(real, &info) == 0 && !S_ISREG(info.st_mode))
		st = tti_fail(TUTTI_EINVAL, "%s is not a regular file: name one to write to", path);
	else
		st = replace(target, text.text, text.len);
	tti_strbuf_release(&text);
	free(real);
	return st;
}
