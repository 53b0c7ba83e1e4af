#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A machine with two NUMA nodes and switches below switches, asked for and detected: what
# comes out is what went in.
. "$(dirname "$0")/common"

vm_kernel
vm_put "$TUTTI"
vm_modules virtio_pci virtio_net e1000e vmxnet3
awk -v distance=21 -f "$here/qemu_args.awk" "$here/two_nodes.txt" >"$tmp/args" ||
	fail "two_nodes.txt cannot be built"
set --
while read -r arg; do
	set -- "$@" "$arg"
done <"$tmp/args"
vm_run 'tutti topo --format xml' "$@"
[ "$status" = 0 ] || fail "tutti topo in the machine: exit code $status: $(cat "$tmp/out")"

grep -v '^#' "$here/two_nodes.txt" >"$tmp/asked"
awk -f "$here/describe.awk" "$tmp/out" >"$tmp/found"
diff "$tmp/asked" "$tmp/found" >"$tmp/diff" || {
	cat "$tmp/out"
	fail "not the machine that was asked for (< asked, > found):
$(cat "$tmp/diff")"
}
ok "$(grep -c switch "$tmp/found") switches, $(grep -c gpu "$tmp/found") display controllers and" \
	"$(grep -c net "$tmp/found") network cards are where they were put"

# Two sockets of two cores, and the distances.
awk '
	function want(name, value) {
		if (index($0, " " name "=\"" value "\""))
			return
		print "a cpu without " name "=\"" value "\": " $0
		bad = 1
	}
	/<cpu / && /numaid="0"/ {
		want("affinity", "00000003"); want("tutti_package", "0"); want("tutti_distances", "10,21")
	}
	/<cpu / && /numaid="1"/ {
		want("affinity", "0000000c"); want("tutti_package", "1"); want("tutti_distances", "21,10")
	}
	/<cpu / { ncpus++ }
	END { exit bad || ncpus != 2 }' "$tmp/out" >"$tmp/bad" || fail "NUMA nodes: $(cat "$tmp/bad")"
ok "two NUMA nodes, their CPUs, sockets and distances"
