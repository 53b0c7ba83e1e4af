#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose ranks are dealt out unevenly over hosts (network namespaces): they go by one
# plan, or none of them begins.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}"
data=$PWD/../data/topologies

block="0 0 0 1 1 2"
cyclic="0 1 2 0 1 0"

# -- All collectives, on the agreed plan ------------------------------------------------

# The ranks of each host follow each other in the ring.
check_ring()
{
	python3 - "$1" "$2" <<-'END'
		import json, sys
		hosts = sys.argv[2].split()
		plan = json.load(open(sys.argv[1]))
		assert plan["ranks"] == len(hosts) and plan["nodes"] == 3, plan
		for channel in plan["patterns"]["ring"]["channels"]:
		    order = [hosts[rank] for rank in channel["ranks"]]
		    changes = sum(a != b for a, b in zip(order, order[1:] + order[:1]))
		    assert sorted(channel["ranks"]) == list(range(len(hosts))), channel
		    assert changes == 3, order
	END
}

run_collectives()
{
	for coll in all_reduce broadcast reduce all_gather reduce_scatter barrier send_recv; do
		TUTTI_PLAN_DUMP_FILE="$net_dir/plan" job "$2" "$TUTTI" perf $coll -b 8 -e 1M \
			-f 32 -i 2 -w 1 --json || die "$1: $coll"
		! grep -q '"wrong":[1-9]' "$net_dir/out.0" || die "$1: $coll: wrong results"
		[ $coll = barrier ] || grep -q '"wrong":0' "$net_dir/out.0" ||
			die "$1: $coll: no results"
		check_ring "$net_dir/plan" "$2" || die "$1: $coll: the ring of the plan"
	done
	ok "$1: all collectives"
}

# The order of the ring is the plan's and not that of numbers: algorithms that use it too.
run_algorithms()
{
	for algo in all_reduce:ring all_reduce:double_tree all_reduce:hierarchical \
		all_gather:ring reduce_scatter:ring broadcast:chain reduce:chain; do
		TUTTI_ALGO=$algo job "$2" "$TUTTI" perf "${algo%:*}" -b 4K -e 4M -f 32 -i 2 -w 1 \
			--json || die "$1: $algo"
		! grep -q '"wrong":[1-9]' "$net_dir/out.0" || die "$1: $algo: wrong results"
		grep -q '"wrong":0' "$net_dir/out.0" || die "$1: $algo: no results"
	done
	ok "$1: algorithms over the plan"
}

says_plan()
{
	TUTTI_DEBUG=INFO job "$cyclic" "$TUTTI" perf barrier -v || die "a job at INFO"
	grep -q 'init: bootstrap .* ms, .*topology .* ms, plan .* ms' "$net_dir/err.0" ||
		die "the phases of init are not told"
	grep -q 'plan: 6 ranks on 3 nodes, ring .* GB/s of at most' "$net_dir/err.0" ||
		die "the log does not tell the plan"
	grep -q '^#  node 1 .*ranks 1 4; NIC eth0' "$net_dir/out.0" || die "perf -v: the plan"
	ok "phases and plan are told"
}

# -- Ranks that see different things -------------------------------------------------------

# fails NAME STATUS-PATTERN: the job ends on all ranks, soon, with that text.
fails()
{
	name=$1 pattern=$2
	begin=$(date +%s%N)
	! job "$block" "$TUTTI" perf all_reduce -e 1K || die "$name: it runs"
	took=$((($(date +%s%N) - begin) / 1000000))
	for rank in 0 1 2 3 4 5; do
		grep -q "$pattern" "$net_dir/err.$rank" || die "$name: rank $rank does not say why"
		[ "$(cat "$net_dir/code.$rank")" = 1 ] || die "$name: rank $rank runs"
	done
	[ "$took" -lt 50000 ] || die "$name: it took $took ms"
	ok "$name: all ranks end within $took ms"
}

other_topologies()
{
	sed 's/link_width="16"/link_width="8"/' "$data/azhpc-images__ndv4-topo.xml" \
		>"$net_dir/other.xml"
	for rank in 0 1 2 3 4 5; do
		eval "set_$rank=TUTTI_TOPO_FILE=$data/azhpc-images__ndv4-topo.xml"
	done
	set_2=TUTTI_TOPO_FILE=$net_dir/other.xml
	fails "another topology on one rank" \
		'TUTTI_TOPO_FILE of rank 2 (B) is not that of rank 0 (A): .*gen4 x16.* in A, gen4 x8'
	set_2=
	fails "no topology file on one rank" 'rank 2 has no TUTTI_TOPO_FILE and rank 0 has one'
	set_2=TUTTI_TOPO_FILE=$net_dir/none.xml
	fails "a topology file that is missing" 'none.xml: No such file'
	for rank in 0 1 2 3 4 5; do
		eval "set_$rank="
	done
	set_4=TUTTI_P2P_LEVEL=SYS
	fails "another level" 'rank 4 has another TUTTI_P2P_LEVEL than rank 0'
	set_4=
}

