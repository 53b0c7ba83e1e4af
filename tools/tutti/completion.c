/* SPDX-License-Identifier: BSD-3-Clause */
#include "completion.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* -- Scripts ---------------------------------------------------------------------------- */

/* Each line of `tutti completion words` is a word, a tab and its help, or a request of ours. */
static const char bash[] =
	"_tutti()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} line\n"
	"\tCOMPREPLY=()\n"
	"\t[ \"$cur\" != = ] || cur=\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t:files) compopt -o filenames 2>/dev/null\n"
	"\t\t\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	"\t\t:programs) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f -- "
	"\"$cur\") ;;\n"
	"\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(\"${COMP_WORDS[0]}\" completion words \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
	"2>/dev/null)\n"
	"}\n"
	"complete -F _tutti tutti\n";

static const char zsh[] =
	"#compdef tutti\n"
	"_tutti()\n"
	"{\n"
	"\tlocal line\n"
	"\tlocal -a found\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t:files) _files ;;\n"
	"\t\t:programs) _alternative 'commands:command:_command_names -e' 'files:file:_files' ;;\n"
	"\t\t*) found+=(\"${${line//:/\\\\:}/$'\\t'/:}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(\"${words[1]}\" completion words \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
	"\t(( ! $#found )) || _describe -V tutti found\n"
	"}\n"
	"if [ \"$funcstack[1]\" = _tutti ]; then _tutti \"$@\"; else compdef _tutti tutti; fi\n";

static const char fish[] = "function __tutti_words\n"
			   "\tset -l words (commandline -opc) (commandline -ct)\n"
			   "\tfor line in ($words[1] completion words $words[2..] 2>/dev/null)\n"
			   "\t\tswitch $line\n"
			   "\t\t\tcase :files\n"
			   "\t\t\t\t__fish_complete_path $words[-1]\n"
			   "\t\t\tcase :programs\n"
			   "\t\t\t\t__fish_complete_path $words[-1]\n"
			   "\t\t\t\tcomplete -C $words[-1]\n"
			   "\t\t\tcase '*'\n"
			   "\t\t\t\techo $line\n"
			   "\t\tend\n"
			   "\tend\n"
			   "end\n"
			   "complete -c tutti -f -a '(__tutti_words)'\n";

int completion_run(const struct cli_command *commands, const struct completion_options *options)
{
	static const char *const scripts[] = { bash, zsh, fish };

	(void)commands;
	fputs(scripts[options->shell], stdout);
	return TOOL_GOOD;
}

/* -- Words ------------------------------------------------------------------------------ */

/* The state behind the words that were read. */
struct place {
	const struct cli_command *command;
	struct cli_option waiting; /* for its value; CLI_END: none is                  */
	uint64_t given;
	int noperands;
	bool only_operands, in_program;
	const char *start;  /* of the word that is looked for                   */
	const char *before; /* what stands before it in the same word: "--color=" */
	int nbefore;
};

static void put(const struct place *place, const char *word, const char *help)
{
	if (!strncmp(word, place->start, strlen(place->start)))
		printf("%.*s%s\t%s\n", place->nbefore, place->before, word, help);
}

/* One of `parent`, or, where that is NULL, one that stands by itself. */
static const struct cli_command *find_command(const struct cli_command *at,
					      const struct cli_command *parent, const char *word)
{
	const size_t skip = parent ? strlen(parent->name) + 1 : 0;

	for (; at->name && (!parent || cli_is_below(at, parent)); at++)
		if (!strcmp(at->name + skip, word))
			return at;
	return NULL;
}

/* -x, -xVALUE, --name, --name=VALUE. Without its value an option waits for the next word. */
static void pass_option(struct place *place, const char *word)
{
	const bool is_long = word[1] == '-';
	const char *const name = word + (is_long ? 2 : 1);
	const size_t len = is_long ? strcspn(name, "=") : 1;
	struct cli_option option;

	for (int i = 0; cli_get_option(place->command, i, &option); i++) {
		if (is_long ? !option.name || strlen(option.name) != len ||
				      strncmp(option.name, name, len) != 0
			    : option.letter != name[0])
			continue;
		place->given |= (uint64_t)1 << i;
		if (option.kind != CLI_FLAG && option.kind != CLI_SWITCH && !name[len])
			place->waiting = option;
	}
}

