# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own DistributedTest, which comes in its wheel, on a backend of our choice.

distributed_test.py BACKEND WORLD [CASE...]   prints a line for each case that ran: passed or failed

Most cases are for backends whose names PyTorch knows, so Tutti is also put in Gloo's place: of
BACKEND gloo=tutti all that Gloo's cases ask of Gloo is asked of Tutti. And with to_all= before it, as
to_all=gloo=tutti, only the cases of all_to_all run that PyTorch has for MPI alone.

The ranks are forked, not spawned: a rank that starts anew imports PyTorch for seconds.
"""
import logging
import os
import sys
import tempfile
import unittest
from typing import Any, List

WHICH, WORLD = sys.argv[1], sys.argv[2]
TO_ALL, _, NAME = WHICH.rpartition("to_all=")
NAME, _, INSTEAD = NAME.partition("=")
os.environ.update(BACKEND="mpi" if "to_all=" in WHICH else NAME, WORLD_SIZE=WORLD,
                  TEMP_DIR=tempfile.gettempdir(), MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1",
                  DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="120")

import torch  # pylint: disable=wrong-import-position
import torch.distributed as dist  # pylint: disable=wrong-import-position

if "tutti" in WHICH:
    import tutti.torch
if "to_all=" in WHICH:
    # A name that PyTorch has no backend for on this machine, and cases for.
    dist.is_mpi_available = dist.distributed_c10d.is_mpi_available = lambda: True

from torch.testing._internal.distributed import distributed_test as theirs  # noqa: E402 pylint: disable=wrong-import-position

if "to_all=" in WHICH:
    theirs.BACKEND = NAME
if INSTEAD:
    dist.Backend._plugins[NAME.upper()] = dist.Backend._BackendPlugin(
        tutti.torch._process_group.create_group, True)
    tutti.torch._process_group.TITLE = NAME
logging.getLogger("torch").setLevel(logging.ERROR)


class DistributedTest(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    """Each case, by processes that are forked from this one."""

    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False).__enter__()


class Result(unittest.TextTestResult):
    """A line for each case that was not skipped."""

    def _say(self, word: str, test: unittest.TestCase) -> None:
        print(word, test.id().rsplit(".", 1)[-1], flush=True)

    def addSuccess(self, test: Any) -> None:
        self._say("passed", test)
        super().addSuccess(test)

    def addFailure(self, test: Any, err: Any) -> None:
        self._say("failed", test)
        super().addFailure(test, err)

    def addError(self, test: Any, err: Any) -> None:
        self._say("failed", test)
        super().addError(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self._say("skipped", test)
        super().addSkip(test, reason)


def cases(names: List[str]) -> unittest.TestSuite:
    loader = unittest.TestLoader()
    names = names or [name for name in loader.getTestCaseNames(DistributedTest)
                      if "to_all=" not in WHICH or "all_to_all" in name]
    return unittest.TestSuite(DistributedTest(name) for name in names)


if __name__ == "__main__":
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=0)
    sys.exit(not runner.run(cases(sys.argv[3:])).wasSuccessful())
