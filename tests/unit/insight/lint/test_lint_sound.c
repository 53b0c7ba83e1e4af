/* SPDX-License-Identifier: BSD-3-Clause */
/* What lint says on sound machines that look odd, and to owners of AMD's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "insight/lint/lint.h"
#include "linted.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void remedies_are_those_of_the_vendor(void **state)
{
	static const struct {
		const char *rule, *from, *to;
	} cases[] = {
		{ "gpu-no-gdr", "gdr='1'>", "gdr='0'>" },
		{ "nvlink-zero", "count='4'", "count='0'" },
		{ "gpu-no-p2p", GPU_0,
		  "<gpu dev='0' rank='0' sm='80' gdr='1' tutti_no_p2p='0000:21:00.0'>" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int amd = 0; amd < 2; amd++) {
			struct linted linted =
				lint_doc(changed(cases[i].from, cases[i].to, "vendor='0x10de'",
						 amd ? "vendor='0x1002'" : "vendor='0x10de'"));
			const struct tti_finding *finding = find(&linted, cases[i].rule);

			assert_non_null(finding);
			assert_int_equal(strstr(finding->remedy, "nvidia") == NULL, amd);
			assert_int_equal(strstr(finding->remedy, "rocm-smi") ||
						 strstr(finding->remedy, "amdgpu"),
					 amd);
			release(&linted);
		}
}

/* How many findings of a rule a host of n GPUs has, each pair of neighbours `counts` of
 * links apart, as a MI250X has. */
static int count_fewer(int n, int lower, int every)
{
	struct tti_strbuf text = { 0 };
	struct linted linted;
	int found = 0;

	tti_strbuf_add(&text, "<cpu numaid='0' affinity='f'>");
	for (int i = 0; i < n; i++)
		tti_strbuf_addf(&text,
				"<pci busid='0000:%02x:00.0' vendor='0x1002' " FAST
				"><gpu dev='%d' sm='90' gcn='gfx90a'><xgmi target='0000:f0:00.0' "
				"count='%d' tclass='0x068000'/></gpu></pci>",
				i + 1, i, i % every ? 7 : lower);
	tti_strbuf_add(&text, "</cpu>");
	linted = lint_doc(doc_of_text(text.text));
	tti_strbuf_release(&text);
	for (size_t i = 0; i < linted.lint->n; i++)
		if (strcmp(linted.lint->at[i].rule, "nvlink-fewer") == 0) {
			assert_non_null(strstr(linted.lint->at[i].what, "xGMI links, where"));
			found++;
		}
	release(&linted);
	return found;
}

static void links_that_differ_by_design_are_no_fault(void **state)
{
	(void)state;
	assert_int_equal(count_fewer(8, 6, 2), 0);
	assert_int_equal(count_fewer(8, 7, 2), 0);
	assert_int_equal(count_fewer(8, 6, 8), 1); /* one is broken */
	assert_int_equal(count_fewer(8, 6, 4), 2); /* both ends of a link */
	assert_int_equal(count_fewer(4, 6, 2), 2);
	assert_int_equal(count_fewer(9, 6, 3), 3);
}

/* Detected on a virtual machine with a virtio network card: its owner has nothing to mend. */
static void a_plain_virtual_machine_is_in_order(void **state)
{
	static const char *const links[] = { "", "link_speed='2.5 GT/s PCIe' link_width='1'" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct tti_strbuf text = { 0 };
		struct linted linted;

		tti_strbuf_addf(&text,
				"<cpu numaid='0' affinity='3' arch='x86_64' vendor='GenuineIntel' "
				"familyid='6' modelid='167' tutti_package='0' tutti_distances='10' "
				"tutti_mem_mib='10842'><pci busid='0000:00:03.0' class='0x020000' "
				"vendor='0x1af4' device='0x1041' %s><nic><net name='eth0' dev='0' "
				"speed='-1' port='1' gdr='0'/></nic></pci></cpu>",
				links[i]);
		linted = lint_doc(doc_of_text(text.text));
		tti_strbuf_release(&text);
		assert_int_equal(linted.lint->n, 1);
		assert_string_equal(linted.lint->at[0].rule, "net-speed-unknown");
		assert_int_equal(linted.lint->at[0].severity, TTI_SEVERITY_NOTE);
		release(&linted);
	}
}

/* Of a GB300 tray: what the switch has no lanes for goes over C2C. */
static void an_uplink_beside_c2c_may_be_narrow(void **state)
{
	struct linted linted;

	(void)state;
	linted = lint_doc(changed(TOP_A, NARROW_TOP, LINK, "<c2c bw='44712' count='5'/>" LINK));
	assert_null(find(&linted, "pci-uplink-narrow"));
	release(&linted);
	linted = lint_doc(changed(TOP_A, NARROW_TOP, LINK, "<c2c bw='4471' count='5'/>" LINK));
	assert_non_null(find(&linted, "pci-uplink-narrow"));
	release(&linted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remedies_are_those_of_the_vendor),
		cmocka_unit_test(links_that_differ_by_design_are_no_fault),
		cmocka_unit_test(a_plain_virtual_machine_is_in_order),
		cmocka_unit_test(an_uplink_beside_c2c_may_be_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
