#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a job needs of the network when it starts: NICs that run a moment later (a container's first
# second), none at all for ranks of one host; and what is said where they never run.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream

# ports up|down: the far ends of the NICs of both hosts. A NIC whose far end is down is up, but does
# not run.
carrier()
{
	if ip -n "$net-$1" -br link show eth0 | grep -q NO-CARRIER; then
		echo down
	else
		echo up
	fi
}

ports()
{
	for host in 0 1; do
		ip -n "$net-switch" link set "port$host" "$1"
	done
	for host in 0 1; do
		tries=0
		until [ "$(carrier "$host")" = "$1" ]; do
			tries=$((tries + 1))
			[ "$tries" -lt 5000 ] || die "the carrier of eth0 of host $host is not $1"
			sleep 0.02
		done
	done
}

late_nics()
{
	ports down
	set_0=TUTTI_DEBUG=INFO
	job_begin "0 0 1 1" "$stream" all_reduce 65536 0.2
	await "NICs that run later: rank 0 offers its own" \
		grep -qs 'offering 10.77.0.1 (eth0, up, but not running yet)' "$net_dir/err.0"
	sleep 1
	ports up
	job_end || die "NICs that run later: the job fails"
	set_0=
	ok "NICs that run 1 s and more after the ranks have started"
}

# One that never runs is named, with the reason, on whichever side it is.
nics_that_never_run()
{
	ports down
	# Each rank is to look for the other while that is there.
	export TUTTI_BOOT_TIMEOUT_MS=10000
	! job "0 1" "$stream" all_reduce 65536 0.2 || die "NICs that never run: the job runs"
	unset TUTTI_BOOT_TIMEOUT_MS
	grep -q "rank 1 .*did not come.*on the root's host.* eth0 (10.77.0.1): up, but not running" \
		"$net_dir/err.0" || die "NICs that never run: rank 0 does not say why"
	grep -q "no root answered .*on rank 1's host.* eth0 (10.77.0.2): up, but not running" \
		"$net_dir/err.1" || die "NICs that never run: rank 1 does not say why"
	ports up
	ok "NICs that never run are named"
}

# whole_job NAME: of one host that is $net-2, in all the ways that its ranks can meet without an address.
whole_job()
{
	job "2" "$stream" all_reduce 65536 0.1 || die "one rank $1"
	on 2 env TUTTI_RANK=0 TUTTI_NRANKS=1 "$stream" all_reduce 65536 0.1 >"$net_dir/out.0" \
		2>"$net_dir/err.0" || die "one rank $1, which makes its id itself"
	job "2 2 2 2" "$stream" all_reduce 65536 0.1 || die "four ranks $1"
	on 2 "$TUTTI" run -n 4 "$stream" all_reduce 65536 0.1 >"$net_dir/out.0" 2>"$net_dir/err.0" ||
		die "tutti run $1"
	on 2 "$TUTTI" perf all_reduce -n 4 -b 64 -e 64 >"$net_dir/out.0" 2>"$net_dir/err.0" ||
		die "tutti perf $1"
	ok "a job of one host $1"
}

# The watch works without a network too.
death_without_a_network()
{
	make_own_host
	until_stop "2 2 2 2" "$net_dir/own_host" "$stream" all_reduce 65536 "$net_dir/stop"
	await_begin "a death without a network"
	# A rank that is stopped is waited for.
	kill -STOP "$(cat "$net_dir/pid.2")"
	sleep 5
	kill -CONT "$(cat "$net_dir/pid.2")"
	victim=$(cat "$net_dir/pid.1")
	kill -9 "$victim"
	fails_soon "a death without a network" 30000 "0 2 3" "rank 1 (.*, process $victim) .*died"
}

# Where nobody can come to, ever, which each rank knows at once.
address_without_loopback()
{
	for rank in 0 1; do
		! on 2 env TUTTI_RANK=$rank TUTTI_NRANKS=2 TUTTI_COMM_ID=127.0.0.1:7711 \
			TUTTI_COMM_SECRET=0123456789abcdef "$stream" all_reduce 65536 0.1 \
			>"$net_dir/out.$rank" 2>"$net_dir/err.$rank" || die "lo is down: the job runs"
		grep -q "ip link set lo up" "$net_dir/err.$rank" ||
			die "lo is down: rank $rank does not say so"
	done
	ok "an address of the loopback interface, which is down"
}

# Fresh namespaces have not even a loopback interface that is up.
no_network()
{
	ip netns add "$net-2"
	address_without_loopback
	# Then it has an address, and takes nothing.
	ip -n "$net-2" link set lo up
	ip -n "$net-2" link set lo down
	address_without_loopback
	whole_job "without a network"
	ip -n "$net-2" link add eth0 type veth peer name eth1
	ip -n "$net-2" addr add 10.79.0.1/24 dev eth0
	whole_job "whose only NIC is down"
	death_without_a_network
	ip -n "$net-2" link del eth0
	set_0=TUTTI_BOOT_TIMEOUT_MS=10000
	! job "2 0" "$stream" all_reduce 65536 0.1 || die "another host joins without a network"
	set_0=
	grep -q "rank 1 of 2 did not come" "$net_dir/err.0" || die "rank 0 without a network"
	grep -q "had no usable network address, so only ranks of its host" "$net_dir/err.1" ||
		die "a rank whose rank 0 has no network is not told so"
	ok "another host cannot join where there is no network, and is told so"
	ip -n "$net-2" link set lo up
	whole_job "with lo alone"
}

# Whoever excludes all NICs means other ones, and hears it at once.
all_nics_excluded()
{
	# A rank that comes when rank 0 has ended waits, but it reads why.
	export TUTTI_SOCKET_IFNAME=nosuch TUTTI_BOOT_TIMEOUT_MS=10000
	! job "0 1" "$stream" all_reduce 65536 0.1 || die "no NIC: the job runs"
	unset TUTTI_SOCKET_IFNAME TUTTI_BOOT_TIMEOUT_MS
	for rank in 0 1; do
		grep -q "no usable network address: .*eth0 (.*): excluded by TUTTI_SOCKET_IFNAME" \
			"$net_dir/err.$rank" || die "no NIC: rank $rank does not say why"
	done
	ok "a variable that excludes all NICs"
}

# Of a host where nobody listens, and one that nobody has.
address_of_another_host()
{
	for address in 10.77.0.2 10.77.0.99; do
		! on 0 env TUTTI_RANK=0 TUTTI_NRANKS=2 TUTTI_COMM_ID=$address:7711 \
			TUTTI_COMM_SECRET=0123456789abcdef "$stream" all_reduce 65536 0.1 \
			>"$net_dir/out.0" 2>"$net_dir/err.0" || die "$address: the job runs"
		grep -q "name an address of rank 0's host" "$net_dir/err.0" ||
			die "$address: rank 0 does not say that it is another host's"
	done
	ok "an address to meet at that is another host's"
}

net_up 2
late_nics
nics_that_never_run
address_of_another_host
all_nics_excluded
no_network
echo "$passed passed, 0 failed"
