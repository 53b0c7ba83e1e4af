/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of the environment: those of NCCL that have an effect here, and the functions by which
 * a program reads them. */
#include "binding.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern char **environ;

/* NCCL_X is TUTTI_X. `by_tutti`: Tutti reads both names itself. */
static const struct {
	const char *nccl, *tutti;
	bool by_tutti;
} shared[] = {
	{ "NCCL_COMM_ID", "TUTTI_COMM_ID", false },
	{ "NCCL_SOCKET_IFNAME", "TUTTI_SOCKET_IFNAME", false },
	{ "NCCL_SOCKET_FAMILY", "TUTTI_SOCKET_FAMILY", false },
	{ "NCCL_DEBUG_FILE", "TUTTI_DEBUG_FILE", false },
	{ "NCCL_HOSTID", "TUTTI_HOST_ID", false },
	{ "NCCL_DEBUG", "TUTTI_DEBUG", true },
	{ "NCCL_TOPO_FILE", "TUTTI_TOPO_FILE", true },
	{ "NCCL_TOPO_DUMP_FILE", "TUTTI_TOPO_DUMP_FILE", true },
	{ "NCCL_P2P_LEVEL", "TUTTI_P2P_LEVEL", true },
	{ "NCCL_P2P_DISABLE", "TUTTI_P2P_DISABLE", true },
	{ "NCCL_NET_GDR_LEVEL", "TUTTI_NET_GDR_LEVEL", true },
	{ "NCCL_NET_GDR_READ", "TUTTI_NET_GDR_READ", true },
	{ "NCCL_PXN_DISABLE", "TUTTI_PXN_DISABLE", true },
	{ "NCCL_NVB_DISABLE", "TUTTI_NVB_DISABLE", true },
};

#define NSHARED (sizeof(shared) / sizeof(shared[0]))

/* Read here alone. */
static const char *const own[] = { "NCCL_COMM_BLOCKING", "NCCL_MULTI_RANK_GPU_ENABLE" };

#define NOWN (sizeof(own) / sizeof(own[0]))

const char *tti_nccl_variable(const char *name)
{
	const size_t len = strlen(name);

	for (char *const *entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, name, len) && (*entry)[len] == '=')
			return (*entry)[len + 1] ? *entry + len + 1 : NULL;
	return NULL;
}

/* Tutti reads its variables once, at its first use, so they must be set before. */
__attribute__((constructor)) static void share_variables(void)
{
	for (size_t at = 0; at < NSHARED; at++) {
		const char *value = shared[at].by_tutti ? NULL : tti_nccl_variable(shared[at].nccl);

		if (value)
			(void)setenv(shared[at].tutti, value, 0);
	}
}

static bool is_known(const char *entry)
{
	const size_t len = strcspn(entry, "=");

	for (size_t at = 0; at < NSHARED; at++)
		if (strlen(shared[at].nccl) == len && !strncmp(shared[at].nccl, entry, len))
			return true;
	for (size_t at = 0; at < NOWN; at++)
		if (strlen(own[at]) == len && !strncmp(own[at], entry, len))
			return true;
	return false;
}

void tti_nccl_variables_tell(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&told))
		return;
	for (char *const *entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, "NCCL_", strlen("NCCL_")) && !is_known(*entry))
			tti_nccl_info("%.*s is set, and means nothing here",
				      (int)strcspn(*entry, "="), *entry);
}

/* -- Reading them by functions ------------------------------------------------- */

/* One parameter of Tutti, by either name. A handle is the address of one. */
struct ncclParamHandle {
	char name[64];
	int index; /* of tutti_param_get() */
};

#define PARAMS_MOST 256

static struct {
	pthread_once_t once;
	struct ncclParamHandle params[PARAMS_MOST];
	const char *names[PARAMS_MOST];
	int n;
} table = { .once = PTHREAD_ONCE_INIT };

static void add_param(const char *name, int index)
{
	struct ncclParamHandle *param = &table.params[table.n];

	if (table.n == PARAMS_MOST)
		return;
	(void)snprintf(param->name, sizeof(param->name), "%s", name);
	param->index = index;
	table.names[table.n++] = param->name;
}

static void make_table(void)
{
	tutti_param_info info;

	for (int index = 0; tutti_param_get(index, &info) == TUTTI_OK; index++) {
		add_param(info.variable, index);
		for (size_t at = 0; at < NSHARED; at++)
			if (!strcmp(shared[at].tutti, info.variable))
				add_param(shared[at].nccl, index);
	}
}

static bool find_param(const char *name, ncclParamHandle_t *out)
{
	(void)pthread_once(&table.once, make_table);
	for (int at = 0; name && at < table.n; at++)
		if (!strcmp(table.params[at].name, name)) {
			*out = &table.params[at];
			return true;
		}
	return false;
}

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *name)
{
	if (!out || !name)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the handle or the name is NULL");
	if (!find_param(name, out))
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "there is no parameter %s: `tutti env` lists them", name);
	return ncclSuccess;
}
ALSO_NAMED(ncclParamBind);

static ncclResult_t read_param(ncclParamHandle_t param, const void *out, tutti_param_info *info)
{
	if (!param || !out)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the handle or the result is NULL");
	return tti_nccl_report(NULL, tutti_param_get(param->index, info));
}

