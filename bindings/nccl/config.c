/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of communicators, as each release of NCCL had them, and of calls. */
#include "binding.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct layout {
	unsigned int since;
	size_t nbytes;
};

static const struct layout layouts[] = {
#define FIELD(name, kind, offset, since)
#define LAYOUT(since, nbytes, last, release) { since, nbytes },
#include "config_layouts.def"
#undef FIELD
#undef LAYOUT
};

#define INT_FIELD(name, least, most)                             \
	{                                                        \
#name, offsetof(ncclConfig_t, name), least, most \
	}

/* The values that an int field may have if it is set. */
static const struct range {
	const char *name;
	size_t offset;
	int least, most;
} ranges[] = {
	INT_FIELD(blocking, 0, 1),
	INT_FIELD(cgaClusterSize, 0, INT_MAX),
	INT_FIELD(minCTAs, 1, INT_MAX),
	INT_FIELD(maxCTAs, 1, INT_MAX),
	INT_FIELD(splitShare, 0, 1),
	INT_FIELD(trafficClass, 0, 255),
	INT_FIELD(collnetEnable, 0, 1),
	INT_FIELD(CTAPolicy, 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO),
	INT_FIELD(shrinkShare, 0, 1),
	INT_FIELD(nvlsCTAs, 1, INT_MAX),
	INT_FIELD(nChannelsPerNetPeer, 1, INT_MAX),
	INT_FIELD(nvlinkCentricSched, 0, 1),
	INT_FIELD(graphUsageMode, 0, 2),
	INT_FIELD(numRmaCtx, 0, INT_MAX),
	INT_FIELD(maxP2pPeers, 1, INT_MAX),
	INT_FIELD(graphStreamOrdering, 0, 1),
	INT_FIELD(launchOrderImplicit, 0, 1),
	INT_FIELD(numRmaSig, 0, INT_MAX),
	INT_FIELD(rmaEagerInit, 0, 1),
	INT_FIELD(hostCftMode, ncclHostCftEnable, ncclHostCftFallback),
	INT_FIELD(nvlsHostMode, 0, INT_MAX),
};

static const struct layout *find_layout(unsigned int version)
{
	const struct layout *found = NULL;

	for (size_t at = 0; at < sizeof(layouts) / sizeof(layouts[0]); at++)
		if (layouts[at].since <= version)
			found = &layouts[at];
	return found;
}

/* Where older layouts have padding, newer ones have fields. */
static void unset_fields_after(unsigned int version, ncclConfig_t *config)
{
#define IS_STRING_INT                    0
#define IS_STRING_STRING                 1
#define FIELD(name, kind, offset, since) { offset, since, IS_STRING_##kind },
#define LAYOUT(since, nbytes, last, release)
	static const struct {
		size_t offset;
		unsigned int since;
		int is_string;
	} fields[] = {
#include "config_layouts.def"
	};
#undef FIELD
#undef LAYOUT
	static const int unset = NCCL_CONFIG_UNDEF_INT;
	static const char *const none = NCCL_CONFIG_UNDEF_PTR;

	for (size_t at = 0; at < sizeof(fields) / sizeof(fields[0]); at++) {
		char *field = (char *)config + fields[at].offset;

		if (fields[at].since <= version)
			continue;
		if (fields[at].is_string)
			memcpy(field, &none, sizeof(none));
		else
			memcpy(field, &unset, sizeof(unset));
	}
}

static ncclResult_t check_ranges(const ncclConfig_t *config)
{
	for (size_t at = 0; at < sizeof(ranges) / sizeof(ranges[0]); at++) {
		const struct range *range = &ranges[at];
		int value;

		memcpy(&value, (const char *)config + range->offset, sizeof(value));
		if (value == NCCL_CONFIG_UNDEF_INT ||
		    (value >= range->least && value <= range->most))
			continue;
		if (range->most == INT_MAX)
			return tti_nccl_fail(NULL, ncclInvalidArgument,
					     "config->%s is %d: %d or more, or unset", range->name,
					     value, range->least);
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->%s is %d: %d to %d, or unset", range->name, value,
				     range->least, range->most);
	}
	if (config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
	    config->minCTAs > config->maxCTAs)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->minCTAs is %d, more than config->maxCTAs, %d",
				     config->minCTAs, config->maxCTAs);
	/* Unset, which is negative, is 1. */
	if ((long long)(config->numRmaCtx > 0 ? config->numRmaCtx : 1) *
		    (config->numRmaSig > 0 ? config->numRmaSig : 1) >
	    TUTTI_SIGNALS_MOST)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->numRmaCtx is %d and config->numRmaSig %d: %d signals "
				     "in all are possible",
				     config->numRmaCtx, config->numRmaSig, TUTTI_SIGNALS_MOST);
	return ncclSuccess;
}

ncclResult_t tti_nccl_config_read(const ncclConfig_t *config, ncclConfig_t *out)
{
	const struct layout *layout;

	*out = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_API_MAGIC)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->magic is 0x%x: begin with NCCL_CONFIG_INITIALIZER",
				     config->magic);
	layout = find_layout(config->version);
	if (!layout)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->version is %u: no NCCL before 2.14 has a config",
				     config->version);
	if (config->size < layout->nbytes)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "config->size is %zu: NCCL %u has %zu bytes", config->size,
				     config->version, layout->nbytes);
	memcpy(out, config, layout->nbytes);
	unset_fields_after(config->version, out);
	out->size = sizeof(*out);
	out->version = NCCL_VERSION_CODE;
	return check_ranges(out);
}

