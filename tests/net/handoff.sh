#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Handoffs between hosts (network namespaces): right data for all kinds of sides, over one
# cable and several; what crosses does so once, over unequal cables by the plan's shares.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}"

hand()
{
	name=$1
	shift
	job "$hosts" "$TUTTI" perf handoff -i 2 -w 1 --json "$@" || die "$name"
	! grep -q '"wrong":[1-9]' "$net_dir/out.0" || die "$name: wrong results"
	grep -q '"wrong":0' "$net_dir/out.0" || die "$name: no results"
}

# All sides that differ in kind, sizes that divide and that do not.
all_kinds()
{
	for sides in "--from 0-3 --to 4-7" "--from 0 --to 4-7" "--from 0-2 --to 4,6" \
		"--from 4-7 --to 0-3,5" "--from 0-7 --to 0-7" "--from 2 --to 3"; do
		for sharded in "" "--sharded from" "--sharded to" "--sharded both"; do
			# shellcheck disable=SC2086
			hand "$1: $sides $sharded" -b 4 -e 4M -f 1021 -d int8 $sides $sharded
		done
	done
	ok "$1: all kinds of sides"
}

# Bytes that the first host sends: of 16 MB in each of 4 calls (one is checked, one warms up)
# all, and little more: frames, acknowledgements, what perf tells about times.
crosses_once()
{
	before=0 after=0
	for rail in $rails; do
		before=$((before + $(rail_bytes "$rail")))
	done
	hand "$1" -b 16M -e 16M --from 0-3 --to 4-7
	for rail in $rails; do
		after=$((after + $(rail_bytes "$rail")))
	done
	least=$((4 * 16 * 1024 * 1024))
	sent=$((after - before))
	[ "$sent" -ge "$least" ] || die "$1: $sent bytes were sent, of $least"
	[ "$sent" -le $((least + least / 8)) ] || die "$1: $sent bytes were sent for $least"
	ok "$1: every byte crosses once"
}

# Two cables of 200 and 80 Mbit/s, which any machine keeps full, and a topology file that says so, since
# a veth does not: each carries its share of the plan within 5 %, which is 5/7 and 2/7. Lanes share by
# what each carries, so what else runs on the machine shows in it: it may take some tries.
carries_shares()
{
	hosts=$1 tries=0
	net_rails 200 80
	cat >"$net_dir/topo.xml" <<-'END'
		<system version="1">
		  <cpu numaid="0" affinity="ffffffff" arch="x86_64">
		    <pci busid="0000:01:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="8">
		      <nic><net name="eth0" dev="0" speed="200"/></nic>
		    </pci>
		    <pci busid="0000:02:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="8">
		      <nic><net name="eth1" dev="1" speed="80"/></nic>
		    </pci>
		  </cpu>
		</system>
	END
	shift
	while :; do
		wide=$(rail_bytes 0) narrow=$(rail_bytes 1)
		TUTTI_DEBUG=INFO TUTTI_TOPO_FILE=$net_dir/topo.xml hand "unequal cables: $hosts" \
			-b 8M -e 8M -i 4 "$@"
		wide=$(($(rail_bytes 0) - wide)) narrow=$(($(rail_bytes 1) - narrow))
		grep -q 'handoff from .* pairs, 0.035 GB/s of at most 0.035: cable of eth' \
			"$net_dir/err.0" || die "unequal cables: $hosts: another plan"
		part=$((narrow * 10000 / (wide + narrow)))
		[ "$part" -lt 2714 ] || [ "$part" -gt 3000 ] || break
		tries=$((tries + 1))
		[ "$tries" -lt 10 ] || die "unequal cables: $hosts: $part of 10000 over the narrow one"
	done
	ok "unequal cables: $hosts: each carries its share"
}

# A host in the middle passes on what it gets.
three_hosts()
{
	hosts="0 0 1 1 1 2 2"
	for sides in "--from 0-1 --to 2-6" "--from 0-3 --to 3-6" "--from 0-6 --to 6,4,2,0"; do
		for sharded in "" "--sharded from" "--sharded to" "--sharded both"; do
			# shellcheck disable=SC2086
			hand "three hosts: $sides $sharded" -b 4 -e 4M -f 1021 -d int8 $sides $sharded
		done
	done
	ok "three hosts: all kinds of sides"
}

differing_sides()
{
	hosts="0 0 1 1"
	set_1="TUTTI_CHECK=1"
	! job "$hosts" "$TUTTI" perf handoff -b 1K -e 1K || die "TUTTI_CHECK on one rank"
	grep -q 'another TUTTI_CHECK than rank 0' "$net_dir/err.0" ||
		die "TUTTI_CHECK on one rank: rank 0 does not say so"
	set_1=
	ok "TUTTI_CHECK on one rank"
	TUTTI_CHECK=1 hand "with TUTTI_CHECK" -b 1M -e 1M
	ok "with TUTTI_CHECK"
}

net_up 3
three_hosts
differing_sides
hosts="0 0 0 0 1 1 1 1"
net_rails 0
rails="0"
crosses_once "one cable"
net_rails 0 0
rails="0 1"
all_kinds "two cables"
crosses_once "two cables"
carries_shares "0 1" --from 0 --to 1
carries_shares "0 0 1 1" --from 0-1 --to 2-3
carries_shares "0 0 0 0 1 1 1 1" --from 0-3 --to 4-7
echo "$passed passed, 0 failed"
