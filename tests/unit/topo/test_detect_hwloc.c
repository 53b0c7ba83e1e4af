/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "topo/detect/cpuset.h"
#include "topo/detect/detect.h"
#include "topo/tree/schema.h"
#include "util/strbuf.h"

/* What is detected, beside what hwloc says of the same files.
 *
 * hwloc shows each port of a switch as a bridge, we one element for a switch and none
 * for a root port: of the bridges above a function, from its root bus on, each second
 * is an element of ours. It finds bridges through `config`; where that was not captured
 * the links of sys/bus/pci/devices say what is above what.
 *
 * `--disallowed` shows what cpusets and cgroups keep from the process that looks: ours is
 * the machine, the same for all of its ranks. hwloc gives memory without cores those near
 * it, we none; it has node 0 where cores belong to no node, we a <cpu> -1.
 *
 * HWLOC_PCI_LOCALITY of 40intel64-2g2n4c+pcilocality.test is what a user says against
 * his machine; it is not set here, as detection has nothing of the kind: such a user
 * writes a topology file. */

#define LSTOPO                                                                       \
	"HWLOC_COMPONENTS=linux,stop HWLOC_SHOW_ERRORS=none HWLOC_HIDE_ERRORS=2 "    \
	"lstopo-no-graphics --disallowed --no-factorize --filter io:all --of xml - " \
	"2>/dev/null"

/* Where we mean to differ; -1: of all nodes. */
static const struct exception {
	const char *capture;
	int64_t node, package;
	const char *why;
} exceptions[] = {
	{ "fakememinitiators", 4, -1, "an initiator without cores and memory: we leave it out" },
	{ "fakeheterocpunuma", 4, -1,
	  "has cores of node 3 as well: lint names it, hwloc drops it" },
	{ "fakeheterocpunuma", 5, -1,
	  "has cores of node 3 as well: lint names it, hwloc drops it" },
	{ "40intel64-4n10c+pci-conflicts", -1, 3,
	  "cores of this package are edited to be those of others: hwloc drops it" },
};

struct both {
	const char *root; /* NULL: this machine */
	const char *name; /* of the capture, "": this machine */
	struct tti_xml_doc *ours, *theirs;
	struct tti_strbuf distances; /* of theirs, all numbers */
	bool has_bridges;            /* theirs has */
};

/* Machines of which only this is tested: memory without cores, cores without a node,
 * several sockets in one node, PCI domains of 32 bits. */
static const char *const more_captures[] = {
	"16em64t-4s2c2t.tar.bz2",
	"2pa-pcidomain32bits.tar.bz2",
	"fakeheterocpunuma.tar.bz2",
	"fakeheteromemtiers.tar.bz2",
	"fakememinitiators-1np2c+1npp+gi.tar.bz2",
	"offline-cpu0-node0.tar.bz2",
};

static struct capture capture;

static int clean_up(void **state)
{
	(void)state;
	capture_remove(&capture);
	return 0;
}

static bool have_lstopo(void)
{
	return system("command -v lstopo-no-graphics >/dev/null") == 0;
}

/* -- Reading theirs ----------------------------------------------------------------- */

/* Our reader takes neither a document type nor text, so that these go: the matrix of
 * distances, which is text, is kept aside. */
static void cut_text(char *xml, struct tti_strbuf *distances)
{
	char *doctype = strstr(xml, "<!DOCTYPE");
	char *at;

	if (doctype)
		memset(doctype, ' ', strcspn(doctype, ">") + 1);
	while ((at = strstr(xml, "<distances2"))) {
		char *end = strstr(at, "</distances2>");
		char *values = strstr(at, "<u64values");

		assert_non_null(end);
		assert_non_null(values);
		if (strstr(at, "NUMALatency") && strstr(at, "NUMALatency") < values)
			for (; values < end; values = strstr(values + 1, "<u64values")) {
				char *text = strchr(values, '>') + 1;

				tti_strbuf_addf(distances, "%.*s", (int)strcspn(text, "<"), text);
				if (!strstr(values + 1, "<u64values"))
					break;
			}
		memset(at, ' ', (size_t)(end - at) + sizeof("</distances2>") - 1);
	}
}