void tti_nccl_config_use(const ncclConfig_t *config, tutti_config *out)
{
	const char *blocking = tti_nccl_variable("NCCL_COMM_BLOCKING");

	*out = (tutti_config)TUTTI_CONFIG_INIT;
	out->name = config->commName;
	if (blocking && (!strcmp(blocking, "0") || !strcmp(blocking, "1")))
		out->blocking = *blocking == '1';
	else if (config->blocking != NCCL_CONFIG_UNDEF_INT)
		out->blocking = config->blocking;
	if (config->trafficClass != NCCL_CONFIG_UNDEF_INT)
		out->traffic_class = config->trafficClass;
	/* NCCL's name for what Tutti always does between hosts. */
	if (config->netName && strcasecmp(config->netName, "Socket") != 0)
		out->transport = config->netName;
}

ncclResult_t tti_nccl_call_config_check(ncclComm_t comm, const ncclCollConfig_t *config,
					cudaStream_t stream)
{
	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_API_MAGIC || config->size < sizeof(*config))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the config of a call has magic 0x%x and %zu bytes: begin "
				     "with NCCL_COLLCONFIG_INITIALIZER",
				     config->magic, config->size);
	if ((config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->minCTAs < 1) ||
	    (config->maxCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs < 1) ||
	    (config->nvlsCTAs != NCCL_CONFIG_UNDEF_INT && config->nvlsCTAs < 1))
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the config of a call asks for %d to %d CTAs, %d for NVLS: 1 "
				     "or more, or unset",
				     config->minCTAs, config->maxCTAs, config->nvlsCTAs);
	if (config->ext)
		return tti_nccl_fail(comm, ncclInvalidUsage,
				     "the config of a call has option %d of vendor %d: there are "
				     "no such options here",
				     config->ext->key.optionId, config->ext->key.vendorId);
	if (config->forceAlgSelection != 0 && config->forceAlgSelection != 1)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "the config of a call has forceAlgSelection %d: 0 or 1",
				     config->forceAlgSelection);
	if (config->launchCompletionEvent && !tti_nccl_has_runtime() && !comm->has_kernels)
		return tti_nccl_fail(comm, ncclInvalidArgument,
				     "an event on stream %p needs a CUDA runtime: "
				     "cudaEventRecord() is not in this process",
				     (void *)stream);
	return ncclSuccess;
}

/* -- Algorithms of a call ------------------------------------------------------------------ */

/* Translate a word of NCCL: RING, or RING_LL, as there are no protocols here. Other words are
 * looked up as they are, so that a program can name algorithms that only Tutti has. False: too long
 * for a name. */
static bool take_word(const char *word, size_t len, char *out, size_t size)
{
	static const struct {
		const char *nccl, *tutti;
	} names[] = { { "ring", "ring" }, { "tree", "double_tree" } };
	static const char *const protocols[] = { "_ll", "_ll128", "_simple" };

	if (len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)word[i]);
	out[len] = '\0';
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		char *tail = strrchr(out, '_');

		if (tail && !strcmp(tail, protocols[i]))
			*tail = '\0';
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(out, names[i].nccl))
			(void)snprintf(out, size, "%s", names[i].tutti);
	return true;
}

/* Add a name to out, if the collective has it. */
static tutti_status add_name(ncclComm_t comm, const char *coll, const char *name,
			     char out[TTI_NCCL_ALGORITHMS])
{
	char text[TTI_NCCL_ALGORITHMS];
	const char *sign = *out ? "," : ":";
	const int len = snprintf(text, sizeof(text), "%s%s%s", *out ? out : coll, sign, name);
	tutti_status st;

	if (len >= (int)sizeof(text))
		return TUTTI_EINVAL;
	st = tutti_comm_set_algorithm(comm->comm, text);
	if (st == TUTTI_OK)
		memcpy(out, text, (size_t)len + 1);
	return st;
}

ncclResult_t tti_nccl_call_algorithms(ncclComm_t comm, const ncclCollConfig_t *config,
				      tutti_collective coll, char out[TTI_NCCL_ALGORITHMS])
{
	const char *at = config ? config->algSelection : NULL;
	const char *name = tutti_collective_name(coll);
	tutti_status st = TUTTI_OK;

	*out = '\0';
	if (!at || !*at)
		return ncclSuccess;
	while (*at && (st == TUTTI_OK || st == TUTTI_EINVAL)) {
		const size_t len = strcspn(at, ", ");
		char word[64];

		if (len > 0 && take_word(at, len, word, sizeof(word)))
			st = add_name(comm, name, word, out);
		at += len + (at[len] != '\0');
	}
	if (st == TUTTI_OK || st == TUTTI_EINVAL)
		st = tutti_comm_set_algorithm(comm->comm, NULL);
	if (st != TUTTI_OK)
		return tti_nccl_report(comm, st);
	if (!*out && config->forceAlgSelection)
		return tti_nccl_fail(
			comm, ncclInvalidUsage,
			"algSelection \"%s\" names no algorithm that %s has here: name "
			"another, as RING or TREE (`tutti show %s` lists them), or set "
			"forceAlgSelection to 0",
			config->algSelection, name, name);
	return ncclSuccess;
}
