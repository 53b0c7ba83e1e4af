/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NIC is on which rail and switch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clusters.h"
/* -- Rails -------------------------------------------------------------------------------- */

static void rails_are_assumed_by_order(void **state)
{
	struct tti_xml_doc *of_h100 = read_file(H100_FILE), *of_mi50 = read_file(MI50_FILE);
	struct tti_xml_doc *of_v100 = read_file(V100_FILE);
	struct tti_cluster *cluster = create();

	(void)state;
	add(cluster, "a", of_h100);
	add(cluster, "b", of_mi50);
	add(cluster, "c", of_v100);
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_ORDER);
	assert_int_equal(cluster->nrails, 8);
	assert_int_equal(rail_of(cluster, "a", "mlx5_5"), 5);
	assert_int_equal(cluster->rails[0].nnics, 2);
	assert_int_equal(cluster->rails[7].nnics, 1);
	assert_float_equal(cluster->rails[7].gbps, 50.0, 1e-9);
	assert_true(cluster->rails[0].slowest_gbps < cluster->rails[0].fastest_gbps);
	assert_true(has_note(cluster, "assumed"));
	expect(cluster, "Rails, from the order of NICs");
	tti_cluster_free(cluster);
	tti_xml_free(of_h100);
	tti_xml_free(of_mi50);
	tti_xml_free(of_v100);
}

static void rails_of_the_xml_count_if_all_state_them(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();

	(void)state;
	set_all(doc, "net", "rail", "1#"); /* 10 to 17 */
	assert_true(tti_xml_set(doc, nth(doc, "net", 7), "rail", "10"));
	add(cluster, "a", doc);
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_XML);
	assert_int_equal(cluster->nrails, 7);
	assert_int_equal(rail_of(cluster, "a", "mlx5_7"), 0);
	assert_int_equal(rail_of(cluster, "a", "mlx5_6"), 6);
	assert_string_equal(cluster->rails[6].name, "16");
	tti_cluster_free(cluster);

	cluster = create();
	assert_true(tti_xml_set(doc, nth(doc, "net", 7), "rail", "-1"));
	add(cluster, "a", doc);
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_ORDER);
	assert_int_equal(rail_of(cluster, "a", "mlx5_7"), 7);
	assert_true(has_note(cluster, "rail= in the XML names 7 of 8 NICs only"));
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

/* 8 subnets; one host has two cables swapped, one has a NIC in a subnet of another. */
static void subnets_are_rails_and_show_crossed_cables(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		set_all(doc, "net", "tutti_subnet", "fd00:#::/64");
		if (i == 4) {
			tti_xml_set(doc, nth(doc, "net", 2), "tutti_subnet", "fd00:3::/64");
			tti_xml_set(doc, nth(doc, "net", 3), "tutti_subnet", "fd00:2::/64");
		}
		snprintf(name, sizeof(name), "node%u", i);
		add(cluster, name, doc);
	}
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_SUBNET);
	assert_int_equal(cluster->nkinds, 1);
	assert_int_equal(cluster->nrails, 8);
	assert_int_equal(rail_of(cluster, "node3", "mlx5_2"), 2);
	assert_int_equal(rail_of(cluster, "node4", "mlx5_2"), 3);
	assert_int_equal(rail_of(cluster, "node4", "mlx5_3"), 2);
	assert_string_equal(cluster->rails[5].name, "fd00:5::/64");
	expect(cluster, "node4 mlx5_2: rail 3, not rail 2");
	expect(cluster, "node4 mlx5_3: rail 2, not rail 3");
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

/* Leaf switches: two for each rail, 4 hosts on each; then one switch for all of a host. */
static void switches_are_groups_and_make_rails(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		char leaf[32];

		snprintf(leaf, sizeof(leaf), "0xb8cef603000%u000#", i / 4);
		set_all(doc, "net", "tutti_switch", leaf);
		snprintf(name, sizeof(name), "n%u", i);
		add(cluster, name, doc);
	}
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_GUID);
	assert_int_equal(cluster->ngroups, 16);
	assert_int_equal(cluster->nrails, 8);
	assert_int_equal(rail_of(cluster, "n0", "mlx5_6"), 6);
	assert_int_equal(rail_of(cluster, "n7", "mlx5_6"), 6);
	assert_int_not_equal(nic_of(cluster, "n0", "mlx5_6")->group,
			     nic_of(cluster, "n7", "mlx5_6")->group);
	assert_int_equal(nic_of(cluster, "n4", "mlx5_6")->group,
			 nic_of(cluster, "n7", "mlx5_6")->group);
	assert_int_equal(cluster->groups[0].nnics, 4);
	assert_true(has_note(cluster, "16 switches make 8 rails"));
	tti_cluster_free(cluster);

	cluster = create();
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 8; k++)
			tti_xml_setf(doc, nth(doc, "net", k), "tutti_switch", "tor%u", i / 2);
		snprintf(name, sizeof(name), "n%u", i);
		add(cluster, name, doc);
	}
	seal(cluster);
	assert_int_equal(cluster->ngroups, 2);
	assert_int_equal(cluster->nrails, 1);
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

