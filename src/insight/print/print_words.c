/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/print/print_words.h"

#include <stdio.h>

#include "util/error.h"

const char *tti_print_function(uint32_t class_code)
{
	return class_code >> 16 == 0x03 ? "display" : tti_words_class(class_code);
}

void tti_print_memory_size(int64_t mib, char buf[TTI_WORDS_MAX])
{
	static const char *const units[] = { "MiB", "GiB", "TiB" };
	double size = (double)mib;
	size_t unit = 0;

	for (; size >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
		size /= 1024;
	snprintf(buf, TTI_WORDS_MAX, "%.*f %s", unit && size < 1000 ? 1 : 0, size, units[unit]);
}

const char *tti_print_memory(const struct tti_cpu_info *cpu)
{
	if (cpu->mem_measured)
		return "measured";
	return cpu->mem_known ? "data sheet" : "estimate";
}

static const char *const sentences[] = {
#define X(name, text) text,
	TTI_ROUTE_WHY_MAP(X)
#undef X
};

const char *tti_print_route_why(enum tti_route_why why)
{
	return sentences[why];
}

size_t tti_print_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

tutti_status tti_print_take(tutti_status status, struct tti_strbuf *buf, const char *what,
			    char **out)
{
	char *text = status == TUTTI_OK ? tti_strbuf_take(buf) : NULL;

	tti_strbuf_release(buf);
	if (status != TUTTI_OK)
		return status;
	if (!text)
		return tti_fail(TUTTI_ENOMEM, "%s: out of memory", what);
	*out = text;
	return TUTTI_OK;
}

void tti_print_line(struct tti_strbuf *out, const char *fmt, va_list args)
{
	struct tti_strbuf line = { 0 };

	tti_strbuf_vaddf(&line, fmt, args);
	out->failed |= line.failed;
	if (line.text)
		tti_words_text(line.text, out);
	tti_strbuf_add(out, "\n");
	tti_strbuf_release(&line);
}
