# SPDX-License-Identifier: BSD-3-Clause
"""`python -m tutti ...` and the command `tutti ...`: they run the tool in place of this process."""
import os
import sys
from typing import NoReturn

# The tool does not need the library in this process.
from ._library import get_tool


def main() -> NoReturn:
    os.execv(get_tool(), ["tutti"] + sys.argv[1:])


if __name__ == "__main__":
    main()
