/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "tool.h"

struct parser {
	const struct cli_command *command;
	char **argv;
	int argc, pos;
	char *options;
	bool only_operands; /* -- was there                        */
	int noperands;
	const char *operand; /* the last one                        */
	uint64_t given;      /* 1 << i: the i-th option             */
};

bool cli_get_option(const struct cli_command *command, int i, struct cli_option *out)
{
	for (const struct cli_option *o = command->options; o->kind != CLI_END; o++) {
		int n = 0;

		if (o->kind != CLI_GROUP && i-- == 0) {
			*out = *o;
			return true;
		}
		if (o->kind != CLI_GROUP)
			continue;
		while (o->group[n].kind != CLI_END && n < i)
			n++;
		if (o->group[n].kind == CLI_END) {
			i -= n;
			continue;
		}
		*out = o->group[n];
		out->offset += o->offset;
		if (o->needs)
			out->needs = o->needs;
		return true;
	}
	return false;
}

bool cli_is_below(const struct cli_command *command, const struct cli_command *parent)
{
	const size_t len = strlen(parent->name);

	return command->name && !strncmp(command->name, parent->name, len) &&
	       command->name[len] == ' ';
}

static const char *dashes(const struct cli_option *option)
{
	return option->name ? "--" : "";
}

/* An operand without a name of its own is a list of words. */
static const char *name_of(const struct cli_option *option)
{
	return option->name ? option->name : option->metavar ? option->metavar : option->help;
}

/* -- Words ---------------------------------------------------------------------------- */

static bool store(struct parser *p, const struct cli_option *option, int i, const char *label,
		  const char *value)
{
	p->given |= (uint64_t)1 << i;
	return cli_store(option, label, value, p->options + option->offset);
}

static const char *name_at(const void *self, int i)
{
	const struct parser *const p = self;
	struct cli_option option;

	for (int at = 0; cli_get_option(p->command, at, &option); at++)
		if (option.name && option.help && i-- == 0)
			return option.name;
	return NULL;
}

static int unknown_option(const struct parser *p, const char *word)
{
	const char *const nearest =
		word[1] == '-' ? names_nearest(&(struct names){ name_at, p }, word) : NULL;

	return tool_bad_usage("there is no option %s%s%s%s", word, nearest ? "; is --" : "",
			      nearest ? nearest : "", nearest ? " meant?" : "");
}

/* -x, -xVALUE, --name, --name=VALUE */
static int read_option(struct parser *p, const char *word)
{
	const bool is_long = word[1] == '-';
	const char *const name = word + (is_long ? 2 : 1);
	const size_t len = is_long ? strcspn(name, "=") : 1;
	const char *value =
		is_long ? (name[len] ? name + len + 1 : NULL) : (name[1] ? name + 1 : NULL);
	struct cli_option option;
	char label[64];
	int i = 0;

	while (cli_get_option(p->command, i, &option) &&
	       !(is_long ? option.name && strlen(option.name) == len &&
				   !strncmp(option.name, name, len)
			 : option.letter == name[0]))
		i++;
	if (!cli_get_option(p->command, i, &option))
		return unknown_option(p, word);
	snprintf(label, sizeof(label), "%.*s", (int)(name - word + (ptrdiff_t)len), word);
	if (option.kind == CLI_FLAG || option.kind == CLI_SWITCH) {
		if (value)
			return tool_bad_usage("option --%s takes no value, it was given '%s'",
					      option.name, value);
	} else if (!value) {
		if (p->pos == p->argc)
			return tool_bad_usage("option %s needs a value: %s", label,
					      option.metavar ? option.metavar : option.help);
		value = p->argv[p->pos++];
	}
	return store(p, &option, i, label, value) ? CLI_RUN : TOOL_USAGE;
}

