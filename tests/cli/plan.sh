#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# plan: what it prints, in each format; what it reads again, checks and compares; what it
# refuses.
. "$(dirname "$0")/common"

data=$(cd "$(dirname "$0")/../data/topologies" && pwd)
ndv4=$data/azhpc-images__ndv4-topo.xml
simai=$data/SimAI-SimCCL__topo_8A100_4CX6.xml
ndv2=$data/Azure-azhpc-images__ndv2-topo.xml

expect 0 "$TUTTI" plan --xml "$ndv4" --nodes 2
says out '^16 ranks on 2 nodes$'
says out '^  2 x 8 ranks, 8 NICs: mlx5_0-7$'
says out '^ring +8 +192\.0 +192\.0 +0\.00 % '
says out '^tree '
says out '^ring in node0$'
says out '^ +0 +24\.0  mlx5_0  mlx5_0  NVL/PIX  1 2 3 4 5 6 7 0$'
ok "a table"

expect 0 "$TUTTI" plan --xml "$ndv4:2" --xml "$data/aws-ofi-nccl__p4d-24xl-topo.xml" --pattern ring
says out '^24 ranks on 3 nodes of 2 kinds$'
says out '^  1 x 8 ranks, 4 NICs'
ok "nodes of several kinds"

# Interfaces of containers are left out, unless they are asked for.
sed 's/name="mlx5_\([1-7]\)"/name="veth\1"/' "$ndv4" >"$tmp/veths.xml"
expect 0 "$TUTTI" plan --xml "$tmp/veths.xml" --nodes 2 --pattern ring
says out '2 x 8 ranks, 1 NIC: mlx5_0$'
expect 0 env TUTTI_SOCKET_IFNAME=veth3 "$TUTTI" plan --xml "$tmp/veths.xml" --nodes 2 --pattern ring
says out '2 x 8 ranks, 2 NICs: mlx5_0, veth3$'
ok "virtual interfaces"

expect 0 "$TUTTI" plan --xml "$ndv4" --nodes 2 --json
says out '^  "nodes":2,$'
says out '^    "ring": \{"total_bw_gbps":192\.00000,"bound_bw_gbps":192\.00000,"search_ms":'
cp "$tmp/out" "$tmp/plan.json"
expect 0 "$TUTTI" plan check "$tmp/plan.json"
says out 'name the machines'
expect 0 "$TUTTI" plan check "$tmp/plan.json" --xml "$ndv4" --nodes 2
says out 'the machines can carry it'
expect 0 "$TUTTI" plan read "$tmp/plan.json" --json
cmp -s "$tmp/out" "$tmp/plan.json" || fail "a plan that was read is printed otherwise"
expect 0 "$TUTTI" plan diff "$tmp/plan.json" "$tmp/plan.json"
says out '^the same plan$'
ok "JSON, and back"

# Ranks on some of the GPUs, named or in a dump of the job.
expect 0 "$TUTTI" plan --xml "$ndv2" --gpus 0,2,5 --json
cp "$tmp/out" "$tmp/part.json"
says out '"endpoints":\["GPU0","GPU2","GPU5"\]'
expect 0 "$TUTTI" plan check "$tmp/part.json" --xml "$ndv2" --gpus 5,0001:00:00.0,GPU2
sed '/<gpu dev="[13467]"/s/ rank="[0-9]*"//' "$ndv2" >"$tmp/job.xml"
expect 0 "$TUTTI" plan --xml "$tmp/job.xml" --json
cp "$tmp/out" "$tmp/job.json"
expect 0 "$TUTTI" plan diff "$tmp/part.json" "$tmp/job.json"
says out '^the same plan$'
expect 0 "$TUTTI" topo --xml "$ndv2" --gpus 0,2,5
says out ' 3 GPUs, '
expect 0 "$TUTTI" paths --xml "$ndv2" --gpus 0,2,5
says out '^ +GPU0 +GPU2 +GPU5 +mlx5_0 '
expect 1 "$TUTTI" topo lint --xml "$ndv2" --gpus 0,2,5
! grep -q nvlink "$tmp/out" || fail "a part of a machine is taken for a broken one"
expect 0 "$TUTTI" topo diff "$ndv2" "$ndv2" --gpus 0,2
expect 0 "$TUTTI" tune --table --xml "$ndv2" --gpus 0,2,5
expect 1 "$TUTTI" plan --xml "$ndv2" --gpus 0,8
says err "GPUs '8': there is no such GPU: .* has GPU0-7"
ok "some of the GPUs"