/* The next operand, or the last one if it may be repeated. */
static bool find_operand(const struct place *place, struct cli_option *out)
{
	for (int i = 0, n = 0; cli_get_option(place->command, i, out); i++)
		if (!out->name && (n++ == place->noperands || out->kind == CLI_FILES))
			return true;
	return false;
}

static void pass(struct place *place, const char *word)
{
	struct cli_option operand;

	if (place->waiting.kind != CLI_END) {
		/* bash makes three words of --name=VALUE. */
		if (strcmp(word, "=") != 0)
			place->waiting.kind = CLI_END;
	} else if (!place->only_operands && word[0] == '-' && word[1]) {
		place->only_operands = !strcmp(word, "--");
		pass_option(place, word);
	} else {
		place->in_program = find_operand(place, &operand) && operand.kind == CLI_PROGRAM;
		place->noperands++;
	}
}

static void put_values(const struct place *place, const struct cli_option *option)
{
	const char *word;

	if (option->kind == CLI_FILE || option->kind == CLI_FILES)
		puts(":files");
	if (option->kind == CLI_PROGRAM)
		puts(":programs");
	for (int i = 0; option->names && (word = option->names(NULL, i)) != NULL; i++)
		put(place, word, "");
	for (int i = 0; option->words && option->words[i]; i++)
		put(place, option->words[i], "");
}

static void put_options(const struct place *place)
{
	struct cli_option option;
	char name[64];

	for (int i = 0; cli_get_option(place->command, i, &option); i++) {
		const bool may_repeat = option.kind == CLI_FILES || option.kind == CLI_TEXTS;

		if (!option.name || (place->given >> i & 1 && !may_repeat))
			continue;
		snprintf(name, sizeof(name), "--%s", option.name);
		put(place, name, option.help);
	}
	put(place, "--help", "print this");
}

static void put_verbs(const struct place *place, const struct cli_command *at,
		      const struct cli_command *parent)
{
	for (; at->name && (!parent || cli_is_below(at, parent)); at++)
		if (parent)
			put(place, at->name + strlen(parent->name) + 1, at->summary);
		else if (!strchr(at->name, ' '))
			put(place, at->name, at->summary);
}

static void put_all(struct place *place, bool is_first)
{
	struct cli_option operand;

	if (place->waiting.kind == CLI_END && place->start[0] == '-' && !place->only_operands) {
		const size_t len = strcspn(place->start, "=");
		char name[64];

		if (!place->start[len]) {
			put_options(place);
			return;
		}
		snprintf(name, sizeof(name), "%.*s", (int)len, place->start);
		pass_option(place, name);
		place->before = place->start;
		place->nbefore = (int)len + 1;
		place->start += len + 1;
	}
	if (place->in_program) {
		puts(":files");
	} else if (place->waiting.kind != CLI_END) {
		put_values(place, &place->waiting);
	} else {
		if (is_first)
			put_verbs(place, place->command + 1, place->command);
		if (find_operand(place, &operand))
			put_values(place, &operand);
	}
}

void completion_print_words(const struct cli_command *commands, int argc, char **argv)
{
	const char *const last = argc > 0 ? argv[argc - 1] : "";
	struct place place = { .before = "",
			       .command = argc > 1 ? find_command(commands, NULL, argv[0]) : NULL,
			       .start = strcmp(last, "=") != 0 ? last : "" };
	const struct cli_command *sub = NULL;
	int at = 1;

	if (argc < 2)
		put_verbs(&place, commands, NULL);
	if (!place.command)
		return;
	if (argc > 2)
		sub = find_command(place.command + 1, place.command, argv[1]);
	if (sub) {
		place.command = sub;
		at++;
	}
	while (at < argc - 1 && !place.in_program)
		pass(&place, argv[at++]);
	put_all(&place, argc == 2);
}