static int read_operand(struct parser *p, const char *word)
{
	struct cli_option option;
	int n = 0;

	for (int i = 0; cli_get_option(p->command, i, &option); i++) {
		const bool is_list = option.kind == CLI_FILES;

		if (option.name || (n++ < p->noperands && !is_list))
			continue;
		if (option.kind == CLI_PROGRAM) {
			*(char ***)(void *)(p->options + option.offset) = p->argv + p->pos - 1;
			p->pos = p->argc;
		}
		p->operand = word;
		p->noperands++;
		p->given |= (uint64_t)1 << i;
		return option.kind == CLI_PROGRAM || store(p, &option, i, name_of(&option), word)
			       ? CLI_RUN
			       : TOOL_USAGE;
	}
	for (int i = 0; cli_get_option(p->command, i, &option); i++)
		if (option.letter == 'o' && option.kind == CLI_FILE)
			return tool_bad_usage("takes no argument, it was given '%s': -o %s writes "
					      "there",
					      word, word);
	if (p->operand)
		return tool_bad_usage("takes no argument behind '%s', it was given '%s'",
				      p->operand, word);
	return tool_bad_usage("takes no argument, it was given '%s'", word);
}

static int read_word(struct parser *p)
{
	const char *const word = p->argv[p->pos++];

	/* A single - is a file name: standard input. */
	if (p->only_operands || word[0] != '-' || !word[1])
		return read_operand(p, word);
	if (!strcmp(word, "--")) {
		p->only_operands = true;
		return CLI_RUN;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return CLI_HELP;
	return read_option(p, word);
}

/* -- What goes together ----------------------------------------------------------------- */

/* Whether an option, or operand, is in a list of names with blanks between. */
static bool is_listed(const char *list, const struct cli_option *option)
{
	const char *const name = name_of(option);
	const size_t len = strlen(name);

	for (; list && *list; list += strcspn(list, " "), list += *list == ' ')
		if (strcspn(list, " ") == len && !strncmp(list, name, len))
			return true;
	return false;
}

void cli_join_options(const char *list, char *out, size_t size)
{
	size_t len = 0;

	*out = '\0';
	for (; list && *list && len < size; list += strcspn(list, " "), list += *list == ' ')
		len += (size_t)snprintf(out + len, size - len, "%s--%.*s", len ? " or " : "",
					(int)strcspn(list, " "), list);
}

/* The first that was given of a list; false: none. */
static bool find_given(const struct parser *p, const char *list, struct cli_option *out)
{
	for (int i = 0; cli_get_option(p->command, i, out); i++)
		if (p->given >> i & 1 && is_listed(list, out))
			return true;
	return false;
}

static int check_given(const struct parser *p, const struct cli_option *option)
{
	struct cli_option other;
	char needs[64];

	if (find_given(p, option->excludes, &other))
		return tool_bad_usage("%s%s and %s%s exclude each other: give one of them",
				      dashes(option), name_of(option), dashes(&other),
				      name_of(&other));
	if (option->needs && !find_given(p, option->needs, &other)) {
		cli_join_options(option->needs, needs, sizeof(needs));
		return tool_bad_usage("%s%s needs %s", dashes(option), name_of(option), needs);
	}
	return CLI_RUN;
}

static int check(const struct parser *p)
{
	struct cli_option option;
	int code = CLI_RUN;

	for (int i = 0; code == CLI_RUN && cli_get_option(p->command, i, &option); i++) {
		if (p->given >> i & 1)
			code = check_given(p, &option);
		else if (!option.name && !option.is_optional)
			code = tool_bad_usage("say which %s", option.help);
	}
	return code;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, void *options)
{
	struct parser p = { .command = command, .argv = argv, .argc = argc, .options = options };
	int code = CLI_RUN;

	while (code == CLI_RUN && p.pos < argc)
		code = read_word(&p);
	return code == CLI_RUN ? check(&p) : code;
}

void cli_release(const struct cli_command *command, void *options)
{
	struct cli_option option;

	for (int i = 0; cli_get_option(command, i, &option); i++) {
		void *const field = (char *)options + option.offset;

		if (option.kind == CLI_FILES || option.kind == CLI_TEXTS)
			free(((struct cli_list *)field)->at);
		else if (option.kind == CLI_RANKS)
			free(((struct cli_ranks *)field)->at);
	}
}
