#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# topo merge: hosts from files and captured machines, rails, JSON, what is refused.
. "$(dirname "$0")/common"

data=$(dirname "$0")/../data
h100=$data/topologies/azhpc-images__ndv5-topo.xml
a100=$data/topologies/azhpc-images__ndv4-topo.xml
sed '3s/link_width="16"/link_width="4"/' "$h100" >"$tmp/slow.xml"

expect 0 "$TUTTI" topo merge "node=$h100:7" "odd=$tmp/slow.xml" "$a100"
says out '^9 hosts of 3 kinds, 72 NICs on 8 rails$'
says out '7 hosts, each 2 sockets Intel Sapphire Rapids, 8x GPU sm90, 8x NIC 400 Gb/s$'
says out '^ +node0-6$'
says out '^ +azhpc-images__ndv4-topo$'
says out '^Rails, from the order of NICs$'
says out '^  odd \(B\) from kind 0 \(A\):$'
says out 'PCI ffff:ff:01.0: link gen5 x16, 48.0 GB/s in A, gen5 x4, 12.0 GB/s in B$'
ok "kinds, rails, the host that differs"

printf '* mlx5_0 0 leaf0\n* mlx5_1 1\nnode[12] mlx5_0 1\n' >"$tmp/rails"
expect 0 "$TUTTI" topo merge --rails "$tmp/rails" "node=$h100:3"
says out 'the file of rails names 6 of 24 NICs only'
says out 'rails:3: node\[12\] mlx5_0: no NIC takes its rail'
for i in 0 1 2 3 4 5 6 7; do echo "* mlx5_$i $((i / 2)) leaf$i"; done >"$tmp/rails"
expect 0 "$TUTTI" topo merge --rails "$tmp/rails" "node=$h100:3"
says out '^Rails, from the file of rails$'
says out '^3 hosts of 1 kind, 24 NICs on 4 rails$'
says out '^  3: 6 NICs of 50.0 GB/s, 300.0 GB/s in all$'
says out '^  7: leaf7, 3 NICs$'
ok "rails of a file"

expect 0 "$TUTTI" topo merge "tray8=$h100:3"
says out '^ +tray8-0-2$'

expect 0 "$TUTTI" topo merge "node=$h100:3" --json
lines out 1
says out '^\{"format":1,"rail_source":"the order of NICs",.*"hosts":\[\{"name":"node0"'
ok "JSON"

mkdir "$tmp/machine"
tar xf "$data/sysfs/32intel64-2p8co2t+8ve.tar.bz2" -C "$tmp/machine"
root=$(dirname "$(find "$tmp/machine" -maxdepth 2 -name sys)")
expect 0 "$TUTTI" topo merge "ve=$root:2"
says out '^2 hosts of 1 kind'
says out '8x GPU without driver'
ok "a captured machine"

expect 0 "$TUTTI" topo merge "node=$h100:2"
cp "$tmp/out" "$tmp/two"
lines err 0
expect 0 "$TUTTI" topo merge "node=$h100*2"
cmp -s "$tmp/out" "$tmp/two" || fail "FILE*2 is not FILE:2"
says err 'FILE\*2 is deprecated.*: write FILE:2'
cp "$h100" "$tmp/of:2"
expect 0 "$TUTTI" topo merge "node=$tmp/of:2"
says out '^1 host of 1 kind'
expect 0 "$TUTTI" topo merge "node=$tmp/of:2:3"
says out '^3 hosts of 1 kind'
ok "how many hosts there are"

expect 2 "$TUTTI" topo merge
says err 'say which hosts'
expect 2 "$TUTTI" topo merge "$h100:0"
expect 2 "$TUTTI" topo merge "$h100:99999999"
expect 2 "$TUTTI" topo merge --odd "$h100"
expect 1 "$TUTTI" topo merge "a=$h100" "a=$h100"
says err "two hosts named 'a'"
expect 1 "$TUTTI" topo merge "a=$tmp/none.xml"
says err 'none.xml'
expect 1 "$TUTTI" topo merge "a=$data/topologies/raw/azhpc-images__ncv4-graph.xml"
says err 'ncv4-graph.xml:[0-9]+:[0-9]+: '
echo 'node0 mlx5_0 first' >"$tmp/rails"
expect 1 "$TUTTI" topo merge --rails "$tmp/rails" "$h100"
says err "rails:1: 'first' is no rail"
expect 0 "$TUTTI" topo merge --help
ok "what is refused"
