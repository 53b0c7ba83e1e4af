/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <time.h>

#include "insight/lint/lint.h"
#include "linted.h"
#include "support/random_topo.h"
#include "util/fault.h"

#define SLOW(busid, speed, width)                                          \
	"<pci busid='0000:" busid ":00.0' vendor='0x10de' device='0x20b0'" \
	" link_speed='" speed " GT/s PCIe' link_width='" width "'>"
#define NOW(now)                                                                                  \
	"<pci busid='0000:11:00.0' vendor='0x10de' device='0x20b0' " FAST " tutti_link_now='" now \
	"'>"

/* What a change of the sound machine must be told as. */
static const struct fault {
	const char *rule, *from, *to, *from2, *to2;
	double have_gbps, want_gbps;
} faults[] = {
	{ "numa-same-mask", "affinity='f0'", "affinity='0f'", 0, 0, 16, 153.6 },
	{ "numa-mask-overlap", "affinity='f0'", "affinity='00000000,00000070'", "affinity='0f'",
	  "affinity='1F'", 16, 153.6 },
	{ "numa-no-cores", "affinity='f0'", "affinity='00'", 0, 0, 0, 0 },
	{ "numa-no-cores", "affinity='f0'", "", 0, 0, 0, 0 },
	{ "numa-unknown", "numaid='1'", "numaid='-1'", 0, 0, 0, 0 },
	{ "socket-assumed", "numaid='1'", "numaid='2'", 0, 0, 0, 0 },
	{ "pci-link-narrow", GPU_A, NOW("16.0 GT/s PCIe x4"), 0, 0, 6, 24 },
	{ "pci-link-slow", GPU_A, NOW("2.5 GT/s PCIe x16"), 0, 0, 3, 24 },
	{ "pci-sibling-slower", GPU_A, SLOW("11", "16.0", "8"), 0, 0, 12, 24 },
	{ "pci-sibling-slower", NIC_A,
	  "<pci busid='0000:12:00.0' vendor='0x15b3' device='0x101b' "
	  "link_speed='16.0 GT/s PCIe' link_width='15'>",
	  0, 0, 22.5, 24 },
	{ "pci-uplink-narrow", TOP_A, NARROW_TOP, 0, 0, 6, 24 },
	{ "pci-virtual-link", GPU_A, SLOW("11", "2.5", "1"), 0, 0, 0.1875, 24 },
	{ "pci-virtual-link", TOP_A,
	  "<pci busid='0000:10:00.0' class='0x060400' link_speed='2.5 GT/s' link_width='1'>", 0, 0,
	  0.1875, 24 },
	{ "pci-busid-twice", "0000:20:00.0", "0000:10:00.0", 0, 0, 0, 0 },
	{ "pci-busid-twice", "0000:22:00.0", "0000:10:00.0", 0, 0, 0, 0 },
	{ "pci-speed-assumed", TOP_A, "<pci busid='0000:10:00.0' class='0x060400'>", 0, 0, 12, 24 },
	{ "pci-unknown-function", GPU_A, "<pci busid='0000:13:00.0'/>" GPU_A, 0, 0, 0, 0 },
	{ "nvlink-zero", LINK, "<nvlink target='0000:21:00.0' count='0'/>", BACK, "", 16, 20 },
	{ "nvlink-no-target", LINK, LINK "<nvlink target='0000:99:00.0' count='4'/>", 0, 0, 0, 0 },
	{ "nvlink-no-target", LINK, LINK "<nvlink target='0000:11:00.0' count='4'/>", 0, 0, 0, 0 },
	{ "nvlink-one-way", BACK, "", 0, 0, 0, 0 },
	{ "nvlink-uneven", BACK, "<nvlink target='0000:11:00.0' count='3'/>", 0, 0, 60, 80 },
	{ "nvlink-fewer", LINK, LINK "<nvlink target='0000:99:00.0' count='2' tclass='0x068000'/>",
	  0, 0, 80, 120 },
	{ "nvlink-speed-assumed", "sm='80'", "", 0, 0, 0, 0 },
	{ "gpu-far-nic", NIC_A "<nic>" NET_A "</nic></pci></pci>",
	  "</pci>" NIC_A "<nic>" NET_A "</nic></pci>", 0, 0, 0, 0 },
	{ "gpu-no-driver", GPU_A,
	  "<pci busid='0000:14:00.0' class='0x030200' vendor='0x10de' device='0x20b5' " FAST
	  "/>" GPU_A,
	  0, 0, 0, 24 },
	{ "gpu-dev-twice", "dev='1' rank", "dev='0' rank", 0, 0, 0, 0 },
	{ "gpu-rank-twice", "rank='1'", "rank='0'", 0, 0, 0, 0 },
	{ "gpu-rank-missing", "rank='1'", "", 0, 0, 0, 0 },
	{ "gpu-rank-missing", "rank='1'", "rank='3'", 0, 0, 0, 0 },
	{ "gpu-mixed", "dev='1' rank='1' sm='80'", "dev='1' rank='1' sm='90'", 0, 0, 0, 0 },
	{ "gpu-no-p2p", GPU_0, "<gpu dev='0' rank='0' sm='80' gdr='1' tutti_no_p2p='0000:21:00.0'>",
	  0, 0, 0, 0 },
	{ "gpu-no-gdr", GPU_0, "<gpu dev='0' rank='0' sm='80' gdr='0' tutti_gdr_why='no module'>",
	  0, 0, 0, 0 },
	{ "nic-far", GPU_B GPU_1 BACK "</gpu></pci>", "", LINK, "", 16, 24 },
	{ "nic-no-gdr", NET_A, "<net name='a' dev='0' speed='200000' guid='0x1' port='1' gdr='0'/>",
	  0, 0, 0, 0 },
	{ "nic-unbalanced", NIC_B "<nic>" NET_B "</nic></pci>", "",
	  NIC_A "<nic>" NET_A "</nic></pci>",
	  NIC_A "<nic>" NET_A "</nic></pci>" NIC_B "<nic>" NET_B "</nic></pci>", 0, 50 },
	{ "nic-faster-than-pci", "speed='200000' guid='0x1'", "speed='400000' guid='0x1'", 0, 0, 24,
	  50 },
	{ "net-name-twice", "name='b'", "name='a'", 0, 0, 0, 0 },
	{ "net-name-twice", "name='b' dev='1'", "name='a' dev='0'", 0, 0, 0, 0 },
	{ "net-name-twice", "name='b' dev='1'", "dev='0'", "name='a'", "", 0, 0 },
	{ "net-guid-twice", "guid='0x2'", "guid='0x1'", 0, 0, 25, 50 },
	{ "net-speed-unknown", "speed='200000' guid='0x1'", "speed='-1' guid='0x1'", 0, 0, 0, 0 },
	{ "net-speed-unknown", "speed='200000' guid='0x1'", "guid='0x1'", 0, 0, 0, 0 },
	{ "net-virtual", "name='b'", "name='veth5c042a3'", 0, 0, 0, 0 },
	{ "implausible", "speed='200000' guid='0x1'", "speed='200000000' guid='0x1'", 0, 0, 0, 0 },
	{ "implausible", LINK, "<nvlink target='0000:99:00.0' count='126' tclass='0x068000'/>", 0,
	  0, 0, 0 },
	{ "implausible", "link_speed='16.0 GT/s PCIe' link_width='16'><gpu dev='0'",
	  "link_speed='nan' link_width='16'><gpu dev='0'", 0, 0, 0, 0 },
	{ "implausible", TOP_A, "<pci busid='0000:10:00.0' link_speed='1e308' link_width='16'>", 0,
	  0, 0, 0 },
	{ "implausible", TOP_A, "<pci busid='0000:10:00.0' link_speed='512 GT/s' link_width='16'>",
	  0, 0, 0, 0 },
	{ "implausible", TOP_A,
	  "<pci busid='0000:10:00.0' link_speed='16.0 GT/s' link_width='4096'>", 0, 0, 0, 0 },
	{ "net-down", "guid='0x1'", "guid='0x1' tutti_state='down'", 0, 0, 0, 25 },
	{ "name-typo", "affinity='f0'", "afinity='f0'", 0, 0, 0, 0 },
	{ "name-typo", "<net name='a'", "<nett/><net name='a'", 0, 0, 0, 0 },
	{ "name-unknown", "numaid='0'", "numaid='0' colour='blue'", 0, 0, 0, 0 },
	{ "name-unknown", "<net name='a'", "<vendor_data/><net name='a'", 0, 0, 0, 0 },
};

