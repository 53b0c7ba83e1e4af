#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# plan --handoff: pairs, NICs and shares; sides as lists, whole and sharded; JSON, words and
# pictures; what it refuses.
. "$(dirname "$0")/common"

data=$(cd "$(dirname "$0")/../data/topologies" && pwd)
one=$data/handoff/handoff_1nic.xml
two=$data/handoff/handoff_2nic.xml
four=$data/handoff/handoff_4nic.xml

expect 0 "$TUTTI" plan --handoff --xml "$one" --nodes 2
says out '^handoff from ranks 0-7 on node0$'
says out '^          to ranks 8-15 on node1$'
says out '^node0 to node1: 2 pairs, 3\.12 GB/s$'
says out '^ +1 GPU1  mlx5_0  mlx5_0 +9 GPU1 +1/2 +1\.56$'
says out '^no method is faster than +3\.12 .* the NICs out of node0: mlx5_0$'
says out '^a copy for each receiver +0\.391 +172 ms +8\.00$'
ok "one NIC: two pairs"

expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2
says out '4 pairs, 6\.25 GB/s$'
says out '^ +5 GPU5  mlx5_1  mlx5_1 +13 GPU5 +1/4 +1\.56$'
expect 0 "$TUTTI" plan --handoff --xml "$four" --nodes 2
says out '8 pairs, 12\.5 GB/s$'
says out '^ +7 GPU7  mlx5_3  mlx5_3 +15 GPU7 +1/8 +1\.56$'
ok "two NICs: four pairs; four NICs: eight"

expect 0 "$TUTTI" plan --handoff --xml "$data/handoff/handoff_2nic_unequal.xml" --nodes 2
says out '^ +0 GPU0  mlx5_0  mlx5_0 +8 GPU0 +35\.7 % +1\.56$'
says out '^ +4 GPU4  mlx5_1  mlx5_1 +12 GPU4 +1/7 +0\.625$'
ok "shares by the speed of NICs"

# The nodes of a chain are served one after the other, and nothing crosses a NIC twice.
expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 3 --bytes 1G --explain
says out '^node1 to node2: 4 pairs, 6\.25 GB/s$'
says out '^node0 to node1: all of it once, over 4 pairs$'
says out '^  out by mlx5_1: 3\.12 of 3\.12 GB/s, from GPU4, GPU5, on the same switch \(PIX\)$'
says out '^inside node2: while later slices come in'
says out '^  1 GiB take .* times the bound'
ok "more nodes, in words"

expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2 --from 0 --to 8-9,12 --bytes 1M
says out '^handoff from rank 0 on node0$'
says out '^          to ranks 8-9, 12 on node1$'
says out ' 1 MiB +ratio'
expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2 --sharded from
says out '8 pairs'
says out 'part 7$'
expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2 --sharded both
says out '^          to ranks 8-15 on node1, 1/8 each$'
expect 0 "$TUTTI" plan --handoff --xml "$two" --from 0 --to 1-7
says out '^this plan'
expect 0 "$TUTTI" plan --handoff --xml "$two" --from 0-7 --to 1-3
says out 'nothing is to be moved'
ok "sides"

# Nodes of several kinds, and without GPUs.
expect 0 "$TUTTI" plan --handoff --xml "$one" --xml "$four"
says out '^node0 to node1: 2 pairs, 3\.12 GB/s$|^node0 to node1: 4 pairs, 3\.12 GB/s$'
printf '%s' '<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" ' \
	'vendor="AuthenticAMD"><nic><net name="eth0" dev="0" speed="1000"/></nic>' \
	'<nic><net name="eth1" dev="1" speed="250"/></nic></cpu></system>' >"$tmp/cpu.xml"
expect 0 "$TUTTI" plan --handoff --xml "$tmp/cpu.xml" --nodes 2 --ranks 4 --explain
says out '^node0 to node1: 5 pairs, 0\.156 GB/s$'
says out '^  out by eth1: 0\.0312 of 0\.0312 GB/s, from rank 0, on the same NUMA node'
ok "unequal nodes, nodes without GPUs"

expect 0 "$TUTTI" plan --handoff --xml "$four" --nodes 2 --json --bytes 64M
says out '^  "from":\[0,1,2,3,4,5,6,7\],$'
says out '^  "gbps":12\.50000,$'
says out '"net_out":"mlx5_3","net_in":"mlx5_3","to":15,"to_endpoint":"GPU7","share":0\.125000'
if command -v python3 >/dev/null; then
	python3 -c '
import json, sys
plan = json.load(open(sys.argv[1]))
pairs = [p for leg in plan["legs"] for p in leg["pairs"]]
assert abs(sum(p["share"] for p in pairs) - 1) < 1e-5
assert plan["gbps"] <= plan["bound_gbps"] * 1.00001 and plan["us"] >= plan["bound_us"]
for tree in plan["trees"]:
    assert sorted(tree["ranks"]) == plan["to"] and tree["parents"][0] == -1
' "$tmp/out" || fail "the JSON does not add up"
fi
ok "JSON"

expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2 --format dot
says out '^digraph tutti'
says out 'label="1/4, 1\.56 GB/s"'
if command -v dot >/dev/null; then
	expect 0 "$TUTTI" plan --handoff --xml "$two" --nodes 2 --format svg -o "$tmp/handoff.svg"
	grep -q '</svg>' "$tmp/handoff.svg" || fail "that is no SVG"
fi
ok "pictures"

# What docs/handoff.md shows is what is printed.
doc=$(dirname "$0")/../../docs/handoff.md
for name in 1nic 2nic 2nic_unequal 4nic 4nic_nvlink; do
	expect 0 "$TUTTI" plan --handoff --xml "$data/handoff/handoff_$name.xml" --nodes 2
	awk 'NR == FNR { want[++n] = $0; next }
		{ at = $0 == want[at + 1] ? at + 1 : $0 == want[1]; found = found || at == n }
		END { exit !found }' "$tmp/out" "$doc" || fail "docs/handoff.md shows another $name"
done
ok "the documentation"

refuse()
{
	words=$1
	shift
	expect 2 "$TUTTI" plan "$@"
	says err "$words"
	lines out 0
}
refuse "no list of ranks" --handoff --xml "$two" --nodes 2 --from 0,x
refuse "no list of ranks" --handoff --xml "$two" --nodes 2 --to 7-3
refuse "has rank 99: there are 16 ranks" --handoff --xml "$two" --nodes 2 --to 99
refuse "rank 8 is on side 'to' of a handoff twice" --handoff --xml "$two" --nodes 2 --to 8,8
refuse "--sharded 'some': choose from, to or both" --handoff --xml "$two" --nodes 2 --sharded some
refuse "say which ranks hold the vector" --handoff --xml "$two"
refuse "--from needs --handoff" --xml "$two" --nodes 2 --from 0
refuse "no graph file of NCCL" --handoff --xml "$two" --nodes 2 --format nccl
refuse "give one" --handoff --xml "$two" --nodes 2 --json --explain
expect 1 "$TUTTI" plan --handoff --xml "$data/hwloc__nvidiaDGX2-converted.xml" --nodes 2
says err 'has no NIC'
expect 1 "$TUTTI" plan --handoff --xml "$two" --from 0 --to 1 --format dot
says err 'there is nothing to draw'
ok "what is no handoff is refused with a reason"
