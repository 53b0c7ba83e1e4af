#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a job needs of the network when it starts: NICs that run a moment later (a container's first
# second), none at all for a single rank; and what is said where they never run.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream

# ports up|down: the far ends of the NICs of both hosts. A NIC whose far end is down is up, but does
# not run.
ports()
{
	for host in 0 1; do
		ip -n "$net-switch" link set "port$host" "$1"
	done
	for host in 0 1; do
		tries=0
		while ip -n "$net-$host" -br link show eth0 | grep -q 'NO-CARRIER' && [ "$1" = up ]; do
			tries=$((tries + 1))
			[ "$tries" -lt 500 ] || die "eth0 of host $host does not run"
			sleep 0.02
		done
	done
}

late_nics()
{
	ports down
	ip -n "$net-0" -br link show eth0 | grep -q 'NO-CARRIER' || die "eth0 runs all the same"
	set_0=TUTTI_DEBUG=INFO
	job_begin "0 0 1 1" "$stream" all_reduce 65536 0.2
	sleep 1.5
	grep -q 'offering 10.77.0.1 (eth0, up, but not running yet)' "$net_dir/err.0" ||
		die "NICs that run later: rank 0 does not offer its own"
	ports up
	job_end || die "NICs that run later: the job fails"
	set_0=
	ok "NICs that run 1.5 s after the ranks have started"
}

# One that never runs is named, with the reason, on whichever side it is.
nics_that_never_run()
{
	ports down
	export TUTTI_BOOT_TIMEOUT_MS=2000
	! job "0 1" "$stream" all_reduce 65536 0.2 || die "NICs that never run: the job runs"
	unset TUTTI_BOOT_TIMEOUT_MS
	grep -q "rank 1 .*did not come.*on the root's host.* eth0 (10.77.0.1): up, but not running" \
		"$net_dir/err.0" || die "NICs that never run: rank 0 does not say why"
	grep -q "no root answered .*on rank 1's host.* eth0 (10.77.0.2): up, but not running" \
		"$net_dir/err.1" || die "NICs that never run: rank 1 does not say why"
	ports up
	ok "NICs that never run are named"
}

# fresh namespaces have not even a loopback interface that is up.
no_network()
{
	ip netns add "$net-2"
	job "2" "$stream" all_reduce 65536 0.1 || die "one rank without a network"
	on 2 env TUTTI_RANK=0 TUTTI_NRANKS=1 "$stream" all_reduce 65536 0.1 >"$net_dir/out.0" \
		2>"$net_dir/err.0" || die "one rank without a network, which makes its id itself"
	ok "one rank without a network"
	export TUTTI_BOOT_TIMEOUT_MS=2000
	# Whichever rank comes first.
	for late in 0 1; do
		# shellcheck disable=SC2016
		! job "2 2" sh -c '[ "$TUTTI_RANK" != "$0" ] || sleep 1; exec "$@"' $late \
			"$stream" all_reduce 65536 0.1 || die "two ranks without a network"
		for rank in 0 1; do
			grep -q "had no usable network address, so the id is for one rank and not for 2" \
				"$net_dir/err.$rank" ||
				die "two ranks without a network, rank $late late: rank $rank"
		done
	done
	unset TUTTI_BOOT_TIMEOUT_MS
	ok "two ranks without a network are told so"
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
no_network
echo "$passed passed, 0 failed"