/* What looks like a fault and is none: no finding of that rule. */
static const struct fault fine[] = {
	{ "numa-same-mask", "affinity='f0'", "affinity='000f0000,00000000'", "affinity='0f'",
	  "affinity='0000000f,00000000'", 0, 0 },
	{ "numa-mask-overlap", "affinity='f0'", "affinity='1,0000000F'", "affinity='0f'",
	  "affinity='f0'", 0, 0 },
	{ "numa-no-cores", CPU_1, "<cpu numaid='8' affinity='0'></cpu>" CPU_1, 0, 0, 0, 0 },
	{ "socket-assumed", "numaid='1'", "numaid='2' tutti_package='1'", "numaid='0'",
	  "numaid='0' tutti_package='0'", 0, 0 },
	{ "pci-link-narrow", GPU_A, NOW("16.0 GT/s PCIe x16"), 0, 0, 0, 0 },
	{ "pci-link-narrow", GPU_A, NOW("Unknown"), 0, 0, 0, 0 },
	{ "pci-link-slow", GPU_A, NOW("2.5 GT/s PCIe x8"), 0, 0, 0, 0 }, /* but narrow */
	{ "pci-sibling-slower",
	  "device='0x20b0' link_speed='16.0 GT/s PCIe' link_width='16'><gpu "
	  "dev='0'",
	  "device='0x20b5' link_speed='8.0 GT/s PCIe' link_width='16'><gpu dev='0'", 0, 0, 0, 0 },
	{ "pci-uplink-narrow", GPU_A, SLOW("11", "8.0", "16"), 0, 0, 0, 0 },
	{ "pci-unknown-function", GPU_A, "<pci busid='0000:13:00.0' class='0x010802'/>" GPU_A, 0, 0,
	  0, 0 },
	{ "nvlink-fewer", "dev='1' rank='1' sm='80'", "dev='1' rank='1' sm='90'", LINK,
	  LINK "<nvlink target='0000:99:00.0' count='2' tclass='0x068000'/>", 0, 0 },
	{ "gpu-far-nic", NIC_A "<nic>" NET_A "</nic></pci></pci>",
	  "</pci>" NIC_A "<nic>" NET_A "</nic></pci>", NIC_B "<nic>" NET_B "</nic></pci></pci>",
	  "</pci>" NIC_B "<nic>" NET_B "</nic></pci>", 0, 0 },
	{ "gpu-dev-twice", "dev='1' rank", "rank", "dev='0' rank", "rank", 0, 0 },
	/* What is virtual is not looked at beside that. */
	{ "nic-no-gdr", "name='a' dev='0' speed='200000' guid='0x1' port='1' gdr='1'",
	  "name='virbr0' speed='200000' port='1'", 0, 0, 0, 0 },
	{ "net-speed-unknown", "name='a' dev='0' speed='200000'", "name='tunl0' dev='0'", 0, 0, 0,
	  0 },
	{ "net-virtual", "name='a'", "name='br0'", "name='b'", "name='bond0'", 0, 0 },
	{ "nic-faster-than-pci", "speed='200000' guid='0x1'", "speed='200000000' guid='0x1'", 0, 0,
	  0, 0 },
	{ "implausible", "speed='200000' guid='0x1'", "speed='1600000' guid='0x1'", 0, 0, 0, 0 },
	{ "implausible", TOP_A,
	  "<pci busid='0000:10:00.0' link_speed='Unknown speed' link_width=''>", 0, 0, 0, 0 },
	{ "pci-speed-assumed", TOP_A, "<pci busid='0000:10:00.0' link_speed='nan' link_width='16'>",
	  0, 0, 0, 0 },
	{ "pci-speed-assumed", NIC_A, "<pci busid='0000:12:00.0'>", "speed='200000' guid='0x1'",
	  "speed='10000' guid='0x1'", 0, 0 },
	{ "pci-virtual-link", NIC_A,
	  "<pci busid='0000:12:00.0' link_speed='2.5 GT/s' link_width='1'>",
	  "speed='200000' guid='0x1'", "speed='1000' guid='0x1'", 0, 0 },
	{ "gpu-no-gdr", GPU_0, "<gpu dev='0' rank='0' sm='80' gdr='0'>",
	  "speed='200000' guid='0x1' port='1' gdr='1'", "speed='10000' guid='0x1' port='1'", 0, 0 },
	{ "nic-no-gdr", "speed='200000' guid='0x1' port='1' gdr='1'", "speed='1000'", 0, 0, 0, 0 },
	{ "gpu-rank-missing", "rank='1'", "rank='9'", "rank='0'", "rank='8'", 0, 0 },
	{ "gpu-rank-missing", "rank='1'", "", "rank='0'", "", 0, 0 },
	{ "net-guid-twice", "guid='0x2'", "guid='0x1' tutti_vf_of='0000:12:00.0'", 0, 0, 0, 0 },
	{ "net-guid-twice", "guid='0x2' port='1'", "guid='0x1' port='2'", 0, 0, 0, 0 },
	{ "nic-unbalanced", NIC_B "<nic>" NET_B "</nic></pci>", "", 0, 0, 0, 0 }, /* but one */
	{ "nic-faster-than-pci", "speed='200000' guid='0x1'", "speed='210000' guid='0x1'", 0, 0, 0,
	  0 },
	{ "net-speed-unknown", "speed='200000' guid='0x1'", "guid='0x1' tutti_state='down'", 0, 0,
	  0, 0 },
	{ "name-unknown", "<net name='a'", "<foo><cpu bar='1'/></foo><net name='a'", 0, 0, 0, 0 },
	{ "name-typo", "numaid='0'", "numaid='0' colour='blue'", 0, 0, 0, 0 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void a_sound_machine_has_no_findings(void **state)
{
	struct linted linted = lint_doc(doc_of_text(sound));

	(void)state;
	for (size_t i = 0; i < linted.lint->n; i++)
		print_error("%s: %s\n", linted.lint->at[i].rule, linted.lint->at[i].what);
	assert_int_equal(linted.lint->n, 0);
	release(&linted);
}

static void each_fault_is_told_with_its_figures(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(faults); i++) {
		const struct fault *fault = &faults[i];
		struct linted linted =
			lint_doc(changed(fault->from, fault->to, fault->from2, fault->to2));
		const struct tti_finding *finding = find(&linted, fault->rule);

		if (!finding)
			fail_msg("no %s for %s", fault->rule, fault->to);
		if ((finding->have_gbps - fault->have_gbps) *
				    (finding->have_gbps - fault->have_gbps) >
			    1e-9 ||
		    (finding->want_gbps - fault->want_gbps) *
				    (finding->want_gbps - fault->want_gbps) >
			    1e-9)
			fail_msg("%s: %g instead of %g GB/s (%s)", fault->rule, finding->have_gbps,
				 finding->want_gbps, finding->consequence);
		assert_true(strncmp(finding->place, "text.xml:1: ", 12) == 0);
		assert_true(*finding->what && *finding->consequence && *finding->remedy);
		release(&linted);
	}
}

static void what_is_no_fault_is_not_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(fine); i++) {
		struct linted linted =
			lint_doc(changed(fine[i].from, fine[i].to, fine[i].from2, fine[i].to2));
		const struct tti_finding *finding = find(&linted, fine[i].rule);

		if (finding && strcmp(fine[i].to, "<foo><cpu bar='1'/></foo><net name='a'") != 0)
			fail_msg("%s: %s", fine[i].rule, finding->what);
		/* The unknown element is told, but not what stands in it. */
		if (finding)
			assert_non_null(strstr(finding->what, "element \"foo\""));
		release(&linted);
	}
}