static void run_lstopo(struct both *both)
{
	struct tti_strbuf text = { 0 };
	char command[4096], line[4096];
	FILE *pipe;

	if (both->root)
		snprintf(command, sizeof(command), "HWLOC_FSROOT='%s' HWLOC_THISSYSTEM=0 " LSTOPO,
			 both->root);
	else
		snprintf(command, sizeof(command), LSTOPO);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		tti_strbuf_add(&text, line);
	assert_int_equal(pclose(pipe), 0);
	assert_false(text.failed);
	cut_text(text.text, &both->distances);
	assert_int_equal(tti_xml_read(text.text, text.len, "lstopo", &both->theirs), TUTTI_OK);
	tti_strbuf_release(&text);
}

static bool is_type(const struct tti_xml *object, const char *type)
{
	const char *text = tti_xml_get(object, "type");

	return text && strcmp(text, type) == 0;
}

/* "0x000000ff,0xff000000,,0x1": an empty word is zero. */
static void read_theirs(struct tti_cpuset *set, const char *text)
{
	struct tti_strbuf words = { 0 };

	for (; text; text = strchr(text, ',')) {
		int len;

		text += *text == ',';
		len = (int)strcspn(text, ",");
		tti_strbuf_addf(&words, "%s%.*s", words.len > 0 ? "," : "", len > 0 ? len : 1,
				len > 0 ? text : "0");
	}
	assert_true(tti_cpuset_parse_map(set, words.text));
	tti_strbuf_release(&words);
}

static bool same_set(const struct tti_cpuset *a, const struct tti_cpuset *b)
{
	return tti_cpuset_is_within(a, b) && tti_cpuset_is_within(b, a);
}

static int64_t number(const struct tti_xml *xml, const char *attr)
{
	const char *text = tti_xml_get(xml, attr);

	return text ? strtoll(text, NULL, 0) : -1;
}

static struct tti_xml *find_ours(const struct both *both, const char *busid)
{
	for (struct tti_xml *xml = both->ours->root; xml; xml = tti_xml_walk(xml)) {
		const char *text = tti_xml_is(xml, "pci") ? tti_xml_get(xml, "busid") : NULL;

		if (text && strcmp(text, busid) == 0)
			return xml;
	}
	return NULL;
}

static struct tti_xml *find_theirs(const struct both *both, const char *busid)
{
	for (struct tti_xml *xml = both->theirs->root; xml; xml = tti_xml_walk(xml)) {
		const char *text = tti_xml_get(xml, "pci_busid");

		if (text && strcmp(text, busid) == 0)
			return xml;
	}
	return NULL;
}

/* A kernel without NUMA: hwloc makes a node 0 of it, we a <cpu> -1. */
static struct tti_xml *only_cpu(const struct both *both)
{
	struct tti_xml *first = both->ours->root->first;

	return first && !first->next && number(first, "numaid") == -1 ? first : NULL;
}

static bool is_excepted(const struct both *both, int64_t node, int64_t package)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (strstr(both->name, exceptions[i].capture) && exceptions[i].node == node &&
		    exceptions[i].package == package) {
			print_message("  %s\n", exceptions[i].why);
			return true;
		}
	return false;
}

/* -- NUMA --------------------------------------------------------------------------- */

static void compare_node(const struct both *both, const struct tti_xml *theirs)
{
	const char *id = tti_xml_get(theirs, "os_index");
	const struct tti_xml *ours = tti_xml_find(both->ours->root, "cpu", "numaid", id);
	struct tti_cpuset a = { 0 }, b = { 0 };

	if (!ours)
		ours = only_cpu(both);
	assert_non_null(ours);
	assert_true(tti_cpuset_parse_map(&a, tti_xml_get(ours, "affinity")));
	read_theirs(&b, tti_xml_get(theirs, "cpuset"));
	assert_true(tti_cpuset_is_empty(&a) || same_set(&a, &b));
	tti_cpuset_release(&a);
	tti_cpuset_release(&b);
	if (number(theirs, "local_memory") > 0)
		assert_int_equal(number(theirs, "local_memory") >> 20,
				 number(ours, "tutti_mem_mib"));
	if (is_type(theirs->parent, "Package"))
		assert_int_equal(number(theirs->parent, "os_index"), number(ours, "tutti_package"));
}

