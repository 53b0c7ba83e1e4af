#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# docs.sh PAGE ENVIRONMENT: writes the programs of the page into the environment's directory, runs
# its commands there, and compares what they print with what the page says. What installs is left
# out: the environment has it.
set -eu
page=$(realpath "$1")
dir=$2/docs
root=$(dirname "$(dirname "$page")")
PATH=$2/bin:$PATH
rm -rf "$dir"
mkdir -p "$dir"
ln -s "$root/bench" "$dir/bench"
cd "$dir"
awk '
	/^```/ {
		if (kind != "") { kind = ""; next }
		kind = substr($0, 4)
		if (kind == "") kind = "none"
		file = sprintf("%d.%s", 100 + ++number, kind)
		next
	}
	kind == "python" && /^# [a-z]*\.py$/ { file = $2 }
	kind != "" { print > file }
' "$page"
ran=0
for commands in *.sh; do
	grep -qvE '^pip install' "$commands" || continue
	timeout 300 sh -eu "$commands" >got.txt 2>err.txt || {
		cat got.txt err.txt
		echo "a command of $page failed: $(cat "$commands")"
		exit 1
	}
	ran=$((ran + 1))
	next=$((${commands%.sh} + 1)).text
	[ ! -f "$next" ] || diff "$next" got.txt
done
[ $ran -gt 0 ] || {
	echo "$page has no commands"
	exit 1
}
echo "$ran commands of $page"
