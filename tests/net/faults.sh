#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Several NICs of which some fail, or a peer that is slow or dies: the data is right, or there is a
# clear error in time; and nothing is left behind.
#
#     TEST_FLAP_SECONDS=20 tests/net/faults.sh     a longer time of lanes that come and go (4)
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream
flap=${TEST_FLAP_SECONDS:-4}

longest_ms()
{
	cat "$net_dir"/out.* | sed -n 's/.*the longest \([0-9]*\) ms/\1/p' | sort -n | tail -n 1
}

# ends_well NAME MOST_MS: right data on all ranks, and no call took longer: some ten times of what one
# takes on a machine that is not busy, as the time is not what is tried here.
ends_well()
{
	job_end || die "$1"
	[ "$(cat "$net_dir"/out.* | grep -c 'bytes right')" = "$job_ranks" ] || die "$1: no results"
	[ "$(longest_ms)" -le "$2" ] || die "$1: a call took $(longest_ms) ms, at most $2 is asked for"
	ok "$1: the data is right, the longest call took $(longest_ms) ms"
}

# -- Lanes ---------------------------------------------------------------------------------

# The other rails carry on, and one that comes back is used again.
lane_dies()
{
	kind=$1 side=$2
	net_rails 200 200
	until_stop "0 1" "$stream" "$kind" 2097152 "$net_dir/stop"
	await "$kind: eth1 is used" has_sent 1 0 1000000
	link "$side" 1 down
	sleep 1
	link "$side" 1 up
	await "$kind: eth1 is up again and used" has_sent 1 "$(rail_bytes 1)" 1000000
	stop
	ends_well "$kind, eth1 of host $side is down for 1 s" 30000
	ok "$kind: a lane that came back is used again"
}

# One after the other, the first one too.
lanes_die_in_turn()
{
	net_rails 200 200 200
	until_stop "0 0 1 1" "$stream" all_reduce 1048576 "$net_dir/stop"
	await_begin "lanes that die in turn"
	await "lanes that die in turn: eth1 is used" has_sent 1 0 1000000
	await "lanes that die in turn: eth2 is used" has_sent 2 0 1000000
	link 0 0 down
	sleep 0.7
	link 1 2 down
	await "lanes that die in turn: eth1 is used" has_sent 1 "$(rail_bytes 1)" 5000000
	stop
	ends_well "all_reduce of 2 x 2 ranks, eth0 and then eth2 die" 30000
}

lanes_flap()
{
	kind=$1 seconds=$2
	net_rails 200 200
	until_stop "0 1" "$stream" "$kind" 1048576 "$net_dir/stop"
	await_begin "$kind with a lane that flaps"
	end=$(($(now_ms) + seconds * 1000))
	while [ "$(now_ms)" -lt "$end" ]; do
		link 0 1 down
		sleep 0.1
		link 0 1 up
		sleep 0.1
	done
	stop
	ends_well "$kind, eth1 comes and goes every 100 ms for $seconds s" 30000
}

# Bytes wait 40 ms in one queue and 400 ms in the other.
lanes_reorder()
{
	net_rails 200 20
	job "0 1" "$stream" "$1" "$2" 2 || die "$1 of $2 bytes over unlike lanes"
	ok "$1 of $2 bytes over lanes of 200 and 20 Mbit/s with deep queues: $(head -n 1 "$net_dir/out.1")"
}

# What is sent either waits for the other rank, or for the system to take it.
all_lanes_die()
{
	kind=$1 bytes=$2
	net_rails 200 200
	make_own_host
	# A call takes 0.1 s before, and the watch would tell of another error after 15 s.
	TUTTI_TIMEOUT_MS=8000 until_stop "0 1" "$net_dir/own_host" "$stream" "$kind" "$bytes" "$net_dir/stop"
	await_begin "$kind, all lanes die"
	await "$kind, all lanes die: eth1 is used" has_sent 1 0 1000000
	link 0 0 down
	link 0 1 down
	# What is said goes out within the timeout; leaving takes two seconds: one for data on its
	# way, one to say goodbye over whatever NIC.
	fails_soon "$kind, all lanes die" 100000 "0 1" eth0 eth1
}

# What a rank has sent arrives, though it has left long before: 1 Mbit/s, half of it in the system.
sender_leaves()
{
	net_rails 1
	job "0 1" "$stream" send 1048576 once || die "the sender leaves while its data is on the wire"
	ok "the sender leaves while its data is on the wire: $(sed -n 2p "$net_dir/out.1")"
}

# -- Peers -----------------------------------------------------------------------------------

slow_receiver()
{
	net_rails 200 200
	job_begin "0 1" "$stream" send 1048576 2 150
	await_begin "a slow receiver"
	ends_well "the receiver sleeps 150 ms before each call" 30000
}

receiver_killed()
{
	net_rails 200 200
	make_own_host
	until_stop "0 0 1 1" "$net_dir/own_host" "$stream" all_reduce 4194304 "$net_dir/stop"
	await_begin "a receiver is killed"
	kill -9 "$(cat "$net_dir/pid.3")"
	fails_soon "a receiver is killed" 20000 "0 1 2" "rank 3"
}

lane_dies send 0
lane_dies exchange 1
lanes_die_in_turn
lanes_flap exchange "$flap"
lanes_reorder exchange 2097152
lanes_reorder all_reduce 65536
all_lanes_die exchange 4194304
all_lanes_die send 262144
sender_leaves
slow_receiver
receiver_killed
net_down
[ -z "$(net_spaces)" ] || die "namespaces are left"
echo "$passed passed, 0 failed"