sed '/^    "ring"/,/^    ]}/s/"bw_gbps":24/"bw_gbps":23/' "$tmp/plan.json" >"$tmp/edited.json"
expect 1 "$TUTTI" plan diff "$tmp/plan.json" "$tmp/edited.json"
says out '^ring: 192\.000 against 184\.000 GB/s in all \(-4\.2 %\)$'
says out '^ring channel 7: 24\.000 against 23\.000 GB/s$'
lines out 9
expect 1 "$TUTTI" plan diff "$tmp/plan.json" "$tmp/edited.json" --json
says out '"differences":\["ring: 192'
sed '/^    "ring"/,/^    ]}/s/"bw_gbps":24/"bw_gbps":25/; s/"bound_bw_gbps":192/"bound_bw_gbps":999/' \
	"$tmp/plan.json" >"$tmp/edited.json"
expect 1 "$TUTTI" plan check "$tmp/edited.json" --xml "$ndv4" --nodes 2
says out 'has 24\.00 GB/s and is to carry 25\.00'
expect 1 "$TUTTI" plan check "$tmp/edited.json" --xml "$ndv4" --nodes 2 --json
says out '^\{"ok":false,"machines":true,"findings":\["'
expect 1 "$TUTTI" plan check "$tmp/edited.json" --xml "$ndv4" --nodes 3
says err 'is a plan of 16 ranks on 2 nodes; these are 24 on 3'
ok "an edited plan"

expect 0 "$TUTTI" plan --xml "$simai" --nodes 2 --nccl --pattern ring --explain
says out 'proven that no others carry more'
says out 'CPU1 to CPU0 \(SYS\): 119\.3 GB/s \(\+1\.4 %\)'
says out 'beside GPU0, or at any of 7 other places: 141\.7 GB/s'
expect 0 "$TUTTI" plan --xml "$simai" --nodes 2 --pattern ring --explain --json
says out '^\{"explain":\["ring: '
ok "explained"

expect 0 "$TUTTI" plan --xml "$simai" --nodes 2 --pattern ring --order 0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1
says out 'ranks as they are dealt out now .* the plan has 8\.28 times that; 16 steps leave a node'
printf '# two racks\na slots=8 switch=x\nb slots=8 switch=y\nc slots=8 switch=x\n' >"$tmp/hosts"
expect 0 "$TUTTI" plan --xml "$simai" --hostfile "$tmp/hosts" --pattern ring
says out '^24 ranks on 3 nodes$'
says out 'follow each other as a, c, b'
says out '^  c slots=8$'
says out '3 steps leave a node, 2 a switch'
expect 2 "$TUTTI" plan --xml "$simai" --hostfile "$tmp/hosts" --nodes 2
says err 'names 3 nodes, and there are 2'
echo 'a sluts=8' >"$tmp/hosts"
expect 2 "$TUTTI" plan --xml "$simai" --hostfile "$tmp/hosts"
says err "hosts:1: 'sluts=8' is neither slots=N nor switch=NAME"
ok "the order of ranks"

expect 0 "$TUTTI" plan --xml "$ndv2" --pattern ring --format dot
says out '^digraph tutti'
if command -v dot >/dev/null; then
	expect 0 "$TUTTI" plan --xml "$ndv2" --pattern ring --format svg -o "$tmp/plan.svg"
	grep -q '</svg>' "$tmp/plan.svg" || fail "that is no SVG"
fi
ok "pictures"

expect 0 "$TUTTI" plan --xml "$ndv4" --nodes 2 --nccl --format nccl -o "$tmp/graph.xml"
expect 0 "$TUTTI" plan check "$tmp/graph.xml" --xml "$ndv4" --nodes 2 --nccl
expect 0 "$TUTTI" plan --xml "$ndv4" --nodes 2 --nccl --compare "$tmp/graph.xml"
says out '^ring +8 +192\.00 +8 +192\.00 +192\.00 +1\.00$'
expect 0 "$TUTTI" plan --xml "$data/Azure-azhpc-images__ncv4-topo.xml" --nccl --json \
	--compare "$data/raw/azhpc-images__ncv4-graph.xml"
