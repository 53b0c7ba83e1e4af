/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/params_read.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "util/distance.h"
#include "util/error.h"
#include "util/log.h"
#include "util/param_parse.h"
#include "util/params.h"

#define PREFIX      TTI_PARAM_PREFIX
#define SHOWN_BYTES 32

static const struct {
#define X(name, text) char name[sizeof(text)];
	TTI_PARAM_TYPE_MAP(X)
#undef X
} type_text = {
#define X(name, text) .name = text,
	TTI_PARAM_TYPE_MAP(X)
#undef X
};

struct row {
	struct tti_param_desc desc;
	enum tti_param_type type;
	size_t offset; /* in struct tti_param_values */
};

static const struct row rows[] = {
#define PARAM(field, variable, type, def, range, help)    \
	{ { variable, type_text.type, def, range, help }, \
	  TTI_PARAM_##type,                               \
	  offsetof(struct tti_param_values, field) },
#include "util/params.def"
#undef PARAM
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* What the process runs with; written once. */
static struct {
	pthread_once_t once;
	struct tti_param_values params;
	bool is_set[NROWS];
	char shown[NROWS][SHOWN_BYTES]; /* of those that are not strings */
	struct tti_param_notes notes;
} table = { .once = PTHREAD_ONCE_INIT };

TUTTI_PRINTF(2, 3) static void note(struct tti_param_notes *notes, const char *fmt, ...)
{
	const size_t room = sizeof(notes->text) - notes->len;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(notes->text + notes->len, room, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len + 1 >= room) {
		notes->dropped++;
		return;
	}
	notes->len += (size_t)len;
	notes->text[notes->len++] = '\n';
}

static bool is_string(enum tti_param_type type)
{
	return type == TTI_PARAM_STR || type == TTI_PARAM_PATH || type == TTI_PARAM_SECRET;
}

static void store(const struct row *row, const struct tti_param_parsed *value,
		  struct tti_param_values *out)
{
	void *field = (char *)out + row->offset;

	switch (row->type) {
	case TTI_PARAM_INT:
	case TTI_PARAM_MS:
		*(int64_t *)field = value->number;
		break;
	case TTI_PARAM_SIZE:
		*(size_t *)field = (size_t)value->number;
		break;
	case TTI_PARAM_BOOL:
		*(bool *)field = value->number != 0;
		break;
	case TTI_PARAM_ENUM:
		*(int *)field = (int)value->number;
		break;
	case TTI_PARAM_STR:
	case TTI_PARAM_PATH:
	case TTI_PARAM_SECRET:
		*(const char **)field = value->text;
		break;
	}
}

/* Borrowed from env; NULL if unset or empty. The first of two wins, as with
 * getenv(). */
static const char *find(char *const *env, const char *variable)
{
	const size_t len = strlen(variable);

	for (; *env; env++)
		if (!strncmp(*env, variable, len) && (*env)[len] == '=')
			return (*env)[len + 1] ? *env + len + 1 : NULL;
	return NULL;
}

/* What those who come from NCCL have in their scripts, where it means the same:
 * NCCL_X is read where TUTTI_X is not set. */
static const char *const shared_with_nccl[] = {
	"TOPO_FILE",     "TOPO_DUMP_FILE", "P2P_LEVEL",   "P2P_DISABLE",
	"NET_GDR_LEVEL", "NET_GDR_READ",   "PXN_DISABLE", "NVB_DISABLE",
};

/* The value of a row, and the variable that gave it. NULL: none did. */
static const char *find_row(char *const *env, const struct row *row, char *name, size_t size)
{
	const char *bare = row->desc.variable + strlen(PREFIX);
	const char *text = find(env, row->desc.variable);

	(void)snprintf(name, size, "%s", row->desc.variable);
	for (size_t i = 0; !text && i < sizeof(shared_with_nccl) / sizeof(*shared_with_nccl); i++)
		if (!strcmp(shared_with_nccl[i], bare)) {
			(void)snprintf(name, size, "NCCL_%s", bare);
			text = find(env, name);
		}
	return text;
}

/* Returns whether the environment set it. */
static bool read_row(const struct row *row, const char *name, const char *text,
		     struct tti_param_values *out, struct tti_param_notes *notes)
{
	const struct tti_param_desc *desc = &row->desc;
	struct tti_param_parsed value;
	char quoted[80];

	if (text && tti_param_parse(row->type, desc->range, text, &value)) {
		store(row, &value, out);
		return true;
	}
	if (text) {
		tti_param_quote(text, strlen(text), quoted, sizeof(quoted));
		note(notes, "%s=%s is not a value of type %s%s%s; the default %s is used", name,
		     quoted, desc->type, *desc->range ? " within " : "", desc->range, desc->def);
	}
	tti_assert(tti_param_parse(row->type, desc->range, desc->def, &value));
	store(row, &value, out);
	return false;
}

/* NCCL_DEBUG, for those who have it in their scripts. NCCL's VERSION and ABORT
 * lie between NONE and INFO. */
static bool read_nccl_debug(const char *text, struct tti_param_values *out,
			    struct tti_param_notes *notes)
{
	static const struct {
		const char *name;
		enum tti_log_level level;
	} levels[] = { { "NONE", TTI_LOG_NONE },  { "VERSION", TTI_LOG_WARN },
		       { "WARN", TTI_LOG_WARN },  { "INFO", TTI_LOG_INFO },
		       { "ABORT", TTI_LOG_WARN }, { "TRACE", TTI_LOG_TRACE } };
	char quoted[80];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcasecmp(text, levels[i].name)) {
			out->debug = (int)levels[i].level;
			return true;
		}
	tti_param_quote(text, strlen(text), quoted, sizeof(quoted));
	note(notes,
	     "NCCL_DEBUG=%s is not understood (NONE, VERSION, WARN, INFO, ABORT or TRACE); "
	     "WARN is used",
	     quoted);
	return false;
}

