#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# launch.sh PROGRAM: the program of launch.cu ends with a status that is not 0, and names its kernel.
set -u
output=$("$1" 2>&1)
status=$?
echo "$output"
if [ "$status" -eq 0 ]; then
	echo "the program ended with status 0, and its kernel did not run" >&2
	exit 1
fi
case $output in
*"triple(float*, int)"*) exit 0 ;;
esac
echo "the program did not name its kernel triple(float*, int)" >&2
exit 1
