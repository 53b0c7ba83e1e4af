/* SPDX-License-Identifier: BSD-3-Clause */
/* A megabyte of anything takes under a second and 200 MiB: to read, check, write, read
 * again and lay over itself; and to make a graph with all its paths and routes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/sanitizer.h"
#include "support/topo.h"
#include "util/error.h"

/* A quarter under a sanitizer, where this is about memory alone. */
#define MEGABYTE (SANITIZED ? 1 << 18 : 1 << 20)
#define STEP     (SANITIZED ? 3 : 1)

struct heap {
	const char *name;
	const char *head;  /* once                                          */
	const char *piece; /* over and over; %d: its number                 */
	const char *tail;  /* once, unless cut                              */
	bool fails;        /* and is refused                                */
};

static const struct heap heaps[] = {
	{ "depth", "", "<a>", "", true },
	{ "depth of pci", "<system version='1'><cpu>", "<pci busid='0000:00:00.0'>", "", true },
	{ "elements", "<system version='1'>", "<a/>", "</system>", false },
	{ "cpus", "<system version='1'>", "<cpu numaid='%d'/>", "</system>", false },
	{ "hosts", "<system version='1'>", "<cpu host_hash='%d'/>", "</system>", false },
	{ "equal cpus", "<system version='1'>", "<cpu/>", "</system>", true },
	{ "functions", "<system version='1'><cpu>", "<pci busid='%08x:00:00.0'/>",
	  "</cpu></system>", false },
	{ "equal functions", "<system version='1'><cpu>", "<pci busid='0000:00:00.0'/>",
	  "</cpu></system>", false },
	{ "switches", "<system version='1'><cpu>",
	  "<pci busid='0000:00:00.0'><pci busid='%08x:00:00.1'/></pci>", "</cpu></system>", false },
	{ "switch links", "<system version='1'><cpu><pci busid='0000:00:00.0'>",
	  "<pcilink target='%08x:00:00.1'/>", "</pci></cpu></system>", false },
	{ "devices", "<system version='1'><cpu>", "<pci busid='%08x:00:00.0'><gpu/></pci>",
	  "</cpu></system>", false },
	{ "switched devices", "<system version='1'><cpu>",
	  "<pci busid='%08x:00:00.0'><gpu><nvlink target='fffffff:ff:ff.0' tclass='0x068000'/>"
	  "</gpu></pci>",
	  "</cpu></system>", false },
	{ "a hub", "<system version='1'><cpu><pci busid='0000:00:01.0'><gpu/></pci>",
	  "<pci busid='%08x:00:00.0'><gpu><nvlink target='0000:00:01.0'/></gpu></pci>",
	  "</cpu></system>", false },
	{ "distances", "<system version='1'>", "<cpu numaid='%d' tutti_distances='10,20,12'/>",
	  "</system>", false },
	{ "a list", "<system version='1'><cpu numaid='0' tutti_distances='10", ",10",
	  "'/><cpu numaid='1'/></system>", false },
	{ "gpus", "<system version='1'><cpu><pci busid='0000:00:00.0'>", "<gpu/>",
	  "</pci></cpu></system>", false },
	{ "nvlinks", "<system version='1'><cpu><pci busid='0000:00:00.0'><gpu>",
	  "<nvlink target='%08x:00:00.0'/>", "</gpu></pci></cpu></system>", false },
	{ "equal nvlinks", "<system version='1'><cpu><pci busid='0000:00:00.0'><gpu>",
	  "<nvlink target='0000:00:00.0'/>", "</gpu></pci></cpu></system>", false },
	{ "nics", "<system version='1'><cpu>", "<nic><net name='a%d'/></nic>", "</cpu></system>",
	  false },
	{ "nets", "<system version='1'><cpu><nic>", "<net dev='%d'/>", "</nic></cpu></system>",
	  false },
	{ "nameless nets", "<system version='1'><cpu><nic>", "<net/>", "</nic></cpu></system>",
	  true },
	{ "equal nets", "<system version='1'><cpu><nic>", "<net name='a'/>",
	  "</nic></cpu></system>", false },
	{ "attributes", "<system version='1'><cpu ", "a%x='' ", "/></system>", false },
	{ "attributes of an unknown", "<system version='1'><a ", "a%x='' ", "/></system>", false },
	{ "one attribute again", "<system version='1'><cpu ", "a='' ", "/></system>", true },
	{ "unknown elements", "<system version='1'><cpu>", "<a%x/>", "</cpu></system>", false },
	{ "unknown tree", "<system version='1'><a><b><c><d><e>", "<f><g/></f>",
	  "</e></d></c></b></a></system>", false },
	{ "comments", "<system version='1'>", "<!---->", "</system>", false },
	{ "comments before", "", "<!---->", "<system version='1'/>", false },
	{ "comments after", "<system version='1'/>", "<!---->", "", false },
	{ "a value", "<system version='1'><cpu arch='", "aaaaaaaa", "'/></system>", false },
	{ "escapes", "<system version='1'><cpu arch='", "&#10;", "'/></system>", false },
	{ "entities", "<system version='1'><cpu arch='", "&amp;", "'/></system>", false },
	{ "a mask", "<system version='1'><cpu affinity='ffffffff", ",ffffffff", "'/></system>",
	  false },
	{ "a number", "<system version='1'><cpu numaid='1", "00000000", "'/></system>", true },
	{ "a fraction", "<system version='1'><cpu tutti_mem_ns='1.", "00000000", "'/></system>",
	  false },
	{ "a name", "<system version='1'><cpu><a", "aaaaaaaa", "/></cpu></system>", false },
	{ "blanks", "<system version='1'>", "\n \t    ", "</system>", false },
	{ "text", "<system version='1'>\n", "aaaaaaaa", "</system>", true },
	{ "open tag", "<system version='1'><cpu a='", "<<<<<<<<", "", true },
	{ "instructions", "<system version='1'>", "<?a?>", "</system>", true },
	{ "a doctype", "<!DOCTYPE a [", "<!ENTITY a%d 'b'>", "]><a/>", true },
};