static void every_rule_has_a_fault(void **state)
{
	size_t n;
	const struct tti_lint_rule *rules = tti_lint_rules(&n);

	(void)state;
	assert_true(n >= 18);
	for (size_t i = 0; i < n; i++) {
		bool found = strcmp(rules[i].name, "too-large") == 0; /* below */

		for (size_t j = 0; j < COUNT(faults); j++)
			found |= strcmp(faults[j].rule, rules[i].name) == 0;
		if (!found)
			fail_msg("%s is not tested", rules[i].name);
	}
	for (size_t j = 0; j < COUNT(fine); j++) {
		bool found = false;

		for (size_t i = 0; i < n; i++)
			found |= strcmp(fine[j].rule, rules[i].name) == 0;
		assert_true(found);
	}
}

/* -- Texts and order --------------------------------------------------------------------------- */

static void the_nearest_name_is_proposed(void **state)
{
	static const struct {
		const char *from, *to, *word;
	} typos[] = {
		{ "numaid='0'", "numaid='0' host_hahs='1'", "\"host_hash\"" },
		{ "speed='200000' guid='0x1'", "sped='200000' guid='0x1'", "\"speed\"" },
		{ "guid='0x1'", "guuid='0x1'", "\"guid\"" },
		{ "link_width", "link_widht", "\"link_width\"" },
		{ "<net name='a'", "<nets/><net name='a'", "\"net\"" },
		{ "guid='0x1'", "GUID='0x1'", "\"guid\"" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(typos); i++) {
		struct linted linted = lint_doc(changed(typos[i].from, typos[i].to, NULL, NULL));
		const struct tti_finding *finding = find(&linted, "name-typo");

		if (!finding || !strstr(finding->what, typos[i].word))
			fail_msg("%s: %s", typos[i].to, finding ? finding->what : "not found");
		release(&linted);
	}
}

static void a_name_is_told_once(void **state)
{
	struct linted linted = lint_doc(changed("link_width=", "breite='1' link_width=", 0, 0));

	(void)state;
	assert_int_equal(linted.lint->n, 1);
	assert_non_null(strstr(linted.lint->at[0].what, "5 more places"));
	release(&linted);
}

static void errors_come_first_then_places(void **state)
{
	struct linted linted = lint_doc(doc_of_file("Azure-azhpc-images__ncv4-topo.xml"));
	glob_t files;

	(void)state;
	release(&linted);
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		linted = lint_doc(doc_of_file(strrchr(files.gl_pathv[i], '/') + 1));
		for (size_t j = 1; j < linted.lint->n; j++) {
			const struct tti_finding *a = &linted.lint->at[j - 1], *b = a + 1;

			assert_true(a->severity >= b->severity);
			if (a->severity == b->severity && a->node != TTI_NODE_NONE &&
			    b->node != TTI_NODE_NONE)
				assert_true(linted.graph->nodes[a->node].line <=
					    linted.graph->nodes[b->node].line);
		}
		release(&linted);
	}
	globfree(&files);
}