says out '"pattern":"ring","file_channels":2,"file_bw_gbps":24\.0,'
expect 0 "$TUTTI" plan --xml "$data/Azure-azhpc-images__ncv4-topo.xml" --nccl \
	--plan "$data/raw/azhpc-images__ncv4-graph.xml"
says out '^ +1 +12\.0 +SYS +0 3 2 1$'
expect 1 "$TUTTI" plan check "$data/raw/Azure-azurehpc__nc48v4-graph.xml" \
	--xml "$data/Azure-azhpc-images__ncv4-topo.xml"
says err 'nc48v4-graph\.xml:3:5: <channel>: 2 GPUs in a channel of 4 ranks'
expect 2 "$TUTTI" plan --xml "$ndv4" --nodes 2 --compare "$ndv4"
says err 'this is a topology'
ok "NCCL's graph files"

# Every number of channels and every choice of NICs gives a plan that can be carried.
for options in '--cross-nic 0' '--cross-nic 1' '--cross-nic 2' '--channels 4:8' '--channels 32' \
	'--both-ways' '--ranks 5' '--ranks 12'; do
	# shellcheck disable=SC2086 # several words
	"$TUTTI" plan --xml "$ndv4" --nodes 3 $options --json >"$tmp/plan.json" 2>"$tmp/err" ||
		fail "plan $options"
	# shellcheck disable=SC2086
	expect 0 "$TUTTI" plan check "$tmp/plan.json" --xml "$ndv4" --nodes 3 $(
		echo "$options" | grep -E 'ranks|both')
	ok "$options"
done

refuse()
{
	words=$1
	shift
	expect 2 "$TUTTI" plan "$@"
	says err "$words"
	lines out 0
}
refuse "no pattern 'circle'" --xml "$ndv4" --pattern ring,circle
refuse "pattern 'ring' is there twice" --xml "$ndv4" --pattern ring,tree,ring
refuse "--format 'pdf': choose one of table" --xml "$ndv4" --format pdf
refuse "'3': choose auto, 0, 1 or 2" --xml "$ndv4" --cross-nic 3
refuse "say it once" --xml "$ndv4:2" --nodes 2
refuse "say it once" --xml "$ndv4*2" --nodes 2
refuse ": the count '0' is no number" --xml "$ndv4:0"
refuse "say how many each" --xml "$ndv4" --xml "$ndv2" --nodes 2
refuse "give one of them" --xml "$ndv4" --sysfs /
refuse "no list of nodes from 0 to 1" --xml "$ndv4" --nodes 2 --order 0,1,2
refuse "node 1 has no ranks" --xml "$ndv4" --nodes 2 --order 0,0
refuse "cyclic needs --ranks" --xml "$ndv4" --nodes 2 --order cyclic
refuse "give one" --xml "$ndv4" --order block --hostfile "$tmp/hosts"
refuse "cannot read" diff "$tmp/plan.json" "$tmp/nothing"
refuse "say which other plan" diff "$tmp/plan.json"
refuse "takes no argument" --xml "$ndv4" more
refuse "No such file" --xml "$tmp/nothing"
expect 1 "$TUTTI" plan --xml "$data/hwloc__nvidiaDGX2-converted.xml" --nodes 2
says err 'has no NIC, so nothing leads to the other'
echo 'no plan' >"$tmp/garbage"
expect 1 "$TUTTI" plan check "$tmp/garbage"
says err 'garbage:1:'
ok "what is no plan is refused with a reason"

expect 0 "$TUTTI" plan
says out '^[0-9]+ ranks? on 1 node$'
ok "this machine"

TUTTI_PLAN_DUMP_FILE=$tmp/used expect 0 "$TUTTI" perf barrier -n 1 -i 1
says err "TUTTI_PLAN_DUMP_FILE=$tmp/used is not written: the ranks have no plan, as one rank"
ok "a job without a plan says that it writes none"