# Hosts may differ, if they are hosts: Intel beside AMD, another topology on each.
mixed_hosts()
{
	set_0="TUTTI_HOST_ID=a TUTTI_TOPO_FILE=$data/azhpc-images__ndv4-topo.xml" set_1=$set_0
	set_2=$set_0
	set_3="TUTTI_HOST_ID=b TUTTI_TOPO_FILE=$data/rccl__topo_8p_rome_n4_1.xml" set_4=$set_3
	set_5="TUTTI_HOST_ID=c TUTTI_TOPO_FILE=$data/aws-ofi-nccl__p4d-24xl-topo.xml"
	run_collectives "hosts of three kinds" "$block"
	for rank in 0 1 2 3 4 5; do
		eval "set_$rank="
	done
}

# -- A plan of the user's --------------------------------------------------------------------

user_plan()
{
	TUTTI_PLAN_DUMP_FILE="$net_dir/plan" job "$block" "$TUTTI" perf barrier ||
		die "a plan to edit"
	# The hosts the other way round.
	python3 - "$net_dir/plan" "$net_dir/edited" <<-'END'
		import json, sys
		plan = json.load(open(sys.argv[1]))
		plan["patterns"]["ring"]["channels"][0]["ranks"] = [5, 4, 3, 2, 0, 1]
		json.dump(plan, open(sys.argv[2], "w"))
		plan["patterns"]["ring"]["channels"][0]["ranks"] = [5, 4, 3, 2, 0, 0]
		json.dump(plan, open(sys.argv[2] + ".twice", "w"))
	END
	export TUTTI_PLAN_FILE="$net_dir/edited"
	TUTTI_ALGO=all_reduce:ring TUTTI_PLAN_DUMP_FILE="$net_dir/used" job "$block" "$TUTTI" \
		perf all_reduce -b 8 -e 1M -f 32 -i 2 --json || die "a plan of the user's"
	grep -q '"wrong":0' "$net_dir/out.0" || die "a plan of the user's: no results"
	grep -q '"ranks":\[5,4,3,2,0,1\]' "$net_dir/used" || die "a plan of the user's is not used"
	ok "TUTTI_PLAN_FILE is honoured"

	TUTTI_PLAN_FILE=$net_dir/edited.twice
	fails "a plan that visits a rank twice" \
		'TUTTI_PLAN_FILE .*edited.twice cannot be used: .*ring channel 0'
	set_3=TUTTI_PLAN_FILE=$net_dir/edited TUTTI_PLAN_FILE=$net_dir/plan
	fails "another plan on one rank" 'TUTTI_PLAN_FILE of rank 3 (B) is not that of rank 0 (A)'
	set_3=
	echo '{"nodes":3' >"$net_dir/broken"
	TUTTI_PLAN_FILE=$net_dir/broken
	fails "a plan that is none" 'TUTTI_PLAN_FILE .*broken cannot be used: .*broken:'
	TUTTI_PLAN_FILE=$net_dir/plan
	usual=$block
	block=$cyclic
	fails "a plan of other hosts" \
		'cannot be used: its node 0 holds ranks 0 and 1, which are on different hosts'
	block="0 0 1 1 2 2 2"
	fails "a plan of other ranks" \
		'cannot be used: it is of 6 ranks on 3 nodes, and these are 7 on 3 hosts'
	block=$usual
	unset TUTTI_PLAN_FILE
}

# -- Where nothing is known of the machine ------------------------------------------------

hidden_sys()
{
	cat >"$net_dir/hidden.sh" <<-'END'
		#!/bin/sh
		mount -t tmpfs none /sys && exec "$@"
	END
	chmod +x "$net_dir/hidden.sh"
	job "$block" unshare -m "$net_dir/hidden.sh" "$TUTTI" perf all_reduce -b 8 -e 64K -f 8 \
		-i 2 --json || die "without /sys"
	grep -q '"wrong":0' "$net_dir/out.0" || die "without /sys: no results"
	ok "a machine without /sys"
}

net_up 3
run_collectives "3, 2 and 1 ranks" "$block"
run_collectives "dealt out in turn" "$cyclic"
run_algorithms "dealt out in turn" "$cyclic"
says_plan
other_topologies
mixed_hosts
user_plan
hidden_sys
echo "$passed passed, 0 failed"
