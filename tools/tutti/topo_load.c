/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo.h"

#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

static bool is_file(const char *path)
{
	struct stat info;

	return path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* A file that cannot be read is bad usage; one that is refused is a finding. */
static int load(const struct tutti_topo_config *config, tutti_topo_t *out)
{
	tutti_status status;

	if (config->xml_file && access(config->xml_file, R_OK) != 0)
		return tool_bad_usage("cannot read '%s': %m", config->xml_file);
	if (config->sysfs_root && access(config->sysfs_root, R_OK) != 0)
		return tool_bad_usage("cannot read '%s': %m", config->sysfs_root);
	status = tutti_topo_load(config, out);
	return status ? tool_fail("%s", tool_why(NULL, status)) : TOOL_GOOD;
}

int topo_load(const struct topo_source *source, tutti_topo_t *out)
{
	struct tutti_topo_config config = source->config;
	struct topo_unpacked unpacked = { NULL, NULL };
	int code;

	if (config.xml_file && config.sysfs_root && !config.detect)
		return tool_bad_usage("--xml and --sysfs are two machines: give one of them, or "
				      "--detect to lay the file over the captured machine");
	if (config.xml_file && !config.detect && (config.all || config.measure))
		return tool_bad_usage("--%s looks at a machine, and --xml %s is a file: give "
				      "--detect as well to lay the file over what is detected",
				      config.all ? "all" : "measure", config.xml_file);
	if (is_file(config.sysfs_root)) {
		if (!topo_unpack(config.sysfs_root, &unpacked))
			return TOOL_FINDING;
		config.name = config.sysfs_root;
		config.sysfs_root = unpacked.root;
	}
	code = load(&config, out);
	topo_remove(&unpacked);
	return code;
}

int topo_load_path(const struct topo_source *source, const char *path, tutti_topo_t *out)
{
	struct topo_source one = *source;

	one.config.xml_file = one.config.sysfs_root = NULL;
	if (is_file(path) && !strstr(path, ".tar") && !strstr(path, ".tgz"))
		one.config.xml_file = path;
	else if (access(path, F_OK) == 0)
		one.config.sysfs_root = path;
	else
		return tool_bad_usage("cannot read '%s': %m", path);
	return topo_load(&one, out);
}

long topo_find_count(const char *text, int most, int *count)
{
	const size_t len = strlen(text);
	char label[256];
	size_t digits = 0;

	*count = 0;
	while (digits < len && isdigit((unsigned char)text[len - digits - 1]))
		digits++;
	if (!digits || digits + 1 >= len || !strchr(":*", text[len - digits - 1]) ||
	    access(text, F_OK) == 0)
		return (long)len;
	snprintf(label, sizeof(label), "%.*s: the count", (int)(len - digits - 1), text);
	if (!cli_int(label, text + len - digits, 1, most, count))
		return -1;
	if (text[len - digits - 1] == '*')
		fprintf(stderr,
			"tutti %s: FILE*%d is deprecated, as shells expand it: write FILE:%d\n",
			tool_verb(), *count, *count);
	return (long)(len - digits - 1);
}

unsigned topo_flags(const struct topo_source *source, FILE *to)
{
	unsigned flags = 0;

	/* https://no-color.org */
	if (source->color == TOPO_ALWAYS ||
	    (source->color == TOPO_AUTO && isatty(fileno(to)) && !*tool_variable("NO_COLOR")))
		flags |= TUTTI_TOPO_COLOR;
	/* Numbers must stay as they are in C: only the characters are asked for. */
	if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8"))
		flags |= TUTTI_TOPO_UTF8;
	return flags;
}

int topo_print(tutti_topo_t topo, tutti_topo_format format, unsigned flags, FILE *to)
{
	char *text;
	const tutti_status status = tutti_topo_print(topo, format, flags, &text);

	return status ? tool_fail("%s", tool_why(NULL, status)) : tool_write(text, to);
}
