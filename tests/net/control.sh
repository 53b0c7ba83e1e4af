#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What ranks say to each other beside data: the NIC that it goes by fails, the others do not, and a
# job goes on and knows of deaths as before. Scenes are played at the same time.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream
# A job that talks more than it sends, until it fails.
task="all_reduce 65536 until-it-fails 50"
export TUTTI_DEBUG=INFO

# silence HOST: from now on nobody takes what eth0 sends, and no carrier is lost.
silence()
{
	ip -n "$net-$1" neigh replace "10.78.0.$((2 - $1))" lladdr 02:00:00:00:00:99 dev eth0 \
		nud permanent
}

begin_job()
{
	make_own_host
	until_stop "0 0 1 1" "$net_dir/own_host" "$stream" $task
	await_begin "$1"
	sleep 1
}

# made_anew RANK RANK: the connection between them, over eth1.
made_anew()
{
	cat "$net_dir"/err.* | grep -Eq -e "\[$1\] the connection to rank $2 .* is made anew, to 10.78.1" \
		-e "\[$2\] the connection to rank $1 .* is made anew, to 10.78.1"
}

# goes_on NAME SECONDS: for so long, and the links between the hosts are made anew.
goes_on()
{
	sleep "$2"
	await "$1: ranks 1 and 2 connect anew" made_anew 1 2
	await "$1: ranks 0 and 3 connect anew" made_anew 0 3
	for rank in 0 1 2 3; do
		kill -0 "$(cat "$net_dir/pid.$rank")" || die "$1: rank $rank has ended"
	done
}

# One of the second host; all hear of it over the network, by its connections that end. Its silence, which
# would tell after 16 s, is told in other words.
death_is_seen()
{
	kill -9 "$(cat "$net_dir/pid.3")"
	fails_soon "$1, then rank 3 is killed" 100000 "0 1 2" "rank 3 .*goodbye: it died"
}

eth0_goes_down()
{
	net_rails 200 200
	begin_job "eth0 of host $1 goes down"
	link "$1" 0 down
	goes_on "eth0 of host $1 goes down" 25
	ok "eth0 of host $1 is down: the job goes on"
	death_is_seen "eth0 of host $1 is down"
}

eth0_falls_silent()
{
	net_rails 200 200
	begin_job "eth0 falls silent"
	silence 0
	silence 1
	goes_on "eth0 falls silent" 16
	ok "eth0 is silent: the job goes on"
	death_is_seen "eth0 is silent"
}

# All that the id and the ranks tell is tried.
init_without_eth0()
{
	net_rails 200 200
	link 1 0 down
	job "0 0 1 1" "$stream" all_reduce 65536 0.2 || die "eth0 of host 1 is down from the beginning"
	grep -q "connected to root 0 at 10.78.1.1" "$net_dir/err.2" ||
		die "init without eth0: rank 2 has not met the root over eth1"
	ok "eth0 of host 1 is down from the beginning: the ranks meet over eth1"
	link 1 0 up
	silence 0
	silence 1
	job "0 0 1 1" "$stream" all_reduce 65536 0.2 || die "eth0 is silent from the beginning"
	grep -q "connected to root 0 at 10.78.1.1" "$net_dir/err.2" ||
		die "init with a silent eth0: rank 2 has not met the root over eth1"
	ok "eth0 is silent from the beginning: the ranks meet over eth1"
}

# Nobody waits for data: only the control plane can tell.
all_rails_are_cut()
{
	net_rails 200 200
	make_own_host
	until_stop "0 1" "$net_dir/own_host" "$stream" all_reduce 8 until-it-fails
	await_begin "all rails are cut"
	sleep 0.5
	link 0 0 down
	link 0 1 down
	# Whichever notices first: who talks beside the data after 16 s, or a call that waits, after 15 at
	# least.
	fails_soon "all rails are cut" 60000 "0 1" \
		"rank [01] .*\(cannot be reached any more\|its machine has not answered\)"
}

# play NAME ARGUMENT: one scene, with hosts and files of its own.
play()
{
	(
		net=$net-$1${2:-} net_dir='' passed=0
		"$@"
	) >"$net_dir/scene.$1${2:-}" 2>&1 &
	scenes="$scenes $!"
}

net_begin
scenes=
play eth0_goes_down 0
play eth0_goes_down 1
play eth0_falls_silent
play all_rails_are_cut
play init_without_eth0
bad=0
for pid in $scenes; do
	wait "$pid" || bad=$((bad + 1))
done
cat "$net_dir"/scene.*
[ "$bad" = 0 ] || exit 1
passed=$(cat "$net_dir"/scene.* | grep -c '^ok ')
[ -z "$(net_spaces)" ] || die "namespaces are left"
echo "$passed passed, 0 failed"
