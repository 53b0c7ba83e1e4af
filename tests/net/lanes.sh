#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Which lanes are found in networks that are not simply one cable for each NIC: all NICs in one
# network, unequal numbers, IPv6 alone, a NIC that has no carrier at first.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream
set_0=TUTTI_DEBUG=INFO
set_1=TUTTI_DEBUG=INFO

# net_hosts N0 N1: two hosts with so many NICs, all on one switch.
net_hosts()
{
	net_begin
	net_remove
	ip netns add "$net-switch"
	ip -n "$net-switch" link add br0 type bridge
	ip -n "$net-switch" link set br0 up
	host=0
	for nics; do
		ip netns add "$net-$host"
		ip -n "$net-$host" link set lo up
		nic=0
		while [ "$nic" -lt "$nics" ]; do
			ip -n "$net-$host" link add "eth$nic" type veth \
				peer name "port$host$nic" netns "$net-switch"
			ip -n "$net-switch" link set "port$host$nic" master br0 up
			ip -n "$net-$host" addr add "10.78.$host.$((nic + 1))/16" dev "eth$nic"
			ip -n "$net-$host" link set "eth$nic" up
			nic=$((nic + 1))
		done
		host=$((host + 1))
	done
	wait_for_carriers
}

# answers_alone: each NIC answers for its own addresses.
answers_alone()
{
	for host in 0 1; do
		on "$host" sysctl -qw net.ipv4.conf.all.arp_ignore=1 \
			net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.rp_filter=2
	done
}

begin()
{
	until_stop "0 1" "$stream" send 4194304 "$net_dir/stop"
}

end()
{
	stop
	job_end || die "$1"
}

# lane NAME LOCAL REMOTE: the connector says that it is up.
lane()
{
	await "$1: a lane $2 to $3" grep -q "lane .* to rank 0 is up: $2 to $3$" "$net_dir/err.1"
}

# sends NAME HOST NIC: it has sent more than what finds and keeps lanes.
sends()
{
	await "$1: $3 of host $2 sends" has_sent_by "$2" "$3"
}

has_sent_by()
{
	[ "$(on "$1" cat "/sys/class/net/$2/statistics/tx_bytes")" -gt 1000000 ]
}

one_switch()
{
	net_hosts 2 2
	answers_alone
	begin
	lane "one switch" eth1 eth1
	for nic in eth0 eth1; do
		sends "one switch" 0 $nic
	done
	end "one switch"
	ok "one network on one switch: both NICs send"
}

one_against_three()
{
	net_hosts 1 3
	answers_alone
	begin
	lane "1 against 3" eth1 eth0
	lane "1 against 3" eth2 eth0
	end "1 against 3"
	ok "1 NIC against 3: three lanes"
	net_hosts 3 1
	answers_alone
	begin
	lane "3 against 1" eth0 eth1
	lane "3 against 1" eth0 eth2
	end "3 against 1"
	ok "3 NICs against 1: three lanes"
}

only_ipv6()
{
	net_rails 0 0
	for host in 0 1; do
		for rail in 0 1; do
			ip -n "$net-$host" addr flush dev eth$rail
			ip -n "$net-$host" addr add "fd78:$rail::$((host + 1))/64" dev eth$rail nodad
		done
	done
	begin
	lane "IPv6 alone" eth1 eth1
	sends "IPv6 alone" 0 eth0
	sends "IPv6 alone" 0 eth1
	end "IPv6 alone"
	ok "IPv6 alone: both NICs send"
}

late_carrier()
{
	net_rails 0 0
	ip -n "$net-0" link set eth0 down
	begin
	await "a NIC without carrier: the other one is used" \
		grep -q 'rank 0 is reached over .*10.78.1.1' "$net_dir/err.1"
	sleep 1
	ip -n "$net-0" link set eth0 up
	lane "a NIC without carrier" eth0 eth0
	sends "a NIC without carrier" 0 eth0
	end "a NIC without carrier"
	ok "a NIC without carrier at start: used once it has one"
}

one_switch
one_against_three
only_ipv6
late_carrier
echo "$passed passed, 0 failed"
