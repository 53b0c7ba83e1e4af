# SPDX-License-Identifier: BSD-3-Clause
#
# The reference as manual pages of section 3, in the folder `to`: a page for each comment with
# functions, under the name of each of them, and a page for each header, with its types and
# constants, under their names, too. `version` is the library's.

function page_of_header(name) {
	return name == "tutti.h" ? name : "tutti_" name
}
# A line of roff that shows `text` as it is.
function roff(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/`[^`]*`/, "\\fI&\\fP", text)
	gsub(/`/, "", text)
	return text ~ /^[.\047]/ ? "\\&" text : text
}
# Names bold; functions of ours with the section of their page.
function roff_text(text,    out, word) {
	out = ""
	while (match(text, /(TUTTI|tutti)_[A-Za-z0-9_]*(\(\))?/)) {
		out = out roff(substr(text, 1, RSTART - 1))
		word = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		out = out "\\fB" word "\\fP"
		if (sub(/\(\)\\fP$/, "\\fP", out))
			out = out "(3)"
	}
	return out roff(text)
}
function put_text(text, file,    n, line, i, term, rest) {
	n = split(text, line, "\n")
	for (i = 1; i <= n; i++)
		if (line[i] == "") {
			if (i < n && line[i + 1] !~ /^  /)
				print ".PP" >file
		} else if (line[i] ~ /^  [a-z]/) {
			term = rest = substr(line[i], 3)
			sub(/  .*/, "", term)
			sub(/^[^ ]+( [^ ]+)*  +/, "", rest)
			print ".TP\n.I " term "\n" roff_text(rest) >file
		} else {
			sub(/^ +/, "", line[i])
			print roff_text(line[i]) >file
		}
}
function put_code(code, file,    n, line, i) {
	n = split(code, line, "\n")
	print ".nf" >file
	for (i = 1; i <= n; i++) {
		gsub(/\t/, "    ", line[i])
		gsub(/`/, "", line[i])
		print roff(line[i]) >file
	}
	print ".fi" >file
}
function begin_page(page, file) {
	print ".\\\" Made from the headers by scripts/gen_reference; do not edit." >file
	print ".TH " toupper(page) " 3 \"\" \"Tutti " version "\" \"Tutti\"" >file
	print ".SH NAME" >file
}
function link_page(name, page,    file) {
	if (name == page || name in has_page)
		return
	has_page[name] = 1
	file = to "/" name ".3"
	print ".so man3/" page ".3" >file
	close(file)
}
# `fresh`: nothing stands under the last heading yet, so no paragraph begins there.

# What one must know of arguments that the comment does not explain.
function put_arguments(item, n, name, file,    i, k, word, seen, none) {
	none = 1
	for (i = 1; i <= n; i++)
		for (k = 1; k <= narguments[name[i]]; k++) {
			word = argument[name[i], k]
			if (!(word in common) || word in seen)
				continue
			seen[word] = 1
			if (none)
				print ".SH ARGUMENTS" >file
			none = 0
			print ".TP\n.I " word "\n" roff_text(common[word]) >file
		}
}
function put_return(n, name, file,    i) {
	for (i = 1; i <= n; i++)
		if (returns[name[i]] == "tutti_status") {
			print ".SH RETURN VALUE\n.B TUTTI_OK\non success; else what went wrong," >file
			print "of which\n.BR tutti_last_error (3)\ngives the text." >file
			print ".BR tutti_status (3)\nlists all values; from\n.B TUTTI_STATUS_LOST" >file
			print "down the communicator is lost." >file
			return
		}
}
function context_text(item, file,    i, title) {
	for (i = 1; i <= nblocks; i++) {
		if (block_header[i] != block_header[item] || i > item)
			continue
		if (block_kind[i] !~ /^(section|text)$/ || block_section[i] != block_section[item])
			continue
		if (block_text[i] == "")
			continue
		if (!title)
			print ".SH CONTEXT" >file
		else
			print ".PP" >file
		title = 1
		put_text(block_text[i], file)
	}
}
function put_see_also(item, file,    i, n, name, k) {
	print ".SH SEE ALSO" >file
	for (i = 1; i <= nblocks; i++) {
		if (i == item || block_kind[i] != "item" || block_header[i] != block_header[item] ||
				block_section[i] != block_section[item])
			continue
		n = split(block_names[i], name, " ")
		for (k = 1; k <= n; k++)
			if (is_function[name[k]])
				print ".BR " name[k] " (3)," >file
	}
	if (block_header[item] != "tutti.h")
		print ".BR " page_of_header(block_header[item]) " (3)," >file
	print ".BR tutti.h (3)" >file
}
function put_function_page(item,    n, m, all, name, i, file, page, list) {
	m = split(block_names[item], all, " ")
	n = 0
	for (i = 1; i <= m; i++)
		if (is_function[all[i]])
			name[++n] = all[i]
	page = name[1]
	has_page[page] = 1
	file = to "/" page ".3"
	begin_page(page, file)
	list = name[1]
	for (i = 2; i <= n; i++) {
		list = list ", " name[i]
		link_page(name[i], page)
	}
	print list " \\- " roff(summary(item)) >file
	print ".SH SYNOPSIS\n.nf\n#include <tutti/" \
		(block_header[item] ~ /^(inspect|insight|algo_file)\.h$/ ? block_header[item] : "tutti.h") ">\n.fi" >file
	print ".PP" >file
	put_code(block_code[item], file)
	print ".SH DESCRIPTION" >file
	put_text(block_text[item], file)
	put_arguments(item, n, name, file)
	put_return(n, name, file)
	context_text(item, file)
	put_see_also(item, file)
	close(file)
}
function put_rows(item, file,    n, row, i, rest, value) {
	n = split(block_rows[item], row, "\n")
	for (i = 1; i <= n; i++) {
		rest = row[i]
		if (!sub(/^[ \t]*X\(/, "", rest))
			continue
		sub(/\)[ \t]*$/, "", rest)
		value = rest
		sub(/,.*/, "", value)
		sub(/^[^,]*, */, "", rest)
		gsub(/"/, "", rest)
		print ".TP\n.BR " block_prefix[item] value "\n" roff(rest) >file
	}
}
function put_header_item(item, page, file,    n, name, i, functions_only) {
	n = split(block_names[item], name, " ")
	functions_only = 1
	for (i = 1; i <= n; i++)
		if (!is_function[name[i]]) {
			functions_only = 0
			if (is_type[name[i]] && name[i] != "enum")
				link_page(name[i], page)
		}
	if (functions_only) {
		fresh = 0
		print ".TP" >file
		for (i = 1; i <= n; i++)
			print (i > 1 ? ".TQ\n" : "") ".BR " name[i] " (3)" >file
		print roff_text(summary(item)) >file
		return
	}
	if (!fresh)
		print ".PP" >file
	fresh = 0
	put_text(block_text[item], file)
	if (block_code[item] != "") {
		print ".PP" >file
		put_code(block_code[item], file)
	}
	if (item in block_rows)
		put_rows(item, file)
}
function put_header_page(from, below,    page, file, i, started) {
	page = page_of_header(block_name[from])
	file = to "/" page ".3"
	begin_page(page, file)
	print page " \\- " roff(summary(from)) >file
	print ".SH SYNOPSIS\n.nf\n#include <tutti/" block_name[from] ">\n.fi\n.SH DESCRIPTION" >file
	put_text(block_text[from], file)
	for (i = from + 1; i < below; i++)
		if (block_kind[i] == "section") {
			print ".SH " toupper(block_name[i]) >file
			put_text(block_text[i], file)
			fresh = block_text[i] == ""
			started = 1
		} else if (block_kind[i] == "text") {
			if (!fresh)
				print ".PP" >file
			fresh = 0
			put_text(block_text[i], file)
		} else {
			if (!started) {
				print ".SH CONTENTS" >file
				fresh = started = 1
			}
			put_header_item(i, page, file)
		}
	print ".SH SEE ALSO\n.BR tutti (1)" (page == "tutti.h" ? "" : ",\n.BR tutti.h (3)") >file
	close(file)
}
function print_reference(    i, k, n, name) {
	for (i = 1; i <= nblocks; i++) {
		n = split(block_names[i], name, " ")
		for (k = 1; k <= n; k++)
			if (is_function[name[k]]) {
				put_function_page(i)
				break
			}
	}
	for (i = 1; i <= nblocks; i = k) {
		for (k = i + 1; k <= nblocks && block_kind[k] != "header"; k++)
			;
		put_header_page(i, k)
	}
	link_page("tutti", "tutti.h")
}