/* Some hosts have one more network, and a NIC for it before the others. */
static void a_network_of_some_hosts_is_a_rail_of_its_own(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE), *more = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char name[16];

	(void)state;
	set_all(doc, "net", "tutti_subnet", "10.0.#.0/24");
	for (unsigned i = 0; i < 8; i++)
		tti_xml_setf(more, nth(more, "net", i), "tutti_subnet", "10.0.%u.0/24",
			     i ? i - 1 : 99);
	for (unsigned i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		add(cluster, name, i < 4 ? doc : more);
	}
	seal(cluster);
	assert_int_equal(cluster->nrails, 9);
	assert_int_equal(rail_of(cluster, "n0", "mlx5_0"), 0);
	assert_int_equal(rail_of(cluster, "n5", "mlx5_1"), 0);
	assert_int_equal(rail_of(cluster, "n5", "mlx5_0"), 8);
	tti_cluster_free(cluster);
	tti_xml_free(doc);
	tti_xml_free(more);
}

static void rails_of_a_file_are_the_strongest(void **state)
{
	static const char text[] = "# HOST NIC RAIL GROUP\n"
				   "\n"
				   "* mlx5_0 0 leaf0\n"
				   "* mlx5_1 1\n"
				   "node? mlx5_2\t2   # a comment\r\n"
				   "*ode* mlx5_3 3\n"
				   "* mlx5_4 4\n* mlx5_5 5\n* mlx5_6 6\n"
				   "* mlx5_7 -\n"
				   "node1 mlx5_6 9 leaf9\n"
				   "node2 mlx5_5 1\n"
				   "* mlx5_5 5\n"
				   "gone mlx5_0 3\n";
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char path[32];

	(void)state;
	set_all(doc, "net", "rail", "#");
	set_all(doc, "net", "tutti_switch", "s#");
	write_file(path, text);
	assert_int_equal(tti_cluster_add_many(cluster, "node", 4, doc), TUTTI_OK);
	if (tti_cluster_read_rails(cluster, path) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	unlink(path);
	seal(cluster);
	assert_int_equal(cluster->rail_source, TTI_RAIL_FILE);
	assert_int_equal(cluster->nrails, 8); /* 0 to 6, and 9 */
	assert_int_equal(rail_of(cluster, "node3", "mlx5_3"), 3);
	assert_int_equal(rail_of(cluster, "node3", "mlx5_2"), 2);
	assert_int_equal(rail_of(cluster, "node3", "mlx5_7"), -1);
	assert_int_equal(rail_of(cluster, "node1", "mlx5_6"), 7);
	assert_string_equal(cluster->rails[7].name, "9");
	assert_int_equal(rail_of(cluster, "node2", "mlx5_5"), 5); /* the last line counts */
	assert_true(has_note(cluster, ":14: gone mlx5_0"));
	assert_true(has_note(cluster, ":12: node2 mlx5_5"));
	/* A group of the file, else the switch. */
	assert_string_equal(cluster->groups[nic_of(cluster, "node2", "mlx5_0")->group].name,
			    "leaf0");
	assert_string_equal(cluster->groups[nic_of(cluster, "node2", "mlx5_6")->group].name, "s6");
	assert_string_equal(cluster->groups[nic_of(cluster, "node1", "mlx5_6")->group].name,
			    "leaf9");
	expect(cluster, "node1 mlx5_6: rail 7, not rail 6");
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

static void a_bad_file_of_rails_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "a b\n", ":1: too few words" },
		{ "\n\n* mlx5_0 0 g more\n", ":3: too many words" },
		{ "* mlx5_0 x\n", ":1: 'x' is no rail" },
		{ "* mlx5_0 -3\n", ":1: '-3' is no rail" },
		{ "* mlx5_0 99999999999999999999\n", "is no rail" },
		{ "* mlx5_0 1\n* mlx5_0 70000\n", ":2: '70000' is no rail" },
	};
	struct tti_cluster *cluster = create();
	char path[32];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(path, bad[i].text);
		assert_int_equal(tti_cluster_read_rails(cluster, path), TUTTI_EINVAL);
		assert_non_null(strstr(tti_error_text(), path));
		assert_non_null(strstr(tti_error_text(), bad[i].why));
		unlink(path);
	}
	assert_int_equal(tti_cluster_read_rails(cluster, "/no/such/file"), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "/no/such/file"));
	assert_int_not_equal(tti_cluster_read_rails(cluster, "/tmp"), TUTTI_OK);
	tti_cluster_free(cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rails_are_assumed_by_order),
		cmocka_unit_test(rails_of_the_xml_count_if_all_state_them),
		cmocka_unit_test(subnets_are_rails_and_show_crossed_cables),
		cmocka_unit_test(switches_are_groups_and_make_rails),
		cmocka_unit_test(a_network_of_some_hosts_is_a_rail_of_its_own),
		cmocka_unit_test(rails_of_a_file_are_the_strongest),
		cmocka_unit_test(a_bad_file_of_rails_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
