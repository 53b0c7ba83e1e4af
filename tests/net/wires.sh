#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The NICs that a plan names for a channel are those that carry it: counted in bytes. Two hosts with
# two cables between them.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream

# edit GBPS_ETH0 GBPS_ETH1: the plan in $net_dir/plan, with what channels carry over each NIC in
# $net_dir/edited; a channel that carries nothing is left out.
edit()
{
	python3 - "$net_dir/plan" "$net_dir/edited" "$@" <<-'END'
		import json, sys
		plan = json.load(open(sys.argv[1]))
		gbps = {"eth0": float(sys.argv[3]), "eth1": float(sys.argv[4])}
		for pattern in plan["patterns"].values():
		    kept = []
		    for channel in pattern["channels"]:
		        nics = {nic for ends in channel["nets"] for nic in ends}
		        assert len(nics) == 1, channel
		        channel["bw_gbps"] = gbps[nics.pop()]
		        kept += [channel] if channel["bw_gbps"] > 0 else []
		    pattern["channels"] = kept
		    pattern["total_bw_gbps"] = sum(channel["bw_gbps"] for channel in kept)
		    pattern["bound_bw_gbps"] = pattern["total_bw_gbps"]
		json.dump(plan, open(sys.argv[2], "w"))
	END
}

# part WHAT LEAST MOST: of what the first host has sent since `count`, eth1 sent that part.
count()
{
	sent_0=$(rail_bytes 0) sent_1=$(rail_bytes 1)
}

part()
{
	eth0=$(($(rail_bytes 0) - sent_0)) eth1=$(($(rail_bytes 1) - sent_1))
	part=$(awk -v a="$eth0" -v b="$eth1" 'BEGIN { printf "%.4f", b / (a + b) }')
	awk -v p="$part" -v least="$2" -v most="$3" 'BEGIN { exit !(p >= least && p <= most) }' ||
		die "$1: eth1 sent $part of $((eth0 + eth1)) bytes, $2 to $3 is asked for"
}

# sums NAME HOSTS BYTES NIC... LEAST MOST: sums of so many bytes; of what crosses once all of
# these NICs are in use, eth1 has that part. Until a NIC is in use another one carries for it. Told by
# bytes and not by time, in which a busy machine may send no more than what begins and ends a job.
sums()
{
	name=$1
	until_stop "$2" "$stream" all_reduce "$3" "$net_dir/stop"
	shift 3
	while [ $# -gt 2 ]; do
		await "$name: ${1} is in use" has_sent "${1#eth}" "$(rail_bytes "${1#eth}")" 4000000
		shift
	done
	count
	await "$name: 80 MB are sent" have_sent 80000000
	part "$name" "$1" "$2"
	stop
	job_end || die "$name"
}

have_sent()
{
	[ $(($(rail_bytes 0) + $(rail_bytes 1) - sent_0 - sent_1)) -gt "$1" ]
}

moved_rings()
{
	net_rails 0 0
	export TUTTI_ALGO=all_reduce:ring
	for hosts in "0 1" "0 0 1 1"; do
		unset TUTTI_PLAN_FILE
		TUTTI_PLAN_DUMP_FILE="$net_dir/plan" sums "rings over both NICs" "$hosts" 4194304 eth0 eth1 0.3 0.7
		export TUTTI_PLAN_FILE="$net_dir/edited"
		edit 0 2
		sums "rings over eth1" "$hosts" 4194304 eth1 0.98 1
		edit 2 0
		sums "rings over eth0" "$hosts" 4194304 eth0 0 0.02
	done
	unset TUTTI_PLAN_FILE TUTTI_ALGO
	ok "a plan that moves rings to one NIC moves their bytes there"
}

# Sums of 64 KiB, each over before the next begins: no NIC is ever the one that others wait for.
shares()
{
	TUTTI_PLAN_DUMP_FILE="$net_dir/plan" job "0 1" "$TUTTI" perf barrier ||
		die "a plan to edit"
	export TUTTI_PLAN_FILE="$net_dir/edited"
	edit 1 3
	sums "shares of 1 and 3" "0 1" 65536 eth0 eth1 0.71 0.79
	edit 2 1
	sums "shares of 2 and 1" "0 1" 65536 eth0 eth1 0.29 0.38
	unset TUTTI_PLAN_FILE
	ok "NICs carry the shares of a plan"
}

falls_behind()
{
	[ "$(grep -c 'eth1 to eth1) falls behind its share in the plan' "$net_dir/err.0")" = 1 ]
}

# The plan knows nothing of it: both cables claim the same.
slow_nic()
{
	name="a NIC that is slower than the plan thinks"
	net_rails 200 50
	set_0=TUTTI_DEBUG=INFO
	until_stop "0 1" "$stream" send 4194304 "$net_dir/stop"
	set_0=
	await "$name: that is said" falls_behind
	count
	await "$name: eth0 carries" has_sent 0 "$sent_0" 30000000
	part "$name" 0.1 0.4
	stop
	job_end || die "$name"
	falls_behind || die "$name: that is said too often"
	ok "a NIC that falls behind its share loses work"
}

# What was to go by eth1 alone goes by eth0 while there is no eth1, and comes back.
lost_nic()
{
	net_rails 0 0
	export TUTTI_PLAN_FILE="$net_dir/edited"
	edit 0 2
	until_stop "0 1" "$stream" all_reduce 1048576 "$net_dir/stop" 2
	await "a NIC of the plan is in use" has_sent 1 "$(rail_bytes 1)" 4000000
	count
	await "a NIC of the plan carries" has_sent 1 "$sent_1" 4000000
	[ $(($(rail_bytes 0) - sent_0)) -lt 1000000 ] || die "a NIC that has no share in the plan carries"
	link 0 1 down
	await "a NIC of the plan is lost: the other carries" has_sent 0 "$(rail_bytes 0)" 4000000
	link 0 1 up
	await "a NIC of the plan comes back" has_sent 1 "$(rail_bytes 1)" 4000000
	stop
	job_end || die "a NIC of the plan is lost: the job fails"
	unset TUTTI_PLAN_FILE
	ok "a NIC of the plan that is lost is replaced, and comes back"
}

moved_rings
shares
slow_nic
lost_nic
echo "$passed passed, 0 failed"
