#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Tree, paths and findings of every topology file and captured machine that there is,
# beside what they were. `tests/cli/topo_golden.sh -w` writes them anew: look at what
# `git diff` says then.
. "$(dirname "$0")/common"
here=$(cd "$(dirname "$0")/.." && pwd)
golden=$here/golden/topo
export TUTTI_DEBUG=NONE

# transcript --xml|--sysfs FILE: what a user would see, in the folder of the file.
transcript()
{
	for verb in topo paths 'topo lint'; do
		echo "\$ tutti $verb $1 $2"
		# shellcheck disable=SC2086 # words
		"$TUTTI" $verb "$1" "$2" 2>&1
		echo "exit code $?"
		echo
	done
}

# compare OPTION FILE: its transcript with the golden one.
compare()
{
	wanted=$golden/$(echo "$2" | tr / -).txt
	transcript "$1" "$2" >"$tmp/got"
	if [ -n "$write" ]; then
		cp "$tmp/got" "$wanted"
	else
		diff -u "$wanted" "$tmp/got" >"$tmp/out" || fail "$2 is shown otherwise"
		ok "$2"
	fi
}

write=
[ "${1-}" != -w ] || write=1
cd "$here/data/topologies" || fail 'no topologies'
for file in *.xml raw/*.xml; do
	compare --xml "$file"
done
mkdir "$tmp/captures" && cd "$tmp/captures" || fail 'no room'
for tarball in "$here"/data/sysfs/*.tar.*; do
	name=$(basename "${tarball%.tar.*}")
	mkdir "$name" && tar -xf "$tarball" -C "$name" --exclude='*/cpu/cpu*/cache' ||
		fail "$tarball cannot be unpacked"
	# The machine itself, or a folder that holds it.
	[ -d "$name/sys" ] || mv "$name"/*/* "$name"
	compare --sysfs "$name"
done
