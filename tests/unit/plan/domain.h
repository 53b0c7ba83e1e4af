/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_PLAN_DOMAIN_H
#define TESTS_UNIT_PLAN_DOMAIN_H

/* Topologies of Grace trays, whose GPUs NVLink connects across hosts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/insight/plan/plan_text.h"

/* A tray: two GPUs, each on its NVLink switches and on its CPU by C2C, and two NICs. */
struct tray {
	const char *host;   /* its host_hash                                */
	const char *fabric; /* NULL: the file does not say which NVLink domain */
	const char *nics;   /* how their names begin                        */
};

static inline void tray_write_gpu(FILE *to, const struct tray *tray, int dev)
{
	fprintf(to,
		"<pci busid=\"000%d:06:00.0\" class=\"0x030200\" link_speed=\"64.0 GT/s PCIe\" "
		"link_width=\"16\"><gpu dev=\"%d\" sm=\"100\" gdr=\"1\"",
		dev, dev);
	if (tray->fabric)
		fprintf(to, " tutti_fabric=\"%s\"", tray->fabric);
	fprintf(to, "><nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>"
		    "<c2c bw=\"44712\" count=\"5\"/></gpu></pci>\n");
}

static inline void tray_write(FILE *to, const struct tray *tray)
{
	fprintf(to, "<cpu numaid=\"0\" host_hash=\"%s\" affinity=\"ffffffff\" arch=\"arm64\">\n",
		tray->host);
	for (int dev = 0; dev < 2; dev++)
		tray_write_gpu(to, tray, dev);
	for (int nic = 0; nic < 2; nic++)
		fprintf(to,
			"<pci busid=\"001%d:01:00.0\" class=\"0x020000\" "
			"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"%s%d\" "
			"dev=\"%d\" speed=\"400000\" port=\"1\" gdr=\"1\"/></nic></pci>\n",
			nic, tray->nics, nic, nic);
	fprintf(to, "</cpu>\n");
}

/* A file below /tmp, open for writing. */
static inline FILE *domain_create(char path[32])
{
	FILE *file;

	snprintf(path, 32, "/tmp/tutti-plan-XXXXXX");
	file = fdopen(mkstemp(path), "we");
	assert_non_null(file);
	return file;
}

/* The topology of trays in one file, as NCCL dumps that of an NVLink domain. */
static inline tutti_topo_t domain_load(const struct tray *trays, size_t n)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = NULL;
	char path[32];
	FILE *file = domain_create(path);

	fprintf(file, "<system version=\"1\">\n");
	for (size_t i = 0; i < n; i++)
		tray_write(file, &trays[i]);
	fprintf(file, "</system>\n");
	assert_int_equal(fclose(file), 0);
	config.xml_file = path;
	config.name = "trays.xml";
	if (tutti_topo_load(&config, &topo) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	unlink(path);
	return topo;
}

static inline void domain_expect(tutti_plan_t plan, tutti_plan_format format, const char *words)
{
	char *text = plan_text(plan, format);

	if (!strstr(text, words))
		fail_msg("'%s' is not in\n%s", words, text);
	free(text);
}

static inline void domain_expect_carried(tutti_plan_t plan)
{
	char *text = NULL;
	int nfindings = -1;

	assert_int_equal(tutti_plan_check(plan, &text, &nfindings), TUTTI_OK);
	if (nfindings)
		fail_msg("%s", text);
	free(text);
}

#endif