/* A name that is none of ours is a typing error more often than not. */
static void note_unknown(const char *entry, struct tti_param_notes *notes)
{
	const size_t len = strcspn(entry, "=");
	const struct row *nearest = NULL, *other = NULL; /* as near */
	int distance = INT_MAX;
	char name[72];

	for (size_t i = 0; i < NROWS; i++)
		if (strlen(rows[i].desc.variable) == len &&
		    !strncmp(rows[i].desc.variable, entry, len))
			return;
	tti_param_quote(entry, len, name, sizeof(name));
	for (size_t i = 0; i < NROWS; i++) {
		const char *variable = rows[i].desc.variable;
		const int d = tti_distance(name, strlen(name), variable, strlen(variable));

		if (d < distance) {
			distance = d;
			nearest = &rows[i];
			other = NULL;
		} else if (d == distance && !other) {
			other = &rows[i];
		}
	}
	/* Half of it different is another word. */
	if (nearest && (size_t)distance <= (len - strlen(PREFIX)) / 2)
		note(notes, "%s is set, but there is no such parameter; is %s%s%s meant?", name,
		     nearest->desc.variable, other ? " or " : "",
		     other ? other->desc.variable : "");
	else
		note(notes, "%s is set, but there is no such parameter; `tutti env` lists them",
		     name);
}

static void read_env(char *const *env, struct tti_param_values *out, bool *is_set,
		     struct tti_param_notes *notes)
{
	const char *nccl_debug = find(env, "NCCL_DEBUG");

	for (size_t i = 0; i < NROWS; i++) {
		char name[64];
		const char *text = find_row(env, &rows[i], name, sizeof(name));

		is_set[i] = read_row(&rows[i], name, text, out, notes);
		if (rows[i].offset == offsetof(struct tti_param_values, debug) && !text &&
		    nccl_debug)
			is_set[i] = read_nccl_debug(nccl_debug, out, notes);
	}
	for (; *env; env++)
		if (!strncmp(*env, PREFIX, strlen(PREFIX)) && strchr(*env, '='))
			note_unknown(*env, notes);
}

void tti_params_read_env(char *const *env, struct tti_param_values *out,
			 struct tti_param_notes *notes)
{
	bool is_set[NROWS];

	read_env(env, out, is_set, notes);
}

/* The program may change its environment later. strdup(), as tti_strdup() may
 * ask for TUTTI_FAULT, which is being read here. */
static void copy_string(const struct row *row)
{
	const char **field = (const char **)(void *)((char *)&table.params + row->offset);

	if (!*field)
		return;
	*field = strdup(*field);
	if (!*field)
		note(&table.notes, "out of memory, %s is ignored", row->desc.variable);
}

static void format_number(const struct row *row, char *shown)
{
	const void *field = (const char *)&table.params + row->offset;
	int64_t number = 0;

	switch (row->type) {
	case TTI_PARAM_INT:
	case TTI_PARAM_MS:
		number = *(const int64_t *)field;
		break;
	case TTI_PARAM_SIZE:
		number = (int64_t) * (const size_t *)field;
		break;
	case TTI_PARAM_BOOL:
		number = *(const bool *)field;
		break;
	case TTI_PARAM_ENUM:
		number = *(const int *)field;
		break;
	case TTI_PARAM_STR:
	case TTI_PARAM_PATH:
	case TTI_PARAM_SECRET:
		return;
	}
	tti_param_format(row->type, row->desc.range, number, shown, SHOWN_BYTES);
}

static void load(void)
{
	char *none = NULL;

	/* clearenv() leaves NULL behind. */
	read_env(environ ? environ : &none, &table.params, table.is_set, &table.notes);
	for (size_t i = 0; i < NROWS; i++)
		if (is_string(rows[i].type))
			copy_string(&rows[i]);
		else
			format_number(&rows[i], table.shown[i]);
}

const struct tti_param_values *tti_params_quiet(void)
{
	pthread_once(&table.once, load);
	return &table.params;
}

const struct tti_param_notes *tti_params_notes(void)
{
	tti_params_quiet();
	return &table.notes;
}

int tti_param_count(void)
{
	return (int)NROWS;
}

const struct tti_param_desc *tti_param_desc(int index)
{
	return index >= 0 && (size_t)index < NROWS ? &rows[index].desc : NULL;
}

const char *tti_param_text(int index, bool *is_set)
{
	const struct row *row;
	const char *text;

	if (index < 0 || (size_t)index >= NROWS) {
		*is_set = false;
		return NULL;
	}
	tti_params_quiet();
	row = &rows[index];
	*is_set = table.is_set[index];
	if (!is_string(row->type))
		return table.shown[index];
	text = *(const char *const *)(const void *)((const char *)&table.params + row->offset);
	if (text && row->type == TTI_PARAM_SECRET)
		return "(set)";
	return text ? text : "";
}

bool tti_param_is_set(const void *field)
{
	size_t i = 0;

	tti_params_quiet();
	while ((const char *)&table.params + rows[i].offset != field)
		tti_assert(++i < NROWS);
	return table.is_set[i];
}
