#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ping between hosts says what is wrong, and where: a NIC at a tenth of its rate in one
# direction, a rail over which nothing comes, two MTUs, hosts that do not reach each other, a
# rank that dies. That nothing is wrong elsewhere is not for a machine with other work.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}"

says()
{
	grep -Eq -e "$2" "$net_dir/out.0" || die "$1: no line like: $2"
}

# The exit code is that of what is printed.
code_is()
{
	[ "$(cat "$net_dir/code.0")" = "$2" ] || die "$1: exit code $(cat "$net_dir/code.0")"
}

# finds NAME HOSTS PATTERN NONE ARGUMENTS...: it is printed, and nothing like NONE, if that is not empty; the
# exit code is 1. What other work may have caused is no error, and good NICs may seem bad by it: on a busy
# machine that may need several looks.
finds()
{
	name=$1 ranks=$2 pattern=$3 none=${4:-no line is like this}
	shift 4
	for look in 1 2 3 4 5 6 7 8; do
		! job "$ranks" "$TUTTI" ping "$@" || continue
		grep -Eq -e "$none" "$net_dir/out.0" || ! grep -Eq -e "$pattern" "$net_dir/out.0" || break
	done
	says "$name" "$pattern"
	! grep -E -e "$none" "$net_dir/out.0" || die "$name: what is good is said to be bad"
	code_is "$name" 1
}

figure='[0-9.e+-]+'

slow_node()
{
	net_up 3
	for host in 0 1 2; do
		rate=200
		[ $host != 2 ] || rate=20
		tc -n "$net-$host" qdisc replace dev eth0 root tbf rate ${rate}mbit burst 16kb limit 1mb
	done
	finds "a slow NIC" "0 1 2" \
		"^ +error: lane 0 \(rank 0 eth0 [^ ]+ - rank 2 eth0 [^ ]+\): rank 2 to rank 0 $figure GB" \
		'all that rank [01]'
	says "a slow NIC" '^# ping of 3 ranks on 3 hosts: 3 pairs in 3 rounds$'
	says "a slow NIC" ': all that rank 2 \(.*\) sends is slow: 0.00[0-9]+ GB/s at best'
	says "a slow NIC" "^#    2 +0.00[0-9]+ +0.00[0-9]+ +\.\$"
	for look in 1 2 3 4 5 6 7 8; do
		job "0 1 2" "$TUTTI" ping --peer 0,1 --json || code_is "a pair of the quick" 1
		grep -q '"rule":"slow' "$net_dir/out.0" || break
	done
	! grep -q '"rule":"slow' "$net_dir/out.0" || die "a pair of the quick is slow"
	[ "$(grep -c '"a":0,"b":1' "$net_dir/out.0")" = 1 ] || die "not one pair"
	ok "a NIC that sends at a tenth is named"
	net_remove
}

rails()
{
	net_rails 200 200
	tc -n "$net-0" qdisc replace dev eth1 root tbf rate 20mbit burst 16kb limit 1mb
	ip -n "$net-1" link set eth1 mtu 9000
	lane='lane 1 \(rank 0 eth1 10.78.1.1 - rank 1 eth1 10.78.1.2\)'
	finds "two rails" "0 1" "^ +error: $lane: rank 0 to rank 1 0.00[0-9]+ GB/s, the other way" 'error: lane 0'
	says "two rails" "^   0    1    0  eth0 10.78.0.1 +eth0 10.78.0.2 +- +$figure +$figure"
	says "two rails" "^   0    1    1  eth1 10.78.1.1 +eth1 10.78.1.2 +- +$figure +$figure +0.00"
	says "two rails" "^   0    1  all +$figure +$figure +$figure"
	says "two rails" "^ +warning: $lane: MTU 1500 at rank 0, 9000 at rank 1"
	ok "one direction of one rail is named, and MTUs that differ"

	net_rails 200 200
	for host in 0 1; do
		ip -n "$net-$host" -6 addr flush dev eth1
		# Nobody has that address: what is sent there gets lost.
		ip -n "$net-$host" neigh replace 10.78.1.$((2 - host)) lladdr 02:00:00:00:00:99 \
			dev eth1
	done
	finds "a dead rail" "0 1" "^ +error: $lane is not up: [a-z]+" ''
	says "a dead rail" '^   0    1    1  eth1 10.78.1.1 +eth1 10.78.1.2 +- +- +-'
	says "a dead rail" "^   0    1    0  eth0 10.78.0.1 +eth0 10.78.0.2 +- +$figure +$figure +0.0"
	ok "a rail over which nothing comes is named"
	net_remove
}

# Hosts 1 and 3 are no neighbours in the ring of ranks, and neither is the root.
unreachable()
{
	net_up 4
	for host in 1 3; do
		other=$((4 - host))
		ip -n "$net-$host" -6 addr flush dev eth0 scope link
		ip -n "$net-$host" route add unreachable 10.77.0.$((other + 1))
		ip -n "$net-$host" -6 route add unreachable fd77::$((other + 1))
	done
	finds "no route" "0 1 2 3" \
		'^ +error: rank 1 and rank 3 do not reach each other: .*10.77.0.2:.*No route to host' \
		'' --seconds 0.1
	[ "$(grep -Ec '^   [0-3]    [0-3]    0  eth0' "$net_dir/out.0")" = 5 ] ||
		die "no route: not five pairs are measured"
	says "no route" "^#    1 +$figure +\. +$figure +-\$"
	for rank in 1 2 3; do
		[ "$(cat "$net_dir/code.$rank")" = 0 ] || die "no route: rank $rank failed"
	done
	ok "two hosts that do not reach each other are named, the others measured"
	net_remove
}

death()
{
	net_up 3
	job_begin "0 1 2" "$TUTTI" ping --seconds 100
	await "a rank that dies: ping begins" grep -qs '^#  a ' "$net_dir/out.0"
	for pid in $(ip netns pids "$net-2"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != tutti ] || kill -9 "$pid"
	done
	! job_end || die "a rank that dies: it succeeds"
	for rank in 0 1; do
		grep -q 'rank 2' "$net_dir/err.$rank" || die "rank $rank does not name the dead one"
		[ "$(cat "$net_dir/code.$rank")" = 1 ] || die "rank $rank has another exit code"
	done
	ok "a rank that dies is named by the others"
	net_remove
}

slow_node
rails
unreachable
death
echo "$passed passed, 0 failed"
