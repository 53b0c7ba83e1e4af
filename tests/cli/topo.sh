#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# topo and paths: where a topology comes from, where it goes, what is refused. What they
# say is in tests/golden/topo.
. "$(dirname "$0")/common"
here=$(cd "$(dirname "$0")/.." && pwd)
ndv4=$here/data/topologies/azhpc-images__ndv4-topo.xml
ndv2=$here/data/topologies/Azure-azhpc-images__ndv2-topo.xml
capture=$here/data/sysfs/linux-amd64-accel-nvidia.tar.gz
unset TUTTI_TOPO_FILE TUTTI_SYSFS_ROOT NCCL_TOPO_FILE NO_COLOR

# bad PATTERN ARGUMENTS...: bad usage that is named
bad()
{
	pattern=$1
	shift
	expect 2 "$TUTTI" "$@"
	says err "$pattern"
	lines out 0
	ok "$*"
}

expect 0 "$TUTTI" topo
says out '^this machine: '
expect 0 "$TUTTI" paths
says out '^GB/s$|there are no paths'
expect 0 "$TUTTI" paths --json
says out '^\{"format":1,"endpoints":\['
ok "this machine"

expect 0 "$TUTTI" topo --xml "$ndv4"
says out '^\|- socket 0$'
expect 0 env TUTTI_TOPO_FILE="$ndv4" "$TUTTI" topo
says out '\bGPU7 '
expect 0 "$TUTTI" topo --xml "$ndv4" --detect
says out '\bGPU7 '
ok "a file, alone and over this machine"

# NCCL writes the eth0 of a container below each <cpu>, and runs with such a file.
for numa in 0 1; do
	printf '<cpu host_hash="0xHOST_A" numaid="%s" affinity="0f" arch="x86_64">' $numa
	printf '<nic><net name="eth0" dev="0" speed="10000" port="0" guid="0x0"/></nic></cpu>\n'
done | sed '1s/^/<!------>\n<system version="1">/; $s/$/<\/system>/' >"$tmp/container.xml"
expect 0 env NCCL_TOPO_FILE="$tmp/container.xml" "$TUTTI" run -n 2 \
	"$TUTTI" perf all_reduce -b 1K -e 1K
expect 0 "$TUTTI" topo --xml "$tmp/container.xml"
says out ' 1 NIC port$'
ok "a job with what NCCL wrote in a container"

# A .tar, the folder it holds, and TUTTI_SYSFS_ROOT are one machine. The folder is gone.
folders() { ls -d /tmp/tutti-topo-* 2>/dev/null; }
folders >"$tmp/before"
expect 0 "$TUTTI" topo --sysfs "$capture"
says out 'linux-amd64-accel-nvidia.tar.gz: .*1 GPU'
sed 1d "$tmp/out" >"$tmp/of_tar"
# Those of others, which run beside us, go too.
folders | grep -vxF -f "$tmp/before" >"$tmp/new"
none_is_left() { ! folders | grep -qxF -f "$tmp/new"; }
eventually none_is_left
mkdir "$tmp/machine" && tar -xf "$capture" -C "$tmp/machine"
expect 0 "$TUTTI" topo --sysfs "$tmp/machine"
sed 1d "$tmp/out" | diff - "$tmp/of_tar" || fail "the folder is another machine"
expect 0 env TUTTI_SYSFS_ROOT="$tmp/machine" "$TUTTI" topo
sed 1d "$tmp/out" | diff - "$tmp/of_tar" || fail "TUTTI_SYSFS_ROOT is another machine"
# As it may be captured: without the right to write. Root may always.
tar -cf "$tmp/sealed.tar" --mode=a-w -C "$tmp/machine" .
expect 0 "$TUTTI" topo --sysfs "$tmp/sealed.tar"
mkdir "$tmp/outer" && mv "$tmp/machine" "$tmp/outer/node1"
tar -czf "$tmp/outer.tar.gz" -C "$tmp" outer
expect 1 "$TUTTI" topo --sysfs "$tmp/outer.tar.gz"
says err 'no captured machine'
tar -czf "$tmp/inner.tgz" -C "$tmp/outer" node1
expect 0 "$TUTTI" topo diff "$tmp/inner.tgz" "$tmp/outer/node1"
says out '^wired alike$'
ok "a captured machine, packed and not"

expect 0 "$TUTTI" topo --sysfs "$capture" --all
[ "$(wc -l <"$tmp/out")" -gt "$(wc -l <"$tmp/of_tar")" ] || fail "--all shows no more"
expect 0 "$TUTTI" topo --measure
says out 'memory [0-9.]+ [MGT]iB [0-9.]+ GB/s [0-9]+ ns$'
ok "--all, --measure"

# What is written reads as the same.
expect 0 "$TUTTI" topo --xml "$ndv4" --format xml -o "$tmp/again.xml"
lines out 0
expect 0 "$TUTTI" topo diff "$ndv4" "$tmp/again.xml"
expect 1 "$TUTTI" topo diff "$ndv4" "$ndv2"
says out '^NET mlx5_0: speed 200 Gb/s in A, 100 Gb/s in B$'
expect 1 "$TUTTI" topo diff "$ndv4" "$ndv2" --json
says out '^\{"a":".*","b":".*","differences":\['
expect 0 "$TUTTI" topo diff "$ndv4" "$ndv4" --json
says out '"differences":\[\]\}$'
ok "xml, diff"

