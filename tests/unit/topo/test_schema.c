/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/fault.h"

static struct tti_xml_doc *read_text(const char *text)
{
	struct tti_xml_doc *doc = NULL;

	if (tti_xml_read(text, strlen(text), "t.xml", &doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return doc;
}

static void every_real_file_passes(void **state)
{
	static const char *const dirs[] = { TEST_DATA "/topologies/*.xml",
					    TEST_DATA "/topologies/raw/*.xml" };
	size_t good = 0, graphs = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		glob_t files;

		assert_int_equal(glob(dirs[i], 0, NULL, &files), 0);
		for (size_t f = 0; f < files.gl_pathc; f++) {
			struct tti_xml_doc *doc;
			const bool graph = strstr(files.gl_pathv[f], "-graph.xml");

			assert_int_equal(tti_xml_read_file(files.gl_pathv[f], &doc), TUTTI_OK);
			if (tti_schema_check(doc) == TUTTI_OK)
				good++;
			else if (!graph ||
				 !strstr(tti_error_text(), ":1:1: <graphs>: a graph file"))
				fail_msg("%s", tti_error_text());
			else
				graphs++;
			tti_xml_free(doc);
		}
		globfree(&files);
	}
	assert_int_equal(good, 36);
	assert_int_equal(graphs, 2);
}

/* What NCCL's releases write, and what the format gained in ours. */
static void what_is_odd_passes(void **state)
{
	static const char text[] =
		"<system version='2' x='y'>"
		"<cpu host_hash='0xd3524fac75ffbc89' numaid='-1' affinity='' arch='x86_64' "
		"vendor=''"
		" familyid='-1' modelid='0' tutti_package='0' tutti_distances='10,21'"
		" tutti_mem_gbps='1.5e2' tutti_mem_ns='93.5' tutti_mem_mib='1024'>"
		"<odd><pci><system/></pci></odd>"
		"<pci busid='fffffff:ff:ff.0' class='0x060400' link_speed='' link_width=''>"
		"<pcilink target='0000:2a:00.0'/><pcilink target='0000:17:00.0'/>"
		"<pci busid='0000:17:00.0' link_speed='Unknown' vendor='0xffff' z='0'>"
		"<gpu dev='0' sm='90' mlopart='-1' rank='-1' gdr='1' gcn='gfx942' arch='38911'>"
		"<nvlink target='fffffff:ff:ff.0' count='0' tclass='0x068000'/>"
		"<nvlink target='0000:99:00.0'/><xgmi target='0000:99:00.0' count='7'/>"
		"<c2c bw='45000' count='10'/></gpu><gpu dev='1'/></pci>"
		"<pci busid='0000:18:00.0' link_speed='unknown speed'><nic>"
		"<net name='mlx5_0' dev='0' latency='0' speed='-1' port='1' rail='0' plane='-1'"
		" guid='0xffffffffffffffff' maxconn='131072' gdr='1' net='1' gin='0' rma='0'"
		" coll='1' keep='1'/>"
		"<net name='mlx5_0' dev='0' net='0' gin='1'/></nic></pci></pci>"
		"<pci busid='0000:30:00.0'><pci busid='0000:31:00.0'/></pci>"
		"<pci busid='0000:30:00.0'><pci busid='0000:32:00.0'/></pci>"
		"<nic><net name='eth0' dev='0' port='1'/><net name='eth0' dev='0' port='2'/>"
		"<net name='eth1' dev='0'/></nic>"
		"<nic><net name='eth0' dev='1' latency='0.000000' speed='0' guid='0'/></nic></cpu>"
		"<cpu host_hash='0x2' numaid='-1'><pci busid='0000:17:00.0'/>"
		"<nic><net dev='0'/></nic></cpu></system>";
	struct tti_xml_doc *doc = read_text(text);
	struct tti_xml *found;

	(void)state;
	/* But for this. */
	assert_int_equal(tti_schema_check(doc), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "a cycle"));
	found = tti_xml_find(doc->root->first, "pci", NULL, NULL);
	tti_xml_unlink(tti_xml_find(found, "pcilink", "target", "0000:17:00.0"));
	if (tti_schema_check(doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	tti_xml_free(doc);
}

#define CPU(inside)  "<system version='1'>\n<cpu numaid='0'>\n" inside "\n</cpu>\n</system>"
#define PCI(inside)  CPU("<pci busid='0000:01:00.0'>" inside "</pci>")
#define GPU(inside)  PCI("<gpu>" inside "</gpu>")
#define NET(attrs)   CPU("<nic><net " attrs "/></nic>")
#define LINK(attrs)  GPU("<nvlink " attrs "/>")
#define PCIS(inside) PCI("<pci busid='0000:02:00.0'>" inside "</pci>")

/* NCCL loads these, as it knows devices by their place in the file. */
static void what_is_there_twice_passes(void **state)
{
	static const char *const good[] = {
		PCI("<pci busid='00000000:01:00.0'/>"),
		PCI("<pci busid='0000:AB:00.0'/><pci busid='0000:ab:00.0'><gpu/></pci>"),
		CPU("<nic><net dev='0'/><net dev='1'/></nic><nic><net dev='1'/></nic>"),
		CPU("<pci busid='0000:02:00.0'><pci busid='0000:03:00.0'/></pci>"
		    "<pci busid='0000:02:00.0'><nic><net name='a'/></nic></pci>"),
		CPU("<nic><net name='a'/></nic><nic><net name='a' net='1' dev='-1'/></nic>"),
		"<system version='1'><cpu host_hash='0xHASH_A'/><cpu host_hash='(B)'/></system>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct tti_xml_doc *doc = read_text(good[i]);

		if (tti_schema_check(doc) != TUTTI_OK)
			fail_msg("%s\n%s", good[i], tti_error_text());
		tti_xml_free(doc);
	}
}

static const struct {
	const char *text, *reason;
} bad[] = {
	{ "<pci version='1'/>", "t.xml:1:1: <pci>: a topology begins with <system>" },
	{ "<system/>", "version=\"\" is not one that is known" },
	{ "<system version='3'/>", "version=\"3\" is not one that is known: \"1\" is NCCL's" },
	{ "<system version='one'/>", "version=\"one\" is not a number" },
	{ CPU("<cpu/>"), "t.xml:3:1: <cpu>: stands in <cpu>, but belongs in <system>" },
	{ CPU("<system/>"), "may only be the root" },
	{ CPU("<gpu/>"), "stands in <cpu>, but belongs in <pci>" },
	{ CPU("<pcilink target='0000:01:00.0'/>"), "belongs in <pci>" },
	{ PCI("<net/>"), "stands in <pci>, but belongs in <nic>" },
	{ PCI("<nvlink target='0000:01:00.0'/>"), "belongs in <gpu>" },
	{ GPU("<pci busid='0000:02:00.0'/>"), "stands in <gpu>, but belongs in <cpu> or <pci>" },
	{ GPU("<nic/>"), "belongs in <cpu> or <pci>" },
	{ CPU("<pci/>"), "t.xml:3:1: <pci>: has no busid" },
	{ CPU("<pci busid=''/>"), "busid=\"\" is not a bus id" },
	{ CPU("<pci busid='01:00.0'/>"), "\"01:00.0\" is not a bus id" },
	{ CPU("<pci busid='0000:02:00.0' class='0x1000000'/>"), "class" },
	{ CPU("<pci busid='0000:02:00.0' vendor='-1'/>"), "vendor" },
	{ CPU("<pci busid='0000:02:00.0' link_width='-1'/>"), "link_width=\"-1\" is not within" },
	{ CPU("<pci busid='0000:02:00.0' link_width='99999999999999999999999'/>"), "link_width" },
	{ PCI("<pcilink/>"), "has no target" },
	{ PCI("<gpu sm='x'/>"), "sm" },
	{ PCI("<gpu rank='-2'/>"), "rank" },
	{ LINK("count='1'"), "has no target" },
	{ LINK("target='gpu1'"), "target=\"gpu1\" is not a bus id" },
	{ LINK("target='0000:02:00.0' count='-1'"), "count" },
	{ LINK("target='0000:02:00.0' count='nan'"), "count" },
	{ GPU("<xgmi target='0000:01:00'/>"), "target" },
	{ GPU("<c2c bw='inf'/>"), "bw=\"inf\"" },
	{ GPU("<c2c bw='-3'/>"), "bw=\"-3\"" },
	{ NET(""), "has neither name nor dev" },
	{ NET("name='' dev='-1' port='1'"), "has neither name nor dev" },
	{ NET("latency='nan'"), "latency=\"nan\"" },
	{ NET("latency='-0.1'"), "latency=\"-0.1\"" },
	{ NET("latency='1e400'"), "latency=\"1e400\"" },
	{ NET("speed='-2'"), "speed=\"-2\"" },
	{ NET("speed='1e5'"), "speed=\"1e5\"" },
	{ NET("guid='0x1ffffffffffffffff'"), "guid" },
	{ NET("name='a\xc3\xa4' dev='99999999999'"), "<net name=\"a\xc3\xa4\">: dev" },
	{ "<system version='1'><cpu numaid='-2'/></system>", "numaid" },
	{ "<system version='1'><cpu affinity='0-3'/></system>", "affinity=\"0-3\" is not a mask" },
	{ "<system version='1'><cpu affinity='ff,'/></system>", "affinity" },
	{ "<system version='1'><cpu affinity=',ff'/></system>", "affinity" },
	{ "<system version='1'><cpu affinity='ff,,ff'/></system>", "affinity" },
	{ "<system version='1'><cpu affinity='123456789'/></system>", "affinity" },
	{ "<system version='1'><cpu tutti_distances='10;21'/></system>", "not a list of numbers" },
	{ "<system version='1'>\n<cpu numaid='1'/>\n<cpu numaid='1'/>\n</system>",
	  "t.xml:3:1: <cpu numaid=\"1\">: the same numaid as the <cpu> of line 2" },
	{ "<system version='1'>\n<cpu/>\n<cpu numaid='-1'/>\n</system>", "numaid" },
	{ "<system version='1'><cpu host_hash='0x0a'/><cpu host_hash='10'/></system>", "numaid" },
	{ "<system version='1'><cpu host_hash='0xH_A'/>\n<cpu host_hash='0xH_A'/></system>",
	  "a host_hash of its own" },
	{ PCI("<pcilink target='0000:01:00.0'/>"), "a cycle: its target" },
	{ PCIS("<pcilink target='0000:01:00.0'/>"), "a cycle: its target, the <pci> of line 3" },
	{ PCI("<pci busid='0000:02:00.0'/><pcilink target='0000:02:00.0'/>"), "a cycle" },
};

static void what_is_wrong_is_refused_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tti_xml_doc *doc = read_text(bad[i].text);

		if (tti_schema_check(doc) != TUTTI_EINVAL)
			fail_msg("passes: %s", bad[i].text);
		if (strncmp(tti_error_text(), "t.xml:", 6) != 0 ||
		    !strstr(tti_error_text(), bad[i].reason))
			fail_msg("%s\n%s\n%s", bad[i].text, bad[i].reason, tti_error_text());
		tti_xml_free(doc);
	}
}

static void every_allocation_may_fail(void **state)
{
	struct tti_xml_doc *doc;
	char fault[20];
	int failed = 0;

	(void)state;
	assert_int_equal(tti_xml_read_file(TEST_DATA "/topologies/rccl__topo_16p1h.xml", &doc),
			 TUTTI_OK);
	for (int i = 1; i < 100; i++) {
		tutti_status st;

		snprintf(fault, sizeof(fault), "mem:%d", i);
		tti_fault_set(fault);
		st = tti_schema_check(doc);
		tti_fault_set(NULL);
		if (st == TUTTI_OK)
			break;
		assert_int_equal(st, TUTTI_ENOMEM);
		failed++;
	}
	assert_in_range(failed, 2, 50);
	tti_xml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_real_file_passes),
		cmocka_unit_test(what_is_odd_passes),
		cmocka_unit_test(what_is_there_twice_passes),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
