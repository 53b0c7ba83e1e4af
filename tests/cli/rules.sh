#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/check_rules: each rule finds what breaks it, in a small tree of its own.
. "$(dirname "$0")/common"

from=$(cd "$(dirname "$0")/../.." && pwd)
spdx='/* SPDX-License-Identifier: BSD-3-Clause */'

# tree: one without a finding.
tree()
{
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/scripts" "$tmp/tree/src/coll" "$tmp/tree/src/topo" "$tmp/tree/tests"
	cp "$from/scripts/check_rules" "$from/scripts/list_files" "$tmp/tree/scripts"
	: >"$tmp/tree/scripts/size-exceptions.txt"
	cat >"$tmp/tree/src/topo/link.h" <<END
$spdx
struct tti_node;

/* struct tti_step { } */
struct tti_link {
	struct tti_node *from, *to;
};

enum tti_type {
	TTI_TYPE_PCI = TTI_BIT(1) | 1, /* START, */
	TTI_TYPE_NVL = sizeof(struct tti_link),
#define X(name, value) TTI_TYPE_##name = (value),
	TTI_TYPE_MAP(X)
#undef X
	TTI_NTYPES,
};
END
	printf '%s\nstruct tti_step {\n\tint peer;\n};\n' "$spdx" >"$tmp/tree/src/coll/step.h"
	printf '%s\n#include "coll/step.h"\n\nint f(void)\n{\n\treturn 0;\n}\n' "$spdx" \
		>"$tmp/tree/src/coll/step.c"
	printf '%s\nstruct tti_link {\n\tint x;\n};\n' "$spdx" >"$tmp/tree/tests/own.h"
}

# finds PATTERN: the only finding.
finds()
{
	expect 1 "$tmp/tree/scripts/check_rules"
	lines out 1
	says out "$1"
}

tree
expect 0 "$tmp/tree/scripts/check_rules"
lines out 0
ok "a tree that keeps the rules; a test may have a tag of its own"

tree
echo 'struct tti_link {' >>"$tmp/tree/src/coll/step.h"
finds '^src/topo/link.h:5: struct tti_link is defined in src/coll/step.h:5, too$'
tree
echo 'typedef enum tti_step { TTI_STEP } tti_step;' >>"$tmp/tree/src/topo/link.h"
finds '^src/topo/link.h:17: enum tti_step is defined in src/coll/step.h:2, too$'
ok "a tag that two headers define"

tree
echo 'enum tti_state { TTI_FIRST, START };' >>"$tmp/tree/src/coll/step.h"
finds '^src/coll/step.h:5: the enumerator START begins neither with TTI_ nor with TUTTI_$'
tree
sed -i 's/TTI_NTYPES/NTYPES/' "$tmp/tree/src/topo/link.h"
finds '^src/topo/link.h:16: the enumerator NTYPES '
ok "an enumerator without a prefix"

tree
sed -i '1d' "$tmp/tree/src/topo/link.h"
finds '^src/topo/link.h:1: the first line is not'
tree
sed -i 's/#include.*/#include <stdio.h>/' "$tmp/tree/src/coll/step.c"
finds '^src/coll/step.c:2: includes "coll/step.h" not first$'
tree
sed -i 's/return 0/abort()/' "$tmp/tree/src/coll/step.c"
finds '^src/coll/step.c:6: abort\(\) is not used here: '
ok "SPDX, the own header, calls"

tree
for _ in 1 2 3 4 5 6; do
	sed -i 's/^\treturn 0;/\t;\n\t;\n\t;\n\t;\n\t;\n\t;\n\t;\n\t;\n\t;\n\t;\n&/' "$tmp/tree/src/coll/step.c"
done
finds '^src/coll/step.c:5: a function, f, of 63 lines, more than 60$'
echo 'src/coll/step.c:f 63' >"$tmp/tree/scripts/size-exceptions.txt"
expect 0 "$tmp/tree/scripts/check_rules"
echo 'src/coll/step.c:f 62' >"$tmp/tree/scripts/size-exceptions.txt"
finds 'a function, f, grew to 63 lines, its exception says 62$'
ok "a long function and its exception"
