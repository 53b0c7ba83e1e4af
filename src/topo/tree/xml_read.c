/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads text into a tree of elements, with expat. */
#include "topo/tree/xml.h"

#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/error.h"
#include "util/mem.h"

struct reader {
	XML_Parser parser;
	struct tti_xml_doc *doc;
	struct tti_xml *at;    /* the innermost open element, NULL: none         */
	struct tti_xml **tail; /* where the next comment outside the root goes   */
	uint32_t depth;
	tutti_status st;
};

/* End reading; expat may call a few handlers more. */
static void stop(struct reader *reader, tutti_status st)
{
	reader->st = st;
	XML_StopParser(reader->parser, XML_FALSE);
}

/* The reason is `skip` characters behind the place of the parser. */
TUTTI_PRINTF(3, 4) static void refuse(struct reader *reader, int skip, const char *fmt, ...)
{
	const unsigned long line = XML_GetCurrentLineNumber(reader->parser);
	const unsigned long column = XML_GetCurrentColumnNumber(reader->parser) + 1;
	char reason[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	tti_xml_make_legal(reason);
	stop(reader, tti_fail(TUTTI_EINVAL, "%s:%lu:%lu: %s", reader->doc->source, line,
			      column + (unsigned long)skip, reason));
}

static void no_memory(struct reader *reader)
{
	stop(reader, tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", reader->doc->source));
}

static void set_place(struct reader *reader, struct tti_xml *node)
{
	node->line = (uint32_t)XML_GetCurrentLineNumber(reader->parser);
	node->column = (uint32_t)XML_GetCurrentColumnNumber(reader->parser) + 1;
}

static void on_start(void *data, const XML_Char *name, const XML_Char **attrs)
{
	struct reader *reader = data;
	struct tti_xml *node;
	uint32_t nattrs = 0;

	if (reader->st != TUTTI_OK)
		return;
	if (reader->depth == TTI_XML_DEPTH) {
		refuse(reader, 0, "elements are nested deeper than %d", TTI_XML_DEPTH);
		return;
	}
	node = tti_xml_add(reader->doc, reader->at, name);
	if (!node) {
		no_memory(reader);
		return;
	}
	set_place(reader, node);
	while (attrs[2 * nattrs])
		nattrs++;
	if (nattrs && !tti_xml_reserve_attrs(reader->doc, node, nattrs)) {
		no_memory(reader);
		return;
	}
	/* expat refuses two attributes of one name. */
	for (; *attrs; attrs += 2)
		if (!tti_xml_append_attr(reader->doc, node, attrs[0], attrs[1])) {
			no_memory(reader);
			return;
		}
	if (!reader->at) {
		reader->doc->root = node;
		reader->tail = &node->next;
	}
	reader->at = node;
	reader->depth++;
}

static void on_end(void *data, const XML_Char *name)
{
	struct reader *reader = data;

	(void)name;
	if (reader->st != TUTTI_OK)
		return;
	reader->at = reader->at->parent;
	reader->depth--;
}

static void on_comment(void *data, const XML_Char *text)
{
	struct reader *reader = data;
	struct tti_xml *node;

	if (reader->st != TUTTI_OK)
		return;
	node = tti_xml_add_comment(reader->doc, reader->at, text);
	if (!node) {
		no_memory(reader);
		return;
	}
	set_place(reader, node);
	if (!reader->at) {
		*reader->tail = node;
		reader->tail = &node->next;
	}
}

static void on_text(void *data, const XML_Char *text, int len)
{
	struct reader *reader = data;

	if (reader->st != TUTTI_OK)
		return;
	for (int i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i])) {
			refuse(reader, i,
			       "text inside <%.64s>: only elements and comments are read",
			       reader->at->name);
			return;
		}
}

static void on_doctype(void *data, const XML_Char *name, const XML_Char *system_id,
		       const XML_Char *public_id, int has_subset)
{
	struct reader *reader = data;

	(void)system_id;
	(void)public_id;
	(void)has_subset;
	if (reader->st == TUTTI_OK)
		refuse(reader, 0, "<!DOCTYPE %.64s> is not read: remove it", name);
}

static void on_instruction(void *data, const XML_Char *target, const XML_Char *text)
{
	struct reader *reader = data;

	(void)text;
	if (reader->st == TUTTI_OK)
		refuse(reader, 0, "<?%.64s?>: processing instructions are not read: remove it",
		       target);
}

static void on_declaration(void *data, const XML_Char *version, const XML_Char *encoding,
			   int standalone)
{
	struct reader *reader = data;

	(void)version;
	(void)standalone;
	if (reader->st == TUTTI_OK && encoding && strcasecmp(encoding, "UTF-8") != 0 &&
	    strcasecmp(encoding, "US-ASCII") != 0)
		refuse(reader, 0, "encoding \"%.64s\": save it as UTF-8", encoding);
}

