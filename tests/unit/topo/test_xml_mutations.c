/* SPDX-License-Identifier: BSD-3-Clause */
/* Real files with damage, of bytes and of structure: TEST_SEED gives another lot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/topo.h"
#include "support/xml_edit.h"
#include "topo/tree/xml.h"
#include "util/error.h"
#include "util/hash.h"

static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state = tti_hash_mix(random_state + UINT64_C(0x9e3779b97f4a7c15));
	return random_state % below;
}

static const char *const words[] = {
	"<",
	">",
	"/>",
	"</",
	"\"",
	"'",
	"=",
	"&",
	"&lt;",
	"&#10;",
	"&#0;",
	"<!--",
	"-->",
	"<![CDATA[",
	"]]>",
	"<?xml version=\"1.0\"?>",
	"<!DOCTYPE a>",
	"\xff",
	"\xc3\xa4",
	" ",
	"-1",
	"nan",
	"inf",
	"1e999",
	"0x",
	"99999999999999999999",
	"",
	"0000:00:00.0",
	"fffffff:ff:ff.0",
	"<pci>",
	"</pci>",
	"<cpu numaid=\"0\"/>",
	"system",
	"cpu",
	"pci",
	"gpu",
	"nic",
	"net",
	"nvlink",
	"xgmi",
	"c2c",
	"pcilink",
	"busid",
	"numaid",
	"target",
	"count",
	"speed",
	"dev",
	"version",
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Replace `old` bytes at `at` by `nbytes` of `with`. */
static void splice(struct tti_strbuf *buf, size_t at, size_t old, const char *with, size_t nbytes)
{
	const size_t tail = buf->len - at - old;
	char *text = malloc(buf->len + nbytes + 1);

	assert_non_null(text);
	memcpy(text, buf->text, at);
	memcpy(text + at, with, nbytes);
	memcpy(text + at + nbytes, buf->text + at + old, tail);
	free(buf->text);
	buf->text = text;
	buf->len = at + nbytes + tail;
	text[buf->len] = '\0';
}

static void mutate_bytes(struct tti_strbuf *buf)
{
	const size_t at = any(buf->len), most = buf->len - at;
	const char *word = words[any(COUNT(words))];
	char byte = (char)any(256), copy[64];
	size_t n = 1 + any(most < sizeof(copy) ? most : sizeof(copy));

	switch (any(5)) {
	case 0:
		splice(buf, at, 1, &byte, 1);
		break;
	case 1:
		splice(buf, at, n < most ? n : most, "", 0);
		break;
	case 2:
		splice(buf, at, 0, word, strlen(word));
		break;
	case 3:
		splice(buf, at, n < most ? n : most, word, strlen(word));
		break;
	default:
		n = n < most ? n : most;
		memcpy(copy, buf->text + at, n < sizeof(copy) ? n : sizeof(copy));
		splice(buf, any(buf->len), 0, copy, n < sizeof(copy) ? n : sizeof(copy));
	}
}

static struct tti_xml *any_node(const struct tti_xml_doc *doc)
{
	struct tti_xml *node = doc->root;
	size_t n = 0;

	for (const struct tti_xml *at = doc->root; at; at = tti_xml_walk(at))
		n++;
	for (n = any(n); n > 0; n--)
		node = tti_xml_walk(node);
	return node;
}

static bool is_below(const struct tti_xml *node, const struct tti_xml *above)
{
	while (node && node != above)
		node = node->parent;
	return node;
}

static void mutate_tree(struct tti_xml_doc *doc)
{
	struct tti_xml *node = any_node(doc), *other = any_node(doc);

	switch (any(5)) {
	case 0:
		if (node != doc->root)
			tti_xml_unlink(node);
		break;
	case 1:
		if (node != doc->root && !is_below(other, node))
			xml_move(node, other);
		break;
	case 2:
		assert_non_null(tti_xml_add_copy(doc, other, node));
		break;
	case 3:
		if (node->nattrs)
			assert_true(tti_xml_set(doc, node, node->attrs[any(node->nattrs)].name,
						words[any(COUNT(words))]));
		break;
	default:
		if (node->nattrs && other->nattrs)
			assert_true(tti_xml_set(doc, node, node->attrs[any(node->nattrs)].name,
						other->attrs[any(other->nattrs)].value));
	}
}

/* "t.xml:12:3: reason" */
static bool has_place(const char *text)
{
	unsigned line = 0, column = 0;
	int end = 0;

	return sscanf(text, "t.xml:%u:%u: %n", &line, &column, &end) == 2 && end > 0 && line > 0 &&
	       column > 0 && text[end] != '\0';
}

static void mutations_of_real_files_do_no_harm(void **state)
{
	const char *asked_seed = getenv("TEST_SEED");
	const uint64_t seed = asked_seed ? strtoull(asked_seed, NULL, 0) : 20240917;
	size_t good = 0, refused = 0;
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	assert_int_equal(glob(TEST_DATA "/topologies/raw/*.xml", GLOB_APPEND, NULL, &files), 0);
	random_state = seed;
	for (int round = 0; round < 1000; round++) {
		struct tti_strbuf buf = { 0 };
		struct tti_xml_doc *doc;
		tutti_status st;

		assert_int_equal(tti_xml_read_file(files.gl_pathv[any(files.gl_pathc)], &doc),
				 TUTTI_OK);
		for (uint64_t n = any(3); n > 0; n--)
			mutate_tree(doc);
		tti_xml_write(doc, &buf);
		tti_xml_free(doc);
		for (uint64_t n = any(2); n > 0; n--)
			mutate_bytes(&buf);
		st = topo_use(buf.text, buf.len);
		if (st != TUTTI_OK && (st != TUTTI_EINVAL || !has_place(tti_error_text())))
			fail_msg("seed %llu, round %d: %s\n%s", (unsigned long long)seed, round,
				 tti_error_text(), buf.text);
		good += st == TUTTI_OK;
		refused += st != TUTTI_OK;
		tti_strbuf_release(&buf);
	}
	globfree(&files);
	if (good < 200 || refused < 200)
		fail_msg("%zu read, %zu refused: too much or too little damage", good, refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutations_of_real_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
