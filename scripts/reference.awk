# SPDX-License-Identifier: BSD-3-Clause
#
# The public headers, read into blocks, and what their comments must say. The functions
# print_reference() of another file, which awk reads besides, make pages of them.
#
# block_kind[1 .. nblocks], in the order of the headers:
#   header    block_name "comm.h", block_text the comment that it begins with
#   section   block_name its title, block_text
#   text      block_text, of no declaration by itself
#   item      one comment and the declarations right below: block_names, block_code,
#             block_text; block_rows and block_columns, if it is a list of constants
# where block_header and block_section say in which header and section it is.

function complain(text) {
	print header_path ":" FNR ": " text
	failed = 1
}
function new_block(kind, name, text) {
	nblocks++
	block_kind[nblocks] = kind
	block_name[nblocks] = name
	block_text[nblocks] = text
	block_header[nblocks] = header
	block_section[nblocks] = kind == "section" ? nblocks : section
	block_line[nblocks] = FNR
	if (kind == "section")
		section = nblocks
	return nblocks
}
function add_line(all, line) {
	return all == "" ? line : all "\n" line
}

# -- Comments ------------------------------------------------------------------------

# A comment without what makes it one; lines that begin behind the star begin at 1.
function bare(line) {
	sub(/^\/\* ?/, "", line)
	sub(/^ \*( |$)/, "", line)
	sub(/[ \t]*\*\/[ \t]*$/, "", line)
	sub(/[ \t]+$/, "", line)
	return line
}
function take_comment(line) {
	comment = add_line(comment, bare(line))
	in_comment = line !~ /\*\//
	if (in_comment)
		return
	sub(/^\n+/, "", comment)
	if (comment ~ /^clang-format /)
		comment = kept_comment
	else if (comment ~ /^-- /) {
		title = comment
		sub(/\n.*/, "", title)
		gsub(/^-- | -*$/, "", title)
		if (!sub(/^[^\n]*\n/, "", comment))
			comment = ""
		sub(/^\n+/, "", comment)
		new_block("section", title, comment)
		comment = ""
	}
}
# What stands by itself is of the header, before all declarations, else of the section.
function place_free_comment() {
	if (comment == "")
		return
	if (block_kind[nblocks] == "header" && block_text[nblocks] == "")
		block_text[nblocks] = comment
	else
		new_block("text", "", comment)
	comment = ""
}

# -- Declarations ----------------------------------------------------------------------

