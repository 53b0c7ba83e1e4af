# SPDX-License-Identifier: BSD-3-Clause
#
# The reference as Markdown: below the folder `to` a page for each header, and README.md, the
# list of all functions.

function page_of(name) {
	sub(/\.h$/, ".md", name)
	return name
}
# A constant of a list is found where its list is.
function anchor(name,    item) {
	item = item_of_name[name]
	if (index(" " block_names[item] " ", " " name " ") == 0)
		name = block_name[item]
	return page_of(block_header[item]) "#" name
}
# One word of text: names in code, and what has a page as a link to it.
function linked(word,    name, tail) {
	name = word
	tail = ""
	sub(/\(\)$/, "", name)
	if (name in item_of_name)
		return "[`" word "`](" anchor(name) ")"
	return "`" word "`"
}
function escaped(text) {
	gsub(/[*<\[\]]/, "\\\\&", text)
	return text
}
# Text between backticks stays; names become code.
function inline(text,    out, word) {
	out = ""
	while (match(text, /`[^`]*`|\*?(TUTTI|tutti)_[A-Za-z0-9_]*(\(\))?|docs\/[a-z-]+\.md|[a-z_]+\.h([^a-z]|$)|\*[a-z][a-z_]*/)) {
		out = out escaped(substr(text, 1, RSTART - 1))
		word = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		if (word ~ /\.h[^a-z]$/) {
			text = substr(word, length(word)) text
			word = substr(word, 1, length(word) - 1)
		}
		if (word ~ /^docs\//)
			out = out "[" word "](../" substr(word, 6) ")"
		else if (word ~ /\.h$/ && word in is_header)
			out = out "[`" word "`](" page_of(word) ")"
		else if (word ~ /^`/)
			out = out word
		else
			out = out linked(word)
	}
	out = out escaped(text)
	# Else it would begin a list, a heading or a quotation.
	return (out ~ /^([>#]|[-+] )/ ? "\\" : "") out
}
# Paragraphs, and lists of "  term  text".
function markdown(text,    n, line, i, term, out, rest) {
	n = split(text, line, "\n")
	out = ""
	for (i = 1; i <= n; i++)
		if (line[i] ~ /^  [a-z]/) {
			term = rest = substr(line[i], 3)
			sub(/  .*/, "", term)
			sub(/^[^ ]+( [^ ]+)*  +/, "", rest)
			out = add_line(out, "- `" term "`: " inline(rest))
		} else if (line[i] ~ /^   /) {
			sub(/^ +/, "", line[i])
			out = add_line(out, "  " inline(line[i]))
		} else
			out = add_line(out, inline(line[i]))
	return out
}
function cell(text) {
	gsub(/\|/, "\\|", text)
	return text
}
function put_rows(item, file,    n, row, i, ncolumns, column, value, rest, text, c, k) {
	ncolumns = split(block_columns[item], column, / *, */)
	text = "|"
	for (c = 1; c <= ncolumns; c++)
		text = text " " (column[c] == "name" ? "constant" : column[c] == "text" ? "meaning" : \
			column[c]) " |"
	print text >file
	text = "|"
	for (c = 1; c <= ncolumns; c++)
		text = text "---|"
	print text >file
	n = split(block_rows[item], row, "\n")
	for (i = 1; i <= n; i++) {
		rest = row[i]
		if (!sub(/^[ \t]*X\(/, "", rest))
			continue
		sub(/\)[ \t]*$/, "", rest)
		text = "|"
		for (c = 1; c <= ncolumns; c++) {
			k = c < ncolumns ? index(rest, ",") : 0
			value = k ? substr(rest, 1, k - 1) : rest
			rest = k ? substr(rest, k + 1) : ""
			gsub(/^[ \t]+|[ \t]+$|"/, "", value)
			text = text " " (column[c] == "name" ? "`" block_prefix[item] value "`" : cell(value)) " |"
		}
		print text >file
	}
	print "" >file
}
function put_item(item, file,    n, name, i, title, anchors) {
	n = split(block_names[item], name, " ")
	title = anchors = ""
	for (i = 1; i <= n; i++) {
		if (is_function[name[i]] || is_type[name[i]] || i == 1)
			title = title (title == "" ? "" : ", ") name[i]
		anchors = anchors "<a id=\"" name[i] "\"></a>"
	}
	print anchors "\n\n### " title "\n" >file
	if (block_code[item] != "")
		print "```c\n" block_code[item] "\n```\n" >file
	print markdown(block_text[item]) "\n" >file
	if (item in block_rows)
		put_rows(item, file)
}
function put_index_line(item, file,    n, name, i, line) {
	n = split(block_names[item], name, " ")
	line = ""
	for (i = 1; i <= n; i++)
		if (is_function[name[i]])
			line = line (line == "" ? "" : ", ") linked(name[i] "()")
	if (line != "")
		print "- " line ": " inline(summary(item)) >file
}
function print_reference(    i, file, list, note) {
	list = to "/README.md"
	note = "Made from `include/tutti/%s` by `scripts/gen_reference`; do not edit.\n\n"
	print "# Reference\n" >list
	printf note, "*.h" >list
	print "One page for each header, and all functions below. `#include <tutti/tutti.h>` is all of it but" >list
	print "[`inspect.h`](inspect.md), [`insight.h`](insight.md) and [`algo_file.h`](algo_file.md), which are for tools." >list
	print "The same as manual pages, which `cmake --install` brings: `man tutti_all_reduce`, `man tutti.h`." >list
	for (i = 1; i <= nblocks; i++)
		if (block_kind[i] == "header")
			is_header[block_name[i]] = 1
	for (i = 1; i <= nblocks; i++) {
		if (block_kind[i] == "header") {
			file = to "/" page_of(block_name[i])
			print "# tutti/" block_name[i] "\n" >file
			printf note, block_name[i] >file
			print markdown(block_text[i]) "\n" >file
			print "\n## [tutti/" block_name[i] "](" page_of(block_name[i]) ")\n" >list
		} else if (block_kind[i] == "section") {
			print "## " block_name[i] "\n" >file
			if (block_text[i] != "")
				print markdown(block_text[i]) "\n" >file
		} else if (block_kind[i] == "text")
			print markdown(block_text[i]) "\n" >file
		else {
			put_item(i, file)
			put_index_line(i, list)
		}
	}
}
