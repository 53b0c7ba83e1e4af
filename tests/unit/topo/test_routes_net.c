/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/topo/routed.h"

/* -- GPU and NET ----------------------------------------------------------------------------- */

static void nics_reach_near_gpus(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine = machine_of(TWO_SOCKETS(INTEL), usual);

	(void)state;
	expect(&machine, "GPU0", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "n0", "GPU0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	assert_true(route_of(&machine, "GPU0", "n0")->gdr);
	assert_true(route_of(&machine, "n0", "GPU0")->gdr);
	expect(&machine, "GPU2", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	expect(&machine, "n0", "GPU2", TTI_PATH_PHB, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	expect(&machine, "GPU3", "n0", TTI_PATH_SYS, TTI_ROUTE_GDR_FAR, "HOST1", 10);
	machine_end(&machine);
	config.gdr_level = TTI_PATH_SYS;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU3", "n0", TTI_PATH_SYS, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
	config.gdr_level = TTI_PATH_LOC;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
}

static void both_ends_must_support_gdr(void **state)
{
	struct machine machine =
		machine_of(INTEL(0) SWITCH("01") GPU_WITH("02", 0, 80, 0, "") GPU("03", 1)
				   NIC("04", 0) NIC_WITH("05", 1, 0, 8) END_PCI END_CPU,
			   usual);

	(void)state;
	expect(&machine, "GPU0", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_NO_GPU, "HOST0", 10);
	expect(&machine, "n0", "GPU0", TTI_PATH_PHB, TTI_ROUTE_GDR_NO_GPU, "HOST0", 10);
	expect(&machine, "GPU1", "n1", TTI_PATH_PHB, TTI_ROUTE_GDR_NO_NIC, "HOST0", 10);
	expect(&machine, "n1", "GPU1", TTI_PATH_PHB, TTI_ROUTE_GDR_NO_NIC, "HOST0", 10);
	expect(&machine, "GPU1", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
}

#define OLD_GPUS     \
	INTEL(0)     \
	SWITCH("01") \
	GPU_WITH("02", 0, 70, 1, "") GPU_WITH("03", 1, 70, 1, "") NIC("04", 0) END_PCI END_CPU

static void nics_read_old_gpus_only_if_told_to(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine = machine_of(OLD_GPUS, config);

	(void)state;
	expect(&machine, "GPU0", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_READ_OFF, "HOST0", 10);
	expect(&machine, "n0", "GPU0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
	config.gdr_read = 1;
	machine = machine_of(OLD_GPUS, config);
	expect(&machine, "GPU0", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
	config.gdr_read = 0;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_READ_OFF, "HOST0", 10);
	machine_end(&machine);
	/* One GPU alone, or one with NVLinks. */
	machine = machine_of(INTEL(0) SWITCH("01") GPU_WITH("02", 0, 70, 1, "") NIC("04", 0)
				     END_PCI END_CPU,
			     usual);
	expect(&machine, "GPU0", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
	machine = machine_of(INTEL(0) SWITCH("01") GPU_WITH("02", 0, 70, 1, NVLINK("03", 1))
				     GPU_WITH("03", 1, 70, 1, NVLINK("02", 1)) NIC("04", 0)
					     END_PCI END_CPU,
			     usual);
	expect(&machine, "GPU0", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
}

static void c2c_counts_as_near(void **state)
{
	static const char inside[] =
		INTEL(0) GPU_WITH("01", 0, 90, 1, "<c2c bw=\"40000\" count=\"10\"/>") SWITCH("03")
			NIC("04", 0) END_PCI END_CPU;
	struct tti_routes_config config = usual;
	struct machine machine = machine_of(inside, config);

	(void)state;
	expect(&machine, "GPU0", "n0", TTI_PATH_P2C, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "n0", "GPU0", TTI_PATH_P2C, TTI_ROUTE_WIRED, NULL, 10);
	assert_true(route_of(&machine, "GPU0", "n0")->gdr);
	machine_end(&machine);
	config.gdr_level = TTI_PATH_PIX;
	machine = machine_of(inside, config);
	expect(&machine, "GPU0", "n0", TTI_PATH_PHB, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
}

/* -- PXN -------------------------------------------------------------------------------------- */

/* Two GPUs with NVLinks, each with a NIC of its own below a switch, on two sockets. */
#define PXN_PAIR(gdr)                                                                     \
	INTEL(0)                                                                          \
	SWITCH("01")                                                                      \
	GPU_WITH("02", 0, 80, 1, NVLINK("12", 4))                                         \
	NIC("03", 0)                                                                      \
	END_PCI END_CPU INTEL(1) SWITCH("11") GPU_WITH("12", 1, 80, gdr, NVLINK("02", 4)) \
		NIC("13", 1) END_PCI END_CPU

static void a_gpu_beside_the_nic_hands_over(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine = machine_of(PXN_PAIR(1), config);

	(void)state;
	expect(&machine, "GPU0", "n1", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU1", 10);
	expect(&machine, "GPU1", "n0", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU0", 10);
	assert_true(route_of(&machine, "GPU0", "n1")->gdr);
	expect(&machine, "GPU0", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	/* Receiving does not. */
	expect(&machine, "n1", "GPU0", TTI_PATH_SYS, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
	config.pxn_disable = true;
	machine = machine_of(PXN_PAIR(1), config);
	expect(&machine, "GPU0", "n1", TTI_PATH_SYS, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
	config = usual;
	config.p2p_disable = true;
	machine = machine_of(PXN_PAIR(1), config);
	expect(&machine, "GPU0", "n1", TTI_PATH_SYS, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
	/* The other GPU cannot. */
	machine = machine_of(PXN_PAIR(0), usual);
	expect(&machine, "GPU0", "n1", TTI_PATH_SYS, TTI_ROUTE_GDR_FAR, "HOST0", 10);
	machine_end(&machine);
}

/* GPU0 is as near to the NIC as GPU1, but by a narrow link. */
static void a_wider_way_is_worth_handing_over(void **state)
{
	struct machine machine = machine_of(
		INTEL(0) SWITCH(
			"01") "<pci busid=\"0000:02:00.0\" "
			      "class=\"0x030200\" " LINK(
				      2) "<gpu dev=\"0\" sm=\"80\" "
					 "gdr=\"1\">" NVLINK(
						 "03", 1) "</gpu></"
							  "pci>" GPU_WITH("0"
									  "3",
									  1, 80, 1, NVLINK("02", 1))
								  NIC("04", 0) END_PCI END_CPU,
		usual);

	(void)state;
	expect(&machine, "GPU0", "n0", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU1", 10);
	expect(&machine, "GPU1", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "n0", "GPU0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 3);
	machine_end(&machine);
}

/* Of two GPUs that are equally near to two NICs each takes one. */
static void equally_near_gpus_take_turns(void **state)
{
	struct machine machine =
		machine_of(INTEL(0) SWITCH("01") MESH_GPU("02", 0) MESH_GPU("03", 1) NIC("04", 0)
				   NIC("05", 1) END_PCI END_CPU INTEL(1) SWITCH("11")
					   MESH_GPU("12", 2) NIC("14", 2) END_PCI END_CPU,
			   usual);

	(void)state;
	expect(&machine, "GPU2", "n0", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU0", 10);
	expect(&machine, "GPU2", "n1", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU1", 10);
	expect(&machine, "GPU0", "n2", TTI_PATH_PXN, TTI_ROUTE_PXN, "GPU2", 10);
	expect(&machine, "GPU1", "n0", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nics_reach_near_gpus),
		cmocka_unit_test(both_ends_must_support_gdr),
		cmocka_unit_test(nics_read_old_gpus_only_if_told_to),
		cmocka_unit_test(c2c_counts_as_near),
		cmocka_unit_test(a_gpu_beside_the_nic_hands_over),
		cmocka_unit_test(a_wider_way_is_worth_handing_over),
		cmocka_unit_test(equally_near_gpus_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