expect 0 "$TUTTI" topo lint --xml "$ndv4"
says out '^1 note$'
expect 1 "$TUTTI" topo lint --xml "$ndv2"
says out '^error numa-same-mask: '
expect 1 "$TUTTI" topo lint --xml "$ndv2" --json
says out '"rule":"numa-same-mask","severity":"error"'
expect 0 "$TUTTI" topo --xml "$ndv2"
says out "^1 error: see 'tutti topo lint'$"
ok "lint"

# Colour where it is asked for; NO_COLOR and pipes have none.
escape=$(printf '\033')
expect 0 "$TUTTI" topo --xml "$ndv4"
grep -q "$escape" "$tmp/out" && fail "colour in a pipe"
expect 0 "$TUTTI" topo --xml "$ndv4" --color always
says out "$escape"
if command -v script >/dev/null; then
	script -qec "$TUTTI topo --xml $ndv4" /dev/null >"$tmp/out" 2>&1 </dev/null
	says out "$escape"
	NO_COLOR=1 script -qec "$TUTTI topo --xml $ndv4" /dev/null >"$tmp/out" 2>&1 </dev/null
	grep -q "$escape" "$tmp/out" && fail "colour in spite of NO_COLOR"
fi
if [ "$(LC_ALL=C.UTF-8 locale charmap 2>/dev/null)" = UTF-8 ]; then
	expect 0 env LC_ALL=C.UTF-8 "$TUTTI" topo --xml "$ndv4"
	says out '^├─ socket 0$'
fi
ok "colour and lines"

if command -v dot >/dev/null; then
	for file in "$ndv4" "$ndv2" "$here"/data/topologies/aws-aws-ofi-nccl__p5*.xml; do
		expect 0 "$TUTTI" topo --xml "$file" --format svg -o "$tmp/picture.svg"
		lines err 0
		grep -q '</svg>' "$tmp/picture.svg" || fail "that is no SVG"
		for gpu in 0 1 2 3 4 5 6 7; do
			grep -q ">GPU$gpu<" "$tmp/picture.svg" || fail "GPU$gpu is not in it"
		done
	done
	# Every picture there is can be drawn.
	for file in "$here"/data/topologies/*.xml; do
		"$TUTTI" topo --xml "$file" --format dot | timeout 60 dot -Tsvg >"$tmp/out" \
			2>"$tmp/err" || fail "dot refuses $file"
		grep -q 'Error' "$tmp/err" && fail "dot complains of $file"
	done
	ok "pictures"
fi
mkdir "$tmp/bin"
expect 1 env PATH="$tmp/bin" "$TUTTI" topo --xml "$ndv4" --format svg
says err 'install the package graphviz'
expect 1 env PATH="$tmp/bin" "$TUTTI" topo --sysfs "$capture"
says err 'cannot run tar'
ok "without dot and tar"

bad "cannot read '/nonexistent'" topo --xml /nonexistent
bad "cannot read '/nonexistent'" topo --sysfs /nonexistent
bad 'two machines' topo --xml "$ndv4" --sysfs "$tmp/outer/node1"
bad "--format 'png': choose one of tree" topo --format png
bad "--color 'sometimes': choose auto, always or never" paths --color sometimes
bad "takes no argument, it was given 'gpu'" topo gpu
bad "takes no argument, it was given 'x'" paths x
bad 'say which other machine' topo diff "$ndv4"
bad "cannot write '/nonexistent/x'" topo -o /nonexistent/x
bad "no option --bogus" topo lint --bogus

echo '<system version="1"><cpu numaid="0"/><cpu numaid="0"/></system>' >"$tmp/twice.xml"
expect 1 "$TUTTI" topo --xml "$tmp/twice.xml"
says err "^tutti topo: .*twice.xml:1:[0-9]+: "
lines err 1 # not in the log as well
expect 1 env TUTTI_DEBUG=INFO "$TUTTI" topo --xml "$tmp/twice.xml"
says err "^tutti WARN .*twice.xml:1:[0-9]+: "
expect 1 "$TUTTI" topo --sysfs "$tmp/twice.xml"
says err "not a captured machine: --xml takes"
lines err 1
head -c 300 "$capture" >"$tmp/cut.tar.gz"
expect 1 "$TUTTI" topo --sysfs "$tmp/cut.tar.gz"
says err "could not unpack"
: >"$tmp/empty.tar"
expect 1 "$TUTTI" topo --sysfs "$tmp/empty.tar"
ok "what is refused is a finding"

for sub in lint diff merge; do
	expect 0 "$TUTTI" topo $sub --help
	says out "^Usage: tutti topo $sub"
	says out '--json'
done
ok "help of each"

# The page lists the rules that there are, with their severities.
sed -n 's/^\t{ "\([a-z0-9-]*\)", \([A-Z]*\), tti_lint_.*/\1 \2/p' "$here/../src/insight/lint/lint.c" |
	tr A-Z a-z >"$tmp/rules"
[ "$(wc -l <"$tmp/rules")" -ge 15 ] || fail "the rules were not found"
sed -n 's/^| `\([a-z0-9-]*\)` | \(note\|warning\|error\) | .*/\1 \2/p' \
	"$here/../docs/topology.md" | diff - "$tmp/rules" || fail "docs/topology.md has other rules"
ok "docs/topology.md has every rule"
