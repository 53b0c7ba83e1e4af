#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# topo gather: the file that it packs is detected as the machine itself is, and what is
# not whole is not written.
. "$(dirname "$0")/common"

capture=$(dirname "$0")/../data/sysfs/qemu-q35-2numa-pciswitch-sysfs.tar.gz
mkdir "$tmp/machine" "$tmp/work" "$tmp/temporary"
tar -xzf "$capture" -C "$tmp/machine" || fail "the captured machine cannot be unpacked"
TUTTI=$(cd "$(dirname "$TUTTI")" && pwd)/$(basename "$TUTTI")
cd "$tmp/work" || exit 1

expect 0 env TUTTI_SYSFS_ROOT="$tmp/machine" "$TUTTI" topo gather -o it.tar.gz
says out '^it\.tar\.gz: [0-9]+ KB'
expect 0 "$TUTTI" topo --sysfs "$tmp/machine" --format xml
mv "$tmp/out" "$tmp/machine.xml"
expect 0 "$TUTTI" topo --sysfs it.tar.gz --format xml
cmp -s "$tmp/out" "$tmp/machine.xml" || fail "the packed machine is another"
tar -xzOf it.tar.gz tutti-topo/topology.xml >"$tmp/out"
cmp -s "$tmp/out" "$tmp/machine.xml" || fail "topology.xml is not the machine's"
ok "a captured machine"

! tar -tzf it.tar.gz | grep -E '/(address|serial|product_uuid|hostname|boot_id)$' >"$tmp/out" ||
	fail "there is what should not be"
ok "no addresses, serial numbers and names"

expect 0 "$TUTTI" topo gather
[ -s tutti-topo.tar.gz ] || fail "no tutti-topo.tar.gz"
expect 0 "$TUTTI" topo --sysfs tutti-topo.tar.gz
expect 0 "$TUTTI" topo gather --json -o this.tgz
says out '^\{"file":"this\.tgz","bytes":[0-9]+\}$'
ok "this machine"

expect 2 "$TUTTI" topo gather -o it.zip
says err "'it\.zip' does not end in \.tar\.gz"
expect 2 "$TUTTI" topo gather it.tar.gz
says err '-o it\.tar\.gz'
expect 2 "$TUTTI" topo gather -o "$tmp/none/it.tar.gz"
says err 'No such file or directory'
ok "what cannot be"

cp it.tar.gz before.tar.gz
expect 1 env TUTTI_SYSFS_ROOT="$tmp/temporary" "$TUTTI" topo gather -o it.tar.gz
says err 'no directory sys/'
expect 1 env PATH=/nowhere "$TUTTI" topo gather -o it.tar.gz
says err 'cannot run tar'
cmp -s it.tar.gz before.tar.gz || fail "a failure has changed the file"
[ "$(find . -type f | sort | tr '\n' ' ')" = "./before.tar.gz ./it.tar.gz ./this.tgz ./tutti-topo.tar.gz " ] ||
	fail "something is left: $(find . -type f)"
ok "a failure leaves what was there"
