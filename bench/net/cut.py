# SPDX-License-Identifier: BSD-3-Clause
"""Rails that are cut in the middle of a transfer: it completes over those that are left, or,
where none is, fails soon and says what became of each."""
import pathlib
import re
import shutil
import sys
import tempfile
import time

import launch
import nodes
import scenarios

TIMEOUT_MS = 5000  # of a call that all rails are cut of
GRACE = 1.0        # seconds to notice that a rail is dead
LEAVING = 1.5      # seconds that a process may take to end after its error


def cut_and_wait(point, running, net):
    """When the rails were cut, counted from the beginning of the transfer, the output after
    it, and how long the processes then took."""
    if running.out.readline() != "begin\n":
        return None, None, None
    begin = time.monotonic()
    time.sleep(point.limit / 2)
    for rail in point.cut:
        net.nodes[0].ip("link", "set", f"eth{rail}", "down")
    cut_at = time.monotonic() - begin
    out = running.wait(30)
    return cut_at, out, time.monotonic() - begin - cut_at


def seconds_allowed(point, cut_at):
    """What the rails that are left need for the rest, and the grace."""
    full = sum(point.rates) * scenarios.GBIT * scenarios.PAYLOAD
    left = full * (len(point.rates) - len(point.cut)) / len(point.rates)
    return cut_at + max(point.nbytes - cut_at * full, 0) / left + GRACE


def judge_rest(point, cut_at, out, said):
    if out is None:
        print(f"{point.title}: failed\n{said.strip()[-2000:]}", file=sys.stderr)
        return {"us": {"tutti": None}, "pass": False, "ratio": "failed",
                "target": "right data"}
    took, allowed = float(out.split()[0]), seconds_allowed(point, cut_at)
    return {"us": {"tutti": took * 1e6}, "pass": took <= allowed, "ratio": f"{took:.2f} s",
            "target": f"<= {allowed:.2f} s, right data"}


def judge_none(point, out, after, said):
    """All rails are cut: each rank says which lanes there were, in time."""
    named = all(re.search(rf"\beth{rail}\b|\b10\.78\.{rail}\.", said) for rail in point.cut)
    return {"us": {"tutti": None},
            "pass": out is None and named and after <= TIMEOUT_MS / 1e3 + LEAVING,
            "ratio": f"an error after {after:.2f} s, "
                     + ("naming the lanes" if named else "not naming the lanes"),
            "target": f"<= {TIMEOUT_MS / 1e3:g} s, lanes named", "error": said.strip()}


def run_point(point, libraries, scratch):
    """Tutti alone: others end the job."""
    here = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    words = [point.operation, point.nbytes, "once"]
    none_left = len(point.cut) == len(point.rates)
    extra = {"TUTTI_TIMEOUT_MS": str(TIMEOUT_MS)} if none_left else {}
    with nodes.Network(scratch, point.nodes, point.rates) as net:
        running = launch.Running(libraries[0], launch.Job(net, point.ranks, words, here),
                                 extra=extra)
        try:
            cut_at, out, after = cut_and_wait(point, running, net)
            said = running.said()
        finally:
            running.end()
            shutil.rmtree(here, ignore_errors=True)
    if cut_at is None:
        result = judge_rest(point, 0, None, said)
    elif none_left:
        result = judge_none(point, out, after, said)
    else:
        result = judge_rest(point, cut_at, out, said)
    result["us"].update({library.name: None for library in libraries[1:]})
    return result
