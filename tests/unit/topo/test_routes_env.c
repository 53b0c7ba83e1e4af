/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/paths/routes.h"

/* The environment is read once: each case is a process of its own. */
static void expect_in_child(const char *variable, const char *value,
			    bool (*fits)(const struct tti_routes_config *))
{
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct tti_routes_config config;

		setenv(variable, value, 1);
		config = tti_routes_config_from_params();
		_exit(fits(&config) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0)
		fail_msg("%s=%s has not had its effect", variable, value);
}

static bool p2p_sys(const struct tti_routes_config *config)
{
	return config->p2p_level == TTI_PATH_SYS && !config->p2p_auto;
}

static bool p2p_stated(const struct tti_routes_config *config)
{
	return config->p2p_level == TTI_PATH_PXB && !config->p2p_auto;
}

static bool p2p_nvl(const struct tti_routes_config *config)
{
	return config->p2p_level == TTI_PATH_NVL && !config->p2p_auto;
}

static bool p2p_off(const struct tti_routes_config *config)
{
	return config->p2p_disable && config->p2p_auto;
}

static bool gdr_phb(const struct tti_routes_config *config)
{
	return config->gdr_level == TTI_PATH_PHB;
}

static bool no_read(const struct tti_routes_config *config)
{
	return config->gdr_read == 0;
}

static bool no_pxn(const struct tti_routes_config *config)
{
	return config->pxn_disable;
}

static bool no_nvb(const struct tti_routes_config *config)
{
	return config->nvb_disable;
}

static bool default_levels(const struct tti_routes_config *config)
{
	return config->p2p_level == TTI_PATH_PXB && config->p2p_auto && !config->p2p_disable &&
	       config->gdr_level == TTI_PATH_PXB && config->gdr_read == -1 &&
	       !config->pxn_disable && !config->nvb_disable;
}

static void variables_have_their_effect(void **state)
{
	(void)state;
	expect_in_child("TUTTI_P2P_LEVEL", "SYS", p2p_sys);
	expect_in_child("TUTTI_P2P_LEVEL", "PXB", p2p_stated);
	expect_in_child("TUTTI_P2P_LEVEL", "NVL", p2p_nvl);
	expect_in_child("NCCL_P2P_LEVEL", "SYS", p2p_sys);
	expect_in_child("TUTTI_P2P_DISABLE", "1", p2p_off);
	expect_in_child("TUTTI_NET_GDR_LEVEL", "PHB", gdr_phb);
	expect_in_child("TUTTI_NET_GDR_READ", "0", no_read);
	expect_in_child("TUTTI_PXN_DISABLE", "1", no_pxn);
	expect_in_child("TUTTI_NVB_DISABLE", "1", no_nvb);
	expect_in_child("TUTTI_DEBUG", "NONE", default_levels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_have_their_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
