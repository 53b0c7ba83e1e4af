#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What shells complete: bash in earnest, and zsh and fish where they are.
. "$(dirname "$0")/common"
bin=$(cd "$(dirname "$TUTTI")" && pwd)
PATH=$bin:$PATH

for shell in bash zsh fish; do
	expect 0 "$TUTTI" completion $shell
	cp "$tmp/out" "$tmp/$shell"
done
expect 2 "$TUTTI" completion
says err 'say which shell'
expect 2 "$TUTTI" completion csh
says err "'csh': choose bash, zsh or fish"
ok "a script for each shell"

# offers LINE WORD...: what is offered behind LINE, of which the last word is not whole, or empty
# after a blank, has all of the WORDs.
offers()
{
	line=$1
	shift
	"$complete" "$line" >"$tmp/out" 2>"$tmp/err" || fail "$complete: $line"
	lines err 0
	for word; do
		grep -qx -e "$word" "$tmp/out" || fail "'$line' is not completed by '$word'"
	done
}

# offers_none LINE WORD
offers_none()
{
	offers "$1"
	! grep -qx -e "$2" "$tmp/out" || fail "'$1' is completed by '$2'"
}

# As bash does: it cuts words at = as well.
cat >"$tmp/by_bash" <<'END'
#!/usr/bin/env bash
source "${0%/*}/bash"
compopt() { :; }
read -ra COMP_WORDS <<<"${1//=/ = }"
[[ $1 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
complete -p tutti | grep -q ' _tutti ' || exit 1
_tutti tutti "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((!${#COMPREPLY[@]})) || printf '%s\n' "${COMPREPLY[@]}"
END
cat >"$tmp/by_fish" <<'END'
#!/usr/bin/env fish
source (dirname (status filename))/fish
complete -C "$argv[1]" | string replace -r '\t.*' '' || true
END
chmod +x "$tmp/by_bash" "$tmp/by_fish"
touch "$tmp/machine.xml"

completes()
{
	complete=$tmp/$1
	offers 'tutti ' perf ping run show topo paths plan tune doctor env version completion
	offers 'tutti pl' plan
	offers 'tutti topo ' lint diff gather merge
	offers 'tutti topo lint --' --xml --color --json --help
	offers_none 'tutti topo lint --json --' --json
	offers 'tutti plan --xml a --' --xml
	offers 'tutti paths --color ' auto always never
	offers_none 'tutti paths --color al' never
	offers 'tutti perf ' all_reduce all_to_all_v
	offers 'tutti perf -n 2 all_r' all_reduce
	offers 'tutti perf all_reduce -d bf' bfloat16
	offers 'tutti perf all_reduce -o ' sum band all
	offers 'tutti tune --table --collective broad' broadcast
	offers "tutti topo --xml $tmp/mach" "$tmp/machine.xml"
	offers "tutti run -n 2 cat $tmp/mach" "$tmp/machine.xml"
	offers 'tutti run -n 2 seq' seq
	offers 'tutti completion ' bash zsh fish
	offers_none 'tutti perf all_reduce ' all_gather
	offers 'tutti no_verb '
	lines out 0
	ok "$1"
}

if command -v bash >/dev/null; then
	completes by_bash
	offers 'tutti plan --format=s' svg
	offers 'tutti plan --format=' table nccl
fi
if command -v fish >/dev/null; then
	fish --no-execute "$tmp/fish" || fail "fish finds something wrong"
	HOME=$tmp completes by_fish
	offers 'tutti plan --format=s' --format=svg
fi
if command -v zsh >/dev/null; then
	zsh -n "$tmp/zsh" || fail "zsh finds something wrong"
	ok "zsh reads its script"
fi
