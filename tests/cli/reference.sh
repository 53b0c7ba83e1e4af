#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The reference is what the headers say, and headers that say too little are refused.
. "$(dirname "$0")/common"
root=$(cd "$(dirname "$0")/../.." && pwd)

# fresh: a copy of what the generator reads, in $tmp/copy.
fresh()
{
	rm -rf "$tmp/copy"
	mkdir -p "$tmp/copy/docs" "$tmp/copy/scripts" "$tmp/copy/src"
	cp -R "$root/include" "$tmp/copy"
	cp -R "$root/docs/reference" "$tmp/copy/docs"
	cp "$root/scripts/gen_reference" "$root"/scripts/reference*.awk "$tmp/copy/scripts"
	cp "$root/src/tutti.map" "$tmp/copy/src"
}

# refuses HEADER SED PATTERN: edited so, the header is refused with such a line.
refuses()
{
	fresh
	header=$tmp/copy/include/tutti/$1
	sed "$2" "$header" >"$tmp/edited"
	cmp -s "$header" "$tmp/edited" && fail "nothing of $1 was changed by $2"
	cp "$tmp/edited" "$header"
	expect 1 "$tmp/copy/scripts/gen_reference" --check
	says out "$3"
}

fresh
expect 0 "$tmp/copy/scripts/gen_reference" --check
lines out 0
ok "docs/reference is what the headers say"

refuses window.h '/^\/\* Send one signal to/d' 'window.h:[0-9]+: tutti_signal\(\) has no comment'
refuses collectives.h 's/, in \*part_count//' 'tutti_part\(\) does not say what part_count is'
refuses comm.h 's/says what holds for threads/says more/' \
	'tutti_comm_finalize\(\) does not say which threads may call it'
refuses types.h 's/Never NULL, never to be freed\.//' \
	'tutti_type_name\(\) does not say whose its result is'
refuses persistent.h 's/TUTTI_E/X/g; /^[ /]\*/s/[Ss]tatus//g; s/errors//' \
	'tutti_persistent_[a-z]+\(\) does not say how it fails'
refuses window.h '/^\/\* Memory of all ranks/,/\*\/$/d' \
	'tutti_window_t has no comment'
refuses memory.h 's/^typedef struct tutti_reg .*/&\nint tutti_other(void);/' \
	'neither a comment nor a declaration: int tutti_other'
ok "headers that say too little"

refuses inspect.h 's/^} tutti_lane;/} tutti_lane_info;/' 'struct tutti_lane has no typedef of that name'
refuses window.h 's/^typedef struct tutti_window \*tutti_window_t;/typedef struct tutti_window *tutti_window;/' \
	'the handle tutti_window does not end in _t'
refuses comm.h 's/tutti_config\([ ;]\)/tutti_config_t\1/; s/struct tutti_config_t/struct tutti_config/' \
	'tutti_config_t ends in _t and is no handle'
refuses insight.h 's/tutti_topo_free(tutti/tutti_topo_end(tutti/' 'tutti_topo_load\(\) has no tutti_topo_free\(\)'
ok "names against the rule"

fresh
sed -i 's/tutti_version;/tutti_version;\n\ttutti_unheard_of;/' "$tmp/copy/src/tutti.map"
expect 1 "$tmp/copy/scripts/gen_reference" --check
says out 'exports tutti_unheard_of, which no header documents'
ok "an exported function without a header"

fresh
echo >>"$tmp/copy/docs/reference/comm.md"
expect 1 "$tmp/copy/scripts/gen_reference" --check
says out 'run scripts/gen_reference'
ok "a page that was edited"