static void real_faults_of_real_files_are_found(void **state)
{
	static const struct {
		const char *file, *rule;
	} faulty[] = {
		{ "Azure-azhpc-images__ndv2-topo.xml", "numa-same-mask" },
		{ "Timez-zx-nccl-tests__topo_real.v2.xml", "nvlink-zero" },
		{ "azhpc-images__ncv4-topo.xml", "nvlink-no-target" },
		{ "rccl__topo_4p4h.xml", "pci-busid-twice" },
		{ "aws-aws-ofi-nccl__p5.48xl-topo.xml", "pci-uplink-narrow" },
		{ "raw/azhpc-images__ndv4-topo.xml", "gpu-no-driver" },
		{ "raw/aws-aws-ofi-nccl__p5.48xl-topo.v3.xml", "pci-unknown-function" },
	};
	static const char *const clean[] = { "aws-ofi-nccl__p4d-24xl-topo.xml",
					     "azhpc-images__ndv5-topo.xml",
					     "SimAI-SimCCL__topo_8A100_4CX6.xml",
					     "raw/rccl__topo_8p_940.xml" };

	(void)state;
	for (size_t i = 0; i < COUNT(faulty); i++) {
		struct linted linted = lint_doc(doc_of_file(faulty[i].file));

		if (!find(&linted, faulty[i].rule))
			fail_msg("%s: no %s", faulty[i].file, faulty[i].rule);
		release(&linted);
	}
	for (size_t i = 0; i < COUNT(clean); i++) {
		struct linted linted = lint_doc(doc_of_file(clean[i]));

		if (linted.lint->n)
			fail_msg("%s: %s", clean[i], linted.lint->at[0].what);
		release(&linted);
	}
}