# The item that a declaration belongs to: of the comment above, or of the one before.
function item_of(name) {
	if (comment != "" || !open_item) {
		open_item = new_block("item", name, comment)
		comment = ""
	}
	block_names[open_item] = block_names[open_item] (block_names[open_item] == "" ? "" : " ") name
	item_of_name[name] = open_item
	return open_item
}
# "TYPE NAME(A, B);" in lines of 80 columns.
function wrapped(code,    line, out, at, part) {
	if (length(code) <= 80)
		return code
	out = ""
	at = index(code, "(")
	line = substr(code, 1, at)
	code = substr(code, at + 1)
	while (code != "") {
		at = index(code, ", ")
		part = at ? substr(code, 1, at) : code
		code = at ? substr(code, at + 2) : ""
		if (length(line) + length(part) > 79) {
			out = out line "\n"
			line = "        " part
		} else
			line = line (line ~ /\($/ ? "" : " ") part
	}
	return out line
}
function take_function(code,    name, result, item, arguments, n, i, part) {
	gsub(/[ \t\n]+/, " ", code)
	gsub(/TUTTI_API |TUTTI_CHECKED | TUTTI_DEPRECATED\("[a-z_]*"\)/, "", code)
	name = result = code
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
	sub(/ ?[a-z_0-9]+\(.*/, "", result)
	returns[name] = result
	item = item_of(name)
	is_function[name] = 1
	functions[++nfunctions] = name
	function_header[name] = header
	block_code[item] = add_line(block_code[item], wrapped(code))
	arguments = code
	sub(/^[^(]*\(/, "", arguments)
	sub(/\);$/, "", arguments)
	n = split(arguments, part, / *, */)
	for (i = 1; i <= n; i++) {
		argument_type[name, i] = part[i]
		if (part[i] == "void")
			break
		sub(/[a-z_0-9]+(\[\])?$/, "", argument_type[name, i])
		sub(/.*[ *]/, "", part[i])
		argument[name, i] = part[i]
		narguments[name] = i
	}
}
function name_of_type(code,    name) {
	name = code
	if (name ~ /^typedef .*\(\*/) {
		sub(/^[^(]*\(\*/, "", name)
		sub(/\).*/, "", name)
	} else if (name ~ /^typedef /) {
		sub(/;$/, "", name)
		sub(/(.|\n)*[ *}]/, "", name)
	} else if (name ~ /^(struct|enum) [a-z_]/) {
		sub(/^(struct|enum) /, "", name)
		sub(/[ \n{].*/, "", name)
	} else
		name = "enum"
	return name
}
# enum { #define X(name, value, text) PREFIX##name = (value), LIST_MAP(X) #undef X }
function take_list_enum(code, item,    prefix, columns, list, n, row, i) {
	prefix = columns = list = code
	sub(/(.|\n)*#define X\([^)]*\) /, "", prefix)
	sub(/##name(.|\n)*/, "", prefix)
	sub(/(.|\n)*#define X\(/, "", columns)
	sub(/\)(.|\n)*/, "", columns)
	sub(/(.|\n)*\n\t/, "", list)
	sub(/\(X\)(.|\n)*/, "", list)
	if (!(list in list_rows)) {
		complain("the list " list " is not above")
		return
	}
	block_columns[item] = columns
	block_rows[item] = list_rows[list]
	block_prefix[item] = prefix
	item_of_name[list] = item
	n = split(list_rows[list], row, "\n")
	for (i = 1; i <= n; i++)
		if (match(row[i], /X\([A-Z0-9_]+/))
			item_of_name[prefix substr(row[i], RSTART + 2, RLENGTH - 2)] = item
	if (list_text[list] != "")
		block_text[item] = list_text[list] (block_text[item] == "" ? "" : "\n\n") block_text[item]
}
# The rule of names in tutti.h.
function check_name(code, name,    tag) {
	tag = code
	sub(/^(typedef )?struct /, "", tag)
	sub(/[ \n](.|\n)*/, "", tag)
	if (code ~ /^(typedef )?struct [a-z_]+ \{/ && (code !~ /^typedef/ || name != tag))
		complain("struct " tag " has no typedef of that name")
	if (code ~ /^typedef struct [a-z_]+ \*/ && name !~ /_t$/)
		complain("the handle " name " does not end in _t")
	if (code !~ /^typedef (struct [a-z_]+ \*|[a-z0-9_]+_t [a-z])/ && name ~ /_t$/)
		complain(name " ends in _t and is no handle")
}
function take_type(code,    item, name) {
	sub(/ TUTTI_DEPRECATED\("[a-z_]*"\)/, "", code)
	name = name_of_type(code)
	check_name(code, name)
	item = item_of(name)
	is_type[name] = 1
	if (code ~ /#define X\(/)
		take_list_enum(code, item)
	else
		block_code[item] = add_line(block_code[item], code)
}
function take_macro(code,    name, item, rows) {
	name = code
	sub(/^#define /, "", name)
	sub(/[( \t].*/, "", name)
	sub(/[( \t](.|\n)*/, "", name)
	if (name ~ /_MAP$/) {
		rows = code
		sub(/^[^\n]*\n/, "", rows)
		gsub(/\\\n/, "\n", rows)
		list_rows[name] = rows
		list_text[name] = comment
		comment = ""
		return
	}
	# What fills a struct belongs to it, whatever is between.
	if (name ~ /_INIT$/ && comment == "" && !open_item)
		open_item = nblocks
	item = item_of(name)
	gsub(/[ \t]*\\/, " \\", code)
	block_code[item] = add_line(block_code[item], code)
}
function take_declaration(line) {
	declaration = add_line(declaration, line)
	if (declaration ~ /^#define/) {
		if (line ~ /\\$/)
			return
		take_macro(declaration)
	} else if (declaration ~ /^TUTTI_API/) {
		if (line !~ /;$/)
			return
		take_function(declaration)
	} else if (declaration ~ /^(typedef|struct|enum)/) {
		if (declaration ~ /\{/ ? line !~ /^\}/ : line !~ /;$/)
			return
		take_type(declaration)
	} else
		complain("neither a comment nor a declaration: " declaration)
	declaration = ""
}

FNR == 1 {
	header_path = FILENAME
	header = FILENAME
	sub(/.*\//, "", header)
	section = open_item = skipping = 0
	comment = declaration = ""
	new_block("header", header, "")
	next
}
in_comment {
	take_comment($0)
	next
}
# Of what is for C++ or not, what is not; how declarations are marked is of no interest.
/^#if defined\(__GNUC__\)/ { skipping = 2 }
/^#ifdef __cplusplus/ { skipping = 1 }
/^#else/ && skipping == 1 {
	skipping = 0
	next
}
/^#endif/ {
	skipping = 0
	next
}
skipping || /^#ifndef / || /^#define TUTTI_[A-Z_]*_H$/ { next }
/^#include / {
	place_free_comment()
	next
}
declaration != "" {
	take_declaration($0)
	next
}
/^$/ {
	place_free_comment()
	open_item = 0
	next
}
/^\/\*/ {
	kept_comment = comment
	comment = ""
	take_comment($0)
	next
}
{ take_declaration($0) }

# -- What comments must say --------------------------------------------------------------

# All that counts for an item: its comment, those of its section and its header.
function context(item,    i, all) {
	all = ""
	for (i = 1; i <= nblocks; i++)
		if (block_header[i] == block_header[item] && (block_kind[i] == "header" ||
				(block_section[i] == block_section[item] && block_kind[i] ~ /section|text/)))
			all = all "\n" block_text[i]
	return all
}
function has_word(text, word) {
	return text ~ ("(^|[^a-z_0-9])" word "([^a-z_0-9]|$)")
}
function find_missing(item, text) {
	print "include/tutti/" block_header[item] ":" block_line[item] ": " text
	failed = 1
}
function check_function(name,    item, all, i, type, word) {
	item = item_of_name[name]
	if (block_text[item] == "") {
		find_missing(item, name "() has no comment")
		return
	}
	all = context(item)
	for (i = 1; i <= narguments[name]; i++) {
		word = argument[name, i]
		type = argument_type[name, i]
		gsub(/[ *]|const|struct/, "", type)
		if (!has_word(block_text[item] all, word) && !(word in common) && !(type in is_type))
			find_missing(item, name "() does not say what " word " is")
		if (argument_type[name, i] ~ /char \*\*|_t \*/ && type != "size_t" && \
				(block_text[item] all text_of[type]) !~ \
				/free|[Oo]wn|librar|caller|destroy|revoked|goes with/)
			find_missing(item, name "() does not say whose " word " is")
	}
	if (returns[name] ~ /\*/ && block_text[item] !~ /free|library|NULL|valid/)
		find_missing(item, name "() does not say whose its result is, and for how long")
	if (returns[name] == "tutti_status" && (block_text[item] all) !~ /TUTTI_E|[Ee]rror|[Ss]tatus/)
		find_missing(item, name "() does not say how it fails")
	if ((block_text[item] all text_of[handle_of[name]]) !~ /[Tt]hread/)
		find_missing(item, name "() does not say which threads may call it")
}
# What is created is destroyed, what is made or loaded is freed.
function check_end(name,    end) {
	end = name
	if (!sub(/_create$/, "_destroy", end) && !sub(/_(make|load)$/, "_free", end))
		return
	if (!(end in is_function) && block_text[item_of_name[name]] !~ /^Deprecated/)
		find_missing(item_of_name[name], name "() has no " end "()")
}
function check_comments(    i, j, n, name, type) {
	for (i = 1; i <= nblocks; i++) {
		if (block_kind[i] == "header" && block_text[i] == "")
			find_missing(i, "the header does not say what it is")
		if (block_kind[i] != "item")
			continue
		if (block_text[i] == "")
			find_missing(i, block_name[i] " has no comment")
		n = split(block_names[i], name, " ")
		for (j = 1; j <= n; j++)
			text_of[name[j]] = block_text[i]
	}
	for (i = 1; i <= nfunctions; i++) {
		type = argument_type[functions[i], 1]
		gsub(/[ *]|const|struct/, "", type)
		handle_of[functions[i]] = type
	}
	for (i = 1; i <= nfunctions; i++) {
		check_function(functions[i])
		check_end(functions[i])
	}
}

# -- Text ------------------------------------------------------------------------------------

# The lines "  term  text" of the first header's comment: what arguments mean everywhere.
function read_common(    i, n, line, term, text) {
	for (i = 1; block_header[i] != "tutti.h"; i++)
		if (i == nblocks)
			return
	n = split(block_text[i], line, "\n")
	for (i = 1; i <= n; i++) {
		if (line[i] ~ /^  [a-z]/) {
			term = text = substr(line[i], 3)
			sub(/  .*/, "", term)
			sub(/^[^ ]+( [^ ]+)*  +/, "", text)
			common[term] = text
		} else if (line[i] ~ /^   / && term != "") {
			text = line[i]
			sub(/^ +/, "", text)
			common[term] = common[term] " " text
		} else
			term = ""
	}
}
# The first sentence, without its full stop, on one line.
function summary(item,    text) {
	text = block_text[item]
	sub(/\n\n(.|\n)*/, "", text)
	gsub(/\n/, " ", text)
	if (match(text, /[^.]\.( |$)/))
		text = substr(text, 1, RSTART)
	return text
}

END {
	if (failed)
		exit 1
	read_common()
	check_comments()
	if (failed)
		exit 1
	print_reference()
}
