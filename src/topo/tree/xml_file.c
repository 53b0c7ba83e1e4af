/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a topology from a file, and says what a file is that has none. */
#include "topo/tree/xml.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "util/error.h"
#include "util/file.h"
#include "util/mem.h"

/* Said after what the file is instead. */
#define WANTED                                                                                 \
	", not a topology: that is XML that begins with <system>, as NCCL_TOPO_DUMP_FILE and " \
	"`tutti "                                                                              \
	"topo --format xml` write it"

struct text {
	const char *at;
	size_t n;
};

static bool begins_with(struct text text, const char *word)
{
	return text.n >= strlen(word) && strncasecmp(text.at, word, strlen(word)) == 0;
}

static struct text skip(struct text text, size_t n)
{
	n = n < text.n ? n : text.n;
	return (struct text){ text.at + n, text.n - n };
}

static struct text skip_blanks(struct text text)
{
	while (text.n && isspace((unsigned char)*text.at))
		text = skip(text, 1);
	return text;
}

/* Behind the next `end`. */
static struct text skip_to(struct text text, const char *end)
{
	const char *found = memmem(text.at, text.n, end, strlen(end));

	return skip(text, found ? (size_t)(found - text.at) + strlen(end) : text.n);
}

/* The text from the name of the root on, as declared or as it stands. */
static struct text find_root(struct text text)
{
	for (;;) {
		text = skip_blanks(text);
		if (begins_with(text, "<!--"))
			text = skip_to(text, "-->");
		else if (begins_with(text, "<?"))
			text = skip_to(text, "?>");
		else
			break;
	}
	if (begins_with(text, "<!DOCTYPE"))
		return skip_blanks(skip(text, strlen("<!DOCTYPE")));
	return skip(text, 1);
}

static bool is_word(struct text text, const char *word)
{
	const size_t len = strlen(word);

	return begins_with(text, word) &&
	       (text.n == len || strchr(" \t\r\n/>", text.at[len]) != NULL);
}

/* By their first bytes. */
static const struct {
	const char *bytes, *what, *with;
} packed[] = {
	{ "\x1f\x8b", "gzip", "gunzip" },
	{ "BZh", "bzip2", "bunzip2" },
	{ "\xfd"
	  "7zXZ",
	  "xz", "unxz" },
	{ "\x28\xb5\x2f\xfd", "zstd", "unzstd" },
	{ "PK\x03\x04", "zip", "unzip" },
};

static tutti_status refuse_packed(struct text text, const char *path)
{
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (text.n >= strlen(packed[i].bytes) &&
		    memcmp(text.at, packed[i].bytes, strlen(packed[i].bytes)) == 0)
			return tti_fail(TUTTI_EINVAL,
					"%s:1:1: packed with %s: unpack it (%s), or, if it is a "
					"captured machine, give it to `tutti topo --sysfs`",
					path, packed[i].what, packed[i].with);
	if (text.n > 262 && memcmp(text.at + 257, "ustar", 5) == 0)
		return tti_fail(
			TUTTI_EINVAL,
			"%s:1:1: a tar archive: unpack it, or, if it is a captured machine, "
			"give it to `tutti topo --sysfs`",
			path);
	return TUTTI_OK;
}

/* Refuse files that people mistake for a topology, in other words than one that is damaged. */
static tutti_status refuse_other(struct text text, const char *path)
{
	struct text root;

	TTI_TRY(refuse_packed(text, path));
	if (begins_with(text, "\xef\xbb\xbf"))
		text = skip(text, 3);
	text = skip_blanks(text);
	if (!text.n || memchr(text.at, '\0', text.n) || (unsigned char)*text.at >= 0xfe)
		return TUTTI_OK; /* the reader has words for that */
	if (*text.at == '{' || *text.at == '[')
		return tti_fail(TUTTI_EINVAL, "%s:1:1: JSON" WANTED, path);
	if (*text.at != '<')
		return tti_fail(TUTTI_EINVAL, "%s:1:1: text without markup" WANTED, path);
	root = find_root(text);
	if (is_word(root, "html"))
		return tti_fail(TUTTI_EINVAL,
				"%s:1:1: an HTML page, as a site shows it in place of a file: "
				"download the file itself (its raw form)",
				path);
	if (is_word(root, "topology"))
		return tti_fail(TUTTI_EINVAL,
				"%s:1:1: an export of hwloc (lstopo)" WANTED
				"; `tutti topo gather` captures that machine with its speeds",
				path);
	return TUTTI_OK;
}

tutti_status tti_xml_read_file(const char *path, struct tti_xml_doc **out)
{
	char *text;
	size_t nbytes;
	tutti_status st;

	TTI_TRY(tti_file_read(path, "topology file", TTI_XML_BYTES, &text, &nbytes));
	st = refuse_other((struct text){ text, nbytes }, path);
	if (st == TUTTI_OK)
		st = tti_xml_read(text, nbytes, path, out);
	tti_free(text);
	return st;
}
