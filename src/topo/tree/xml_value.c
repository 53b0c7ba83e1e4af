/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed values of attributes, and errors that say where one is wrong. */
#include "topo/tree/xml.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

/* How much of a name or a value a message shows. */
#define SHOWN 64

/* The remedy for a wrong value. */
#define MEND ": correct it, or delete the attribute, which then counts as not known"

/* `text` cut to SHOWN bytes, not inside a character, and on one line. */
static const char *shown(const char *text, char buf[SHOWN + 4])
{
	size_t len = strnlen(text, SHOWN + 1);
	const bool cut = len > SHOWN;

	if (cut) {
		len = SHOWN;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
	memcpy(buf + len, cut ? "..." : "", cut ? 4 : 1);
	return buf;
}

/* The attribute that names an element; NULL: none. */
static const struct tti_xml_attr *label(const struct tti_xml *node)
{
	static const char *const known[] = { "busid", "name", "numaid", "target", "dev" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (uint32_t a = 0; a < node->nattrs; a++)
			if (strcmp(node->attrs[a].name, known[i]) == 0)
				return &node->attrs[a];
	return NULL;
}

tutti_status tti_xml_fail(const struct tti_xml_doc *doc, const struct tti_xml *node,
			  const char *fmt, ...)
{
	const struct tti_xml_attr *attr = label(node);
	char reason[512], place[32] = "", name[SHOWN + 4], value[SHOWN + 4];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	tti_xml_make_legal(reason); /* a value in it may be cut inside a character */
	if (node->line)
		snprintf(place, sizeof(place), ":%" PRIu32 ":%" PRIu32, node->line, node->column);
	shown(node->name ? node->name : "!--", name);
	if (!attr)
		return tti_fail(TUTTI_EINVAL, "%s%s: <%s>: %s", doc->source, place, name, reason);
	return tti_fail(TUTTI_EINVAL, "%s%s: <%s %s=\"%s\">: %s", doc->source, place, name,
			attr->name, shown(attr->value, value), reason);
}

/* The text of an attribute; NULL: it is absent, or empty, as dumps write what they did not
 * find. */
static const char *stated(const struct tti_xml *node, const char *attr)
{
	const char *text = tti_xml_get(node, attr);

	return text && text[0] ? text : NULL;
}

bool tti_xml_digits(const char *text, uint64_t *out)
{
	const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? "0123456789abcdefABCDEF" : "0123456789";

	/* strtoull would take signs, blanks and another 0x. */
	text += hex ? 2 : 0;
	if (text[0] == '\0' || text[strspn(text, digits)] != '\0')
		return false;
	errno = 0;
	*out = strtoull(text, NULL, hex ? 16 : 10);
	return errno == 0;
}

tutti_status tti_xml_int(const struct tti_xml_doc *doc, const struct tti_xml *node,
			 const char *attr, int64_t min, int64_t max, int64_t missing, int64_t *out)
{
	const char *text = stated(node, attr);
	const bool minus = text && text[0] == '-';
	char buf[SHOWN + 4];
	uint64_t digits;

	*out = missing;
	if (!text)
		return TUTTI_OK;
	if (!tti_xml_digits(text + minus, &digits) || digits > INT64_MAX)
		return tti_xml_fail(doc, node,
				    "%s=\"%s\" is not a number from %" PRId64 " to %" PRId64 MEND,
				    attr, shown(text, buf), min, max);
	*out = minus ? -(int64_t)digits : (int64_t)digits;
	if (*out < min || *out > max)
		return tti_xml_fail(doc, node,
				    "%s=\"%s\" is not within %" PRId64 " to %" PRId64 MEND, attr,
				    shown(text, buf), min, max);
	return TUTTI_OK;
}

tutti_status tti_xml_hex(const struct tti_xml_doc *doc, const struct tti_xml *node,
			 const char *attr, uint64_t max, uint64_t missing, uint64_t *out)
{
	const char *text = stated(node, attr);
	char buf[SHOWN + 4];

	*out = missing;
	if (!text)
		return TUTTI_OK;
	if (!tti_xml_digits(text, out) || *out > max)
		return tti_xml_fail(doc, node,
				    "%s=\"%s\" is not a number from 0 to 0x%" PRIx64 MEND, attr,
				    shown(text, buf), max);
	return TUTTI_OK;
}

/* A decimal number as C writes it: no blanks, no hexadecimal, no "inf". */
static bool parse_real(const char *text, double *out)
{
	char *end;

	if (text[strspn(text, "0123456789.eE+-")] != '\0')
		return false;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*out);
}

tutti_status tti_xml_real(const struct tti_xml_doc *doc, const struct tti_xml *node,
			  const char *attr, double max, double missing, double *out)
{
	const char *text = stated(node, attr);
	char buf[SHOWN + 4];

	*out = missing;
	if (!text)
		return TUTTI_OK;
	if (!parse_real(text, out) || *out < 0 || *out > max)
		return tti_xml_fail(doc, node, "%s=\"%s\" is not a number from 0 to %g" MEND, attr,
				    shown(text, buf), max);
	return TUTTI_OK;
}