static void compare_distances(const struct both *both)
{
	struct tti_strbuf all = { 0 };
	char *text;

	if (both->distances.len == 0)
		return;
	for (struct tti_xml *cpu = both->ours->root->first; cpu; cpu = cpu->next)
		if (tti_xml_get(cpu, "tutti_distances"))
			tti_strbuf_addf(&all, "%s,", tti_xml_get(cpu, "tutti_distances"));
	text = all.text;
	for (; *text; text++)
		if (*text == ',')
			*text = ' ';
	assert_string_equal(all.text, both->distances.text);
	tti_strbuf_release(&all);
}

static void compare_nodes(const struct both *both)
{
	size_t ntheirs = 0, nours = 0;
	bool all = true;

	for (struct tti_xml *xml = both->theirs->root; xml; xml = tti_xml_walk(xml)) {
		if (!is_type(xml, "NUMANode"))
			continue;
		if (is_excepted(both, number(xml, "os_index"), -1)) {
			all = false;
			continue;
		}
		compare_node(both, xml);
		ntheirs++;
	}
	for (struct tti_xml *cpu = both->ours->root->first; cpu; cpu = cpu->next) {
		const int64_t node = number(cpu, "numaid");

		if (node >= 0 && is_excepted(both, node, -1))
			all = false;
		else
			nours += node >= 0 || cpu == only_cpu(both);
	}
	assert_int_equal(nours, ntheirs);
	if (all)
		compare_distances(both);
}

/* All cores that are online, of a node or of none. */
static void compare_cores(const struct both *both)
{
	struct tti_cpuset ours = { 0 }, theirs = { 0 };

	for (struct tti_xml *cpu = both->ours->root->first; cpu; cpu = cpu->next) {
		struct tti_cpuset of_node = { 0 };
		uint64_t core;

		assert_true(tti_cpuset_parse_map(&of_node, tti_xml_get(cpu, "affinity")));
		for (core = tti_cpuset_next(&of_node, 0); core < TTI_CPUSET_MAX;
		     core = tti_cpuset_next(&of_node, core + 1))
			assert_true(tti_cpuset_add(&ours, core, core));
		tti_cpuset_release(&of_node);
	}
	read_theirs(&theirs, tti_xml_get(both->theirs->root->first, "cpuset"));
	assert_true(same_set(&ours, &theirs));
	tti_cpuset_release(&ours);
	tti_cpuset_release(&theirs);
}

/* -- Packages: their numbers as sets ------------------------------------------------ */

static void add_packages(const struct both *both, const char *list, struct tti_cpuset *out)
{
	struct tti_cpuset packages = { 0 };
	uint64_t package;

	if (!list)
		return;
	assert_true(tti_cpuset_parse_list(&packages, list));
	for (package = tti_cpuset_next(&packages, 0); package < TTI_CPUSET_MAX;
	     package = tti_cpuset_next(&packages, package + 1))
		if (!is_excepted(both, -1, (int64_t)package))
			assert_true(tti_cpuset_add(out, package, package));
	tti_cpuset_release(&packages);
}

static void compare_packages(const struct both *both)
{
	struct tti_cpuset ours = { 0 }, theirs = { 0 };

	for (struct tti_xml *cpu = both->ours->root->first; cpu; cpu = cpu->next) {
		const char *all = tti_xml_get(cpu, "tutti_packages");

		add_packages(both, all ? all : tti_xml_get(cpu, "tutti_package"), &ours);
	}
	for (struct tti_xml *xml = both->theirs->root; xml; xml = tti_xml_walk(xml))
		if (is_type(xml, "Package"))
			add_packages(both, tti_xml_get(xml, "os_index"), &theirs);
	assert_true(same_set(&ours, &theirs));
	tti_cpuset_release(&ours);
	tti_cpuset_release(&theirs);
}

/* -- PCI ---------------------------------------------------------------------------- */