static tutti_status explain(struct reader *reader)
{
	const char *source = reader->doc->source;
	const unsigned long line = XML_GetCurrentLineNumber(reader->parser);
	const unsigned long column = XML_GetCurrentColumnNumber(reader->parser) + 1;
	const enum XML_Error error = XML_GetErrorCode(reader->parser);
	const struct tti_xml *open = reader->at;

	if (reader->st != TUTTI_OK)
		return reader->st;
	if (error == XML_ERROR_NO_MEMORY)
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", source);
	if (open)
		return tti_fail(TUTTI_EINVAL, "%s:%lu:%lu: %s; <%.64s> of line %u is open", source,
				line, column, XML_ErrorString(error), open->name, open->line);
	return tti_fail(TUTTI_EINVAL, "%s:%lu:%lu: %s", source, line, column,
			XML_ErrorString(error));
}

static tutti_status parse(struct reader *reader, const char *text, size_t nbytes)
{
	static const XML_Memory_Handling_Suite memory = { tti_alloc, tti_realloc, tti_free };
	tutti_status st = TUTTI_OK;

	reader->parser = XML_ParserCreate_MM("UTF-8", &memory, NULL);
	if (!reader->parser)
		return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", reader->doc->source);
	XML_SetUserData(reader->parser, reader);
	XML_SetElementHandler(reader->parser, on_start, on_end);
	XML_SetCommentHandler(reader->parser, on_comment);
	XML_SetCharacterDataHandler(reader->parser, on_text);
	XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
	XML_SetProcessingInstructionHandler(reader->parser, on_instruction);
	XML_SetXmlDeclHandler(reader->parser, on_declaration);
	if (XML_Parse(reader->parser, text, (int)nbytes, XML_TRUE) != XML_STATUS_OK)
		st = explain(reader);
	XML_ParserFree(reader->parser);
	return st;
}

/* Checks before parsing whose reasons are better than those of the parser. */
static tutti_status look(const char *text, size_t nbytes, const char *source)
{
	const char *nul;
	size_t line = 1, column = 1;

	if (nbytes > TTI_XML_BYTES)
		return tti_fail(TUTTI_EINVAL, "%s:1:1: larger than %d MiB", source,
				TTI_XML_BYTES >> 20);
	if (nbytes == 0)
		return tti_fail(TUTTI_EINVAL, "%s:1:1: empty", source);
	if (nbytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return tti_fail(TUTTI_EINVAL, "%s:1:1: encoded as UTF-16: save it as UTF-8",
				source);
	nul = memchr(text, '\0', nbytes);
	if (!nul)
		return TUTTI_OK;
	for (; text < nul; text++, column++)
		if (*text == '\n') {
			line++;
			column = 0;
		}
	return tti_fail(TUTTI_EINVAL,
			"%s:%zu:%zu: a NUL byte: not UTF-8 text, or damaged: copy it again", source,
			line, column);
}

/* The text of the first comment from `at` on that XML does not allow, with a `-` before
 * another one or before the end; NULL: none. Values do not contain `<`, so this does not find
 * one in a value. */
static const char *find_dashes(const char *at, const char *end, size_t *len_out)
{
	const char *close;

	while ((at = memmem(at, (size_t)(end - at), "<!--", 4)) != NULL) {
		at += 4;
		close = memmem(at, (size_t)(end - at), "-->", 3);
		if (!close)
			return NULL;
		*len_out = (size_t)(close - at);
		if (memmem(at, *len_out + 1, "--", 2))
			return at;
		at = close + 3;
	}
	return NULL;
}

/* NCCL accepts any comment, and files of AMD draw lines in theirs. Such runs of `-` become
 * `=`. *out is a copy; NULL: the text has none. */
static tutti_status mend_comments(const char *text, size_t nbytes, const char *source, char **out)
{
	const char *end = text + nbytes, *at;
	size_t len;

	*out = NULL;
	for (at = text; (at = find_dashes(at, end, &len)) != NULL; at += len) {
		if (!*out) {
			*out = tti_alloc(nbytes);
			if (!*out)
				return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", source);
			memcpy(*out, text, nbytes);
		}
		for (size_t i = 0; i < len; i++)
			if (at[i] == '-' && (at[i + 1] == '-' || (i > 0 && at[i - 1] == '-')))
				(*out)[at + i - text] = '=';
	}
	return TUTTI_OK;
}

tutti_status tti_xml_read(const char *text, size_t nbytes, const char *source,
			  struct tti_xml_doc **out)
{
	struct reader reader = { 0 };
	tutti_status st;
	char *mended;

	TTI_TRY(look(text, nbytes, source));
	TTI_TRY(mend_comments(text, nbytes, source, &mended));
	st = tti_xml_create(source, &reader.doc);
	if (st != TUTTI_OK) {
		tti_free(mended);
		return st;
	}
	reader.doc->root = NULL;
	reader.tail = &reader.doc->prolog;
	st = parse(&reader, mended ? mended : text, nbytes);
	tti_free(mended);
	if (st == TUTTI_OK)
		*out = reader.doc;
	else
		tti_xml_free(reader.doc);
	return st;
}