static char *heap_up(const struct heap *heap, size_t *nbytes)
{
	char *text = malloc(MEGABYTE + 1), piece[200];
	const size_t room = MEGABYTE - strlen(heap->tail);
	size_t len = (size_t)snprintf(text, MEGABYTE, "%s", heap->head);

	assert_non_null(text);
	for (int i = 0;; i++) {
		size_t more;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		more = (size_t)snprintf(piece, sizeof(piece), heap->piece, i);
#pragma GCC diagnostic pop
		if (len + more > room)
			break;
		memcpy(text + len, piece, more);
		len += more;
	}
	memcpy(text + len, heap->tail, strlen(heap->tail) + 1);
	*nbytes = len + strlen(heap->tail);
	return text;
}

/* Of CPU time. Alone each takes under one; the rest is for machines that do other things. */
#define SECONDS_MOST (TTI_SANITIZED ? 60 : 10)
#define MIB_MOST     200

static void load(const struct heap *heap, tutti_status (*use)(const char *text, size_t nbytes))
{
	struct rusage usage;
	double seconds;
	size_t nbytes;
	int status;
	char *text = heap_up(heap, &nbytes);
	const pid_t child = fork();

	assert_true(child >= 0 && nbytes > MEGABYTE - 100);
	if (child == 0) {
		const tutti_status st = use(text, nbytes);

		if (st != (heap->fails ? TUTTI_EINVAL : TUTTI_OK))
			fprintf(stderr, "%s\n", tti_error_text());
		_exit(st != (heap->fails ? TUTTI_EINVAL : TUTTI_OK));
	}
	free(text);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	if (getenv("TEST_SHOW"))
		printf("%-24s %.3f s %4ld MiB\n", heap->name, seconds, usage.ru_maxrss >> 10);
	if (status != 0 || seconds > SECONDS_MOST ||
	    (!TTI_SANITIZED && usage.ru_maxrss > MIB_MOST << 10))
		fail_msg("%s: status %d, %.3f s, %ld KiB", heap->name, status, seconds,
			 usage.ru_maxrss);
}

static void documents_are_fast_and_small(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i += STEP)
		load(&heaps[i], topo_use);
}

static void graphs_and_paths_are_fast_and_small(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i += STEP)
		load(&heaps[i], topo_use_graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_are_fast_and_small),
		cmocka_unit_test(graphs_and_paths_are_fast_and_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