/* "0207 [15b3:1013] [15b3:0013] 00" */
static void compare_ids(const struct tti_xml *ours, const struct tti_xml *theirs)
{
	unsigned class, vendor, device, subvendor, subdevice;

	assert_int_equal(sscanf(tti_xml_get(theirs, "pci_type"), "%x [%x:%x] [%x:%x]", &class,
				&vendor, &device, &subvendor, &subdevice),
			 5);
	assert_int_equal(number(ours, "class") >> 8, class);
	/* They write what they do not know as 0; we ask the driver that lists a GPU, too. */
	if (!vendor && tti_xml_find(ours, "gpu", NULL, NULL))
		assert_int_equal(number(ours, "vendor"), 0x10de);
	else
		assert_int_equal(number(ours, "vendor"), vendor ? (int)vendor : -1);
	assert_int_equal(number(ours, "device"), device ? (int)device : -1);
	if (subvendor)
		assert_int_equal(number(ours, "subsystem_vendor"), subvendor);
	if (subdevice)
		assert_int_equal(number(ours, "subsystem_device"), subdevice);
}

static void assert_above(const struct tti_xml *ours, struct tti_strbuf *want)
{
	struct tti_strbuf have = { 0 };

	for (ours = ours->parent; tti_xml_is(ours, "pci"); ours = ours->parent)
		tti_strbuf_addf(&have, "%s ", tti_xml_get(ours, "busid"));
	assert_string_equal(have.text ? have.text : "", want->text ? want->text : "");
	tti_strbuf_release(&have);
	tti_strbuf_release(want);
}

/* Nearest first; the last, on the root bus, is a root port and each second from there
 * a port that is folded. */
static void fold(char (*above)[16], size_t n, struct tti_strbuf *out)
{
	for (size_t i = 0; i < n; i++)
		if ((n - i) % 2 == 0)
			tti_strbuf_addf(out, "%s ", above[i]);
}

static size_t bridges_above(const struct tti_xml *theirs, char (*above)[16])
{
	size_t n = 0;

	for (theirs = theirs->parent; is_type(theirs, "Bridge"); theirs = theirs->parent)
		if (tti_xml_get(theirs, "pci_busid"))
			snprintf(above[n++], 16, "%s", tti_xml_get(theirs, "pci_busid"));
	return n;
}

/* From the link of a function: "../../../devices/pci0000:00/0000:00:01.3/0000:01:00.2". */
static size_t parts_above(const struct both *both, const char *busid, char (*above)[16])
{
	char path[4096], target[PATH_MAX];
	size_t n = 0;
	char *slash;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", both->root ? both->root : "",
		 busid);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return 0;
	target[len] = '\0';
	while ((slash = strrchr(target, '/'))) {
		*slash = '\0';
		slash = strrchr(target, '/');
		if (!slash || strlen(slash + 1) != 12 || slash[1 + 4] != ':')
			break;
		snprintf(above[n++], 16, "%s", slash + 1);
	}
	return n;
}

static void compare_above(const struct both *both, const struct tti_xml *ours,
			  const struct tti_xml *theirs)
{
	const char *busid = tti_xml_get(ours, "busid");
	struct tti_strbuf want = { 0 };
	char above[64][16];

	fold(above, parts_above(both, busid, above), &want);
	assert_above(ours, &want);
	if (!both->has_bridges)
		return;
	fold(above, bridges_above(theirs, above), &want);
	assert_above(ours, &want);
}

/* Our place is within theirs, as they know places of several nodes, or of all; or theirs in
 * ours, as they know sockets of one node. */
static void compare_place(const struct tti_xml *ours, const struct tti_xml *theirs)
{
	struct tti_cpuset a = { 0 }, b = { 0 };

	while (!tti_xml_is(ours, "cpu"))
		ours = ours->parent;
	while (!tti_xml_get(theirs, "cpuset"))
		theirs = theirs->parent;
	assert_true(tti_cpuset_parse_map(&a, tti_xml_get(ours, "affinity")));
	read_theirs(&b, tti_xml_get(theirs, "cpuset"));
	assert_true(tti_cpuset_is_within(&a, &b) || tti_cpuset_is_within(&b, &a));
	tti_cpuset_release(&a);
	tti_cpuset_release(&b);
}