/* Read a number as Tutti writes it: K, M and G are powers of 1024. */
static bool parse_number(const char *text, int64_t *out)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		const int64_t factor = INT64_C(1) << (10 * (unit - units + 1));

		if (*out > INT64_MAX / factor || *out < INT64_MIN / factor)
			return false;
		*out *= factor;
		end++;
	}
	return *end == '\0';
}

static ncclResult_t read_number(ncclParamHandle_t param, const void *out, int64_t least,
				uint64_t most, int64_t *number)
{
	tutti_param_info info;
	const ncclResult_t result = read_param(param, out, &info);

	if (result != ncclSuccess)
		return result;
	if (!parse_number(info.value, number))
		return tti_nccl_fail(NULL, ncclInvalidArgument, "%s is \"%s\", which is no number",
				     param->name, info.value);
	if (*number < least || (*number > 0 && (uint64_t)*number > most))
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "%s is %s: the type that was asked for does not hold it",
				     param->name, info.value);
	return ncclSuccess;
}

#define GET_NUMBER(suffix, type, least, most)                                              \
	ncclResult_t pncclParamGet##suffix(ncclParamHandle_t param, type *out)             \
	{                                                                                  \
		int64_t number = 0;                                                        \
		const ncclResult_t result = read_number(param, out, least, most, &number); \
                                                                                           \
		if (result == ncclSuccess)                                                 \
			*out = (type)number;                                               \
		return result;                                                             \
	}                                                                                  \
	ALSO_NAMED(ncclParamGet##suffix)

GET_NUMBER(I8, int8_t, INT8_MIN, INT8_MAX);
GET_NUMBER(I16, int16_t, INT16_MIN, INT16_MAX);
GET_NUMBER(I32, int32_t, INT32_MIN, INT32_MAX);
GET_NUMBER(I64, int64_t, INT64_MIN, INT64_MAX);
GET_NUMBER(U8, uint8_t, 0, UINT8_MAX);
GET_NUMBER(U16, uint16_t, 0, UINT16_MAX);
GET_NUMBER(U32, uint32_t, 0, UINT32_MAX);
GET_NUMBER(U64, uint64_t, 0, UINT64_MAX);

ncclResult_t pncclParamGetStr(ncclParamHandle_t param, const char **out)
{
	tutti_param_info info;
	const ncclResult_t result = read_param(param, out, &info);

	if (result == ncclSuccess)
		*out = info.value;
	return result;
}
ALSO_NAMED(ncclParamGetStr);

/* The text with its terminating 0. The program takes a value by its own type. */
ncclResult_t pncclParamGet(ncclParamHandle_t param, void *out, int nbytes, int *nbytes_out)
{
	tutti_param_info info;
	const ncclResult_t result = read_param(param, out, &info);
	size_t length;

	if (result != ncclSuccess)
		return result;
	length = strlen(info.value) + 1;
	if (nbytes_out)
		*nbytes_out = (int)length;
	if (nbytes < 0 || (size_t)nbytes < length)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "the value of %s has %zu bytes: a buffer of %d is too small",
				     param->name, length, nbytes);
	memcpy(out, info.value, length);
	return ncclSuccess;
}
ALSO_NAMED(ncclParamGet);

ncclResult_t pncclParamGetParameter(const char *name, const char **out, int *length_out)
{
	ncclParamHandle_t param = NULL;
	ncclResult_t result = pncclParamBind(&param, name);

	if (result == ncclSuccess)
		result = pncclParamGetStr(param, out);
	if (result == ncclSuccess && length_out)
		*length_out = (int)strlen(*out);
	return result;
}
ALSO_NAMED(ncclParamGetParameter);

ncclResult_t pncclParamGetAllParameterKeys(const char ***out, int *n_out)
{
	if (!out || !n_out)
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "the names or their number is NULL");
	(void)pthread_once(&table.once, make_table);
	*out = table.names;
	*n_out = table.n;
	return ncclSuccess;
}
ALSO_NAMED(ncclParamGetAllParameterKeys);

void pncclParamDumpAll(void)
{
	tutti_param_info info;

	for (int index = 0; tutti_param_get(index, &info) == TUTTI_OK; index++)
		(void)fprintf(stderr, "tutti nccl %s=%s%s\n", info.variable, info.value,
			      info.is_set ? "" : " (default)");
}
ALSO_NAMED(ncclParamDumpAll);

/* -- Encryption ---------------------------------------------------------------- */

ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config)
{
	if (!config)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the config is NULL");
	if (config->magic != NCCL_API_MAGIC || config->size < sizeof(*config))
		return tti_nccl_fail(NULL, ncclInvalidArgument,
				     "the config of the encryption has magic 0x%x and %zu bytes: "
				     "begin with NCCL_ENCRYPTION_CONFIG_INITIALIZER",
				     config->magic, config->size);
	if (config->mode == NCCL_ENCRYPTION_MODE_NONE)
		return ncclSuccess;
	if (config->mode != NCCL_ENCRYPTION_MODE_PSK)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "there is no encryption mode %d",
				     config->mode);
	return tti_nccl_fail(
		NULL, ncclInvalidUsage,
		"Tutti does not encrypt with a key of the program: TUTTI_ENCRYPT=1 "
		"encrypts with one that ranks derive from the secret of the unique id");
}
ALSO_NAMED(ncclSetEncryption);
