# SPDX-License-Identifier: BSD-3-Clause
#
# The opposite: a topology in XML, as tutti writes it (an element a line, two blanks a
# level), as a description like two_nodes.txt.

function attr(name,   at, rest)
{
	at = index($0, " " name "=\"")
	if (!at)
		return ""
	rest = substr($0, at + length(name) + 3)
	return substr(rest, 1, index(rest, "\"") - 1)
}

function put(depth, text,   i)
{
	for (i = 0; i < depth; i++)
		printf "  "
	print text
}

BEGIN { model["0x8086"] = "e1000e"; model["0x1af4"] = "virtio"; model["0x15ad"] = "vmxnet3" }

{
	match($0, /^ */)
	depth = RLENGTH / 2 - 1
}

$1 == "<cpu" { put(0, "cpu " attr("numaid")) }

# A NIC counts where it has an interface.
$1 == "<pci" {
	class = attr("class")
	vendor = attr("vendor")
	if (class ~ /^0x0604/)
		put(depth, "switch")
	else if (class ~ /^0x03/)
		put(depth, "gpu")
	else if (class !~ /^0x02/)
		put(depth, "class " class)
}

$1 == "<net" { put(depth - 2, "net " model[vendor]) }