static bool is_folded(const struct both *both, const char *busid)
{
	char above[64][16];

	return parts_above(both, busid, above) % 2 == 0;
}

static void compare_function(const struct both *both, const struct tti_xml *theirs)
{
	const char *busid = tti_xml_get(theirs, "pci_busid");
	const struct tti_xml *ours = find_ours(both, busid);
	const bool is_bridge = strncmp(tti_xml_get(theirs, "pci_type"), "0604", 4) == 0;

	if (is_bridge && is_folded(both, busid)) {
		assert_null(ours);
		return;
	}
	assert_non_null(ours);
	compare_ids(ours, theirs);
	compare_above(both, ours, theirs);
	compare_place(ours, theirs);
}

static size_t compare_functions(struct both *both)
{
	size_t n = 0;

	for (struct tti_xml *xml = both->theirs->root; xml; xml = tti_xml_walk(xml))
		if (is_type(xml, "Bridge") && tti_xml_get(xml, "pci_busid"))
			both->has_bridges = true;
	for (struct tti_xml *xml = both->theirs->root; xml; xml = tti_xml_walk(xml)) {
		if (!tti_xml_get(xml, "pci_busid"))
			continue;
		compare_function(both, xml);
		n++;
	}
	for (struct tti_xml *xml = both->ours->root; xml; xml = tti_xml_walk(xml))
		/* They leave out domains of more than four digits. */
		if (tti_xml_is(xml, "pci") && strlen(tti_xml_get(xml, "busid")) == 12)
			assert_non_null(find_theirs(both, tti_xml_get(xml, "busid")));
	return n;
}

static size_t compare(const char *root, const char *name)
{
	struct both both = { .root = root, .name = name };
	const struct tti_detect_config config = { .sysfs_root = root, .all = true };
	size_t n;

	assert_int_equal(tti_detect_machine(&config, &both.ours), TUTTI_OK);
	assert_int_equal(tti_schema_check(both.ours), TUTTI_OK);
	run_lstopo(&both);
	compare_nodes(&both);
	compare_cores(&both);
	compare_packages(&both);
	n = compare_functions(&both);
	tti_xml_free(both.ours);
	tti_xml_free(both.theirs);
	tti_strbuf_release(&both.distances);
	return n;
}

/* -- The tests ---------------------------------------------------------------------- */

static size_t compare_capture(const char *name)
{
	size_t nfunctions;

	print_message("%s\n", name);
	capture_unpack(&capture, name);
	nfunctions = compare(capture.root, name);
	capture_remove(&capture);
	return nfunctions;
}

static void captured_machines_agree(void **state)
{
	size_t nfunctions = 0;

	(void)state;
	if (!have_lstopo()) {
		print_message("lstopo-no-graphics is not installed\n");
		skip();
	}
	for (size_t i = 0; i < NCAPTURES; i++)
		nfunctions += compare_capture(captures[i]);
	for (size_t i = 0; i < sizeof(more_captures) / sizeof(more_captures[0]); i++)
		nfunctions += compare_capture(more_captures[i]);
	assert_true(nfunctions > 150);
}

static void this_machine_agrees(void **state)
{
	(void)state;
	if (!have_lstopo()) {
		print_message("lstopo-no-graphics is not installed\n");
		skip();
	}
	compare(NULL, "");
}

static char **given; /* folders of captured machines */

static void given_machines_agree(void **state)
{
	(void)state;
	for (char **root = given; *root; root++) {
		print_message("%s\n", *root);
		compare(*root, *root);
	}
}

/* With folders as arguments: only these. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(captured_machines_agree, clean_up),
		cmocka_unit_test(this_machine_agrees),
	};
	const struct CMUnitTest by_hand[] = { cmocka_unit_test(given_machines_agree) };

	given = argv + 1;
	return argc > 1 ? cmocka_run_group_tests(by_hand, NULL, NULL)
			: cmocka_run_group_tests(tests, NULL, NULL);
}