/* -- Any input ------------------------------------------------------------------------------------ */

static void random_machines_are_linted(void **state)
{
	size_t findings = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct linted linted = lint_doc(random_topo(seed));

		for (size_t i = 0; i < linted.lint->n; i++) {
			const struct tti_finding *finding = &linted.lint->at[i];

			assert_true(*finding->place && *finding->what && *finding->consequence);
			assert_true(finding->have_gbps >= 0 &&
				    finding->have_gbps <= finding->want_gbps);
		}
		findings += linted.lint->n;
		release(&linted);
	}
	assert_true(findings > 1000);
}

static void too_many_pairs_are_not_looked_at(void **state)
{
	struct tti_strbuf text = { 0 };
	struct linted linted;

	(void)state;
	tti_strbuf_add(&text, "<cpu numaid='0'>");
	for (unsigned i = 0; i < 2500; i++)
		tti_strbuf_addf(&text,
				"<pci busid='%04x:%02x:00.0' class='0x030200'/>"
				"<pci busid='%04x:%02x:01.0'><nic><net name='n%u'/></nic></pci>",
				i >> 8, i & 255, i >> 8, i & 255, i);
	tti_strbuf_add(&text, "</cpu>");
	assert_false(text.failed);
	linted = lint_doc(doc_of_text(text.text));
	assert_non_null(find(&linted, "too-large"));
	assert_non_null(find(&linted, "gpu-no-driver"));
	assert_null(find(&linted, "nic-no-gdr"));
	release(&linted);
	tti_strbuf_release(&text);
}

