# SPDX-License-Identifier: BSD-3-Clause
#
# A description like two_nodes.txt as arguments of QEMU, one a line. Each cpu has two
# cores and 256 MiB; `-v distance=21` between any two.

function put(option, value) { print option; print value }

# The next port below what is at that depth: a root port, or one of its switch.
function port(depth,   name)
{
	nports++
	name = "port" nports
	if (kind[depth] == "cpu")
		put("-device", "pcie-root-port,id=" name ",bus=" bus[depth] ",chassis=" nports ",slot=" nports)
	else if (kind[depth] == "switch")
		put("-device", "xio3130-downstream,id=" name ",bus=" bus[depth] ",chassis=" nports ",slot=" nports)
	else
		die("nothing can hang below a " kind[depth])
	return name
}

function die(text)
{
	print FILENAME ":" FNR ": " text >"/dev/stderr"
	failed = 1
	exit 1
}

/^ *(#|$)/ { next }

{
	match($0, /^ */)
	depth = RLENGTH / 2
	kind[depth] = $1
	if (depth > 0 && $1 == "cpu" || depth == 0 && $1 != "cpu")
		die("a cpu, and nothing else, begins a line")
}

$1 == "cpu" {
	bus[0] = "root" $2
	put("-object", "memory-backend-ram,id=memory" $2 ",size=256M")
	put("-numa", "node,nodeid=" $2 ",cpus=" 2 * $2 "-" 2 * $2 + 1 ",memdev=memory" $2)
	put("-device", "pxb-pcie,id=root" $2 ",bus=pcie.0,bus_nr=" 64 * ($2 + 1) ",numa_node=" $2)
	ncpus++
	next
}

{ above = port(depth - 1) }

$1 == "switch" {
	nswitches++
	bus[depth] = "switch" nswitches
	put("-device", "x3130-upstream,id=" bus[depth] ",bus=" above)
	next
}

# Class 0x0380: not a GPU, but a display controller like one.
$1 == "gpu" { put("-device", "virtio-gpu-pci,max_outputs=1,bus=" above); next }

$1 == "net" {
	model = $2 == "virtio" ? "virtio-net-pci" : $2
	nnets++
	put("-netdev", "hubport,id=net" nnets ",hubid=" nnets)
	put("-device", model ",netdev=net" nnets ",bus=" above ",romfile=")
	next
}

{ die("'" $1 "' is none of cpu, switch, gpu, net") }

END {
	if (failed)
		exit 1
	for (a = 0; a < ncpus; a++)
		for (b = a + 1; b < ncpus; b++)
			put("-numa", "dist,src=" a ",dst=" b ",val=" distance)
	put("-smp", 2 * ncpus ",sockets=" ncpus ",cores=2,threads=1")
	put("-m", 256 * ncpus "M")
}