static void running_out_of_memory_is_an_error(void **state)
{
	struct linted linted = lint_doc(random_topo(4));
	struct tti_lint *lint = NULL;
	int failures = 0;

	(void)state;
	for (unsigned n = 1; !lint && n < 500; n++) {
		tutti_status status;
		char fault[32];

		snprintf(fault, sizeof(fault), "mem:%u", n);
		tti_fault_set(fault);
		status = tti_lint_run(linted.doc, linted.graph, linted.paths, linted.routes, &lint);
		tti_fault_set(NULL);
		assert_true(status == TUTTI_OK || status == TUTTI_ENOMEM);
		failures += status == TUTTI_ENOMEM;
	}
	assert_non_null(lint);
	assert_true(failures > 10);
	tti_lint_free(lint);
	release(&linted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_machine_has_no_findings),
		cmocka_unit_test(each_fault_is_told_with_its_figures),
		cmocka_unit_test(what_is_no_fault_is_not_told),
		cmocka_unit_test(every_rule_has_a_fault),
		cmocka_unit_test(the_nearest_name_is_proposed),
		cmocka_unit_test(a_name_is_told_once),
		cmocka_unit_test(errors_come_first_then_places),
		cmocka_unit_test(real_faults_of_real_files_are_found),
		cmocka_unit_test(random_machines_are_linted),
		cmocka_unit_test(too_many_pairs_are_not_looked_at),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
