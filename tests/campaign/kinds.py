# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of rounds of scripts/campaign: each runs programs by seeds and counts what became of them."""
import collections
import glob
import os
import re
import subprocess
import sys
import time

import hostile
import networks

Kind = collections.namedtuple("Kind", "share what programs run")
Place = collections.namedtuple("Place", "root tree work")

# What still runs, or lies about, after this long is left behind.
PATIENCE_S = 60


class Result:
    def __init__(self, kind):
        self.kind = kind
        self.tried = 0
        self.failed = {}
        self.times = {}
        self.notes = []

    def fail(self, what, repeat, details=""):
        self.failed[what] = self.failed.get(what, 0) + 1
        print(f"FAILED {self.kind}: {what}\n{details}  repeat: {repeat}", file=sys.stderr)


def repeat_of(kind, seed):
    return f"scripts/campaign --only {kind} --seed {seed} --rounds 1"


def environment(place, **more):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "NCCL_", "TEST_"))}
    return {**keep, "TMPDIR": place.work, "XDG_CACHE_HOME": place.work + "/cache", **more}


def program(place, name):
    return os.path.join(place.tree, "tests", name)


# -- Deaths, leaves, stops: campaign_deaths ----------------------------------------------------

def take_round(result, line, details):
    words = line.split()
    seed, where, world, how, _, outcome = words[1:7]
    result.tried += 1
    if outcome not in ("ok", "absent", "indirect"):
        result.fail(outcome, repeat_of(result.kind, seed), line + "".join(details))
    elif outcome != "ok":
        result.other[outcome] += 1
    else:
        times = [float(word) for word in words[7:]]
        how = {"exit": "exits"}.get(how, how)
        name = {"deaths": f"death, {world}", "leaves": "a rank that " + how}.get(result.kind)
        if name and times:
            result.times.setdefault(name, []).extend(times)
        result.slow += [(t, seed, where) for t in times if t > 1000]


def run_deaths(result, place, seed, seconds, rounds):
    command = [program(place, "campaign_deaths"), result.kind, str(seed), str(min(seconds, 1e9))]
    command += [str(rounds)] if rounds else []
    result.other, result.slow, head, details = collections.Counter(), [], None, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env=environment(place)) as process:
        for line in process.stdout:
            if line.startswith("round "):
                if head:
                    take_round(result, head, details)
                head, details = line, []
            else:
                details.append(line)
    if head:
        take_round(result, head, details)
    if process.returncode not in (0, 1):
        result.fail("driver", " ".join(command))
    if result.other["absent"]:
        result.notes.append(f"{result.other['absent']} died before they had come, which only a timeout tells.")
    if result.other["indirect"]:
        result.notes.append(f"{result.other['indirect']} died while ranks met, and somebody was told of a "
                            "rank that gave up for it.")
    for took, at, where in sorted(result.slow, reverse=True)[:5]:
        result.notes.append(f"{took:.0f} ms in {where}: {repeat_of(result.kind, at)}")


# -- Programs that say themselves whether all is well ---------------------------------------------

def run_recoveries(result, place, seed, seconds, rounds):
    end, cases = time.monotonic() + seconds, rounds or 6
    while time.monotonic() < end:
        out = subprocess.run([program(place, "mp_recovery")], capture_output=True, text=True,
                             env=environment(place, TEST_SEED=str(seed), TEST_CASES=str(cases),
                                             TUTTI_DEBUG="NONE"))
        result.tried += cases
        if out.returncode:
            bad = re.search(r"TEST_SEED=(\d+) TEST_CASES=1", out.stderr + out.stdout)
            result.fail("recovery", repeat_of(result.kind, bad.group(1) if bad else seed),
                        out.stderr[-2000:])
        seed += cases
        if rounds:
            break


def run_calls(result, place, seed, seconds, rounds):
    end, cases = time.monotonic() + seconds, 4000
    while time.monotonic() < end:
        out = subprocess.run([program(place, "world_matrix")], capture_output=True, text=True,
                             env=environment(place, TEST_SEED=str(seed), TEST_CASES=str(cases)))
        result.tried += cases
        if out.returncode:
            result.fail("calls", f"TEST_SEED={seed} TEST_CASES={cases} {program(place, 'world_matrix')}",
                        (out.stdout + out.stderr)[-2000:])
        seed += 1
        if rounds:
            break


def run_files(result, place, seed, seconds, rounds):
    """By the fuzzers, which learn where a change of a file leads to."""
    fuzzers = len(glob.glob(os.path.join(place.root, "tests/fuzz/fuzz_*.c")))
    each = 1 if rounds else max(1, int(seconds * os.cpu_count() / fuzzers))
    out = subprocess.run(["scripts/fuzz", "-t", str(each), "-r", "100000000"], cwd=place.root,
                         capture_output=True, text=True, env=environment(place))
    result.tried += sum(int(n) for n in re.findall(r"^ok .*: (\d+) runs", out.stdout, re.M))
    for line in re.findall(r"^FAILED .*", out.stdout, re.M):
        result.fail("file", line.split("repeat with ")[-1], out.stdout[-2000:])
    if out.returncode and not result.failed:
        result.fail("fuzzers", "scripts/fuzz", (out.stdout + out.stderr)[-2000:])


def run_rounds(result, place, command, seed, seconds, rounds, what):
    """By a program that prints "round SEED ... COUNT OUTCOME" for each."""
    command = command + [str(seed), str(min(seconds, 1e9))]
    out = subprocess.run(command + ([str(rounds)] if rounds else []), capture_output=True, text=True,
                         env=environment(place))
    count = 0
    for text in re.findall(r"^round .*\n(?:#.*\n)*", out.stdout, re.M):
        _, at, _, _, done, outcome = text.split("\n")[0].split()
        result.tried += 1
        count += int(done)
        if outcome != "ok":
            result.fail(outcome, repeat_of(result.kind, at), text + out.stderr[-2000:])
    if out.returncode not in (0, 1):
        result.fail("driver", " ".join(command), out.stderr[-2000:])
    result.notes.append(f"{count:,} {what}.")


def run_messages(result, place, seed, seconds, rounds):
    run_rounds(result, place, [program(place, "campaign_messages")], seed, seconds, rounds, "messages")


def run_programs(result, place, seed, seconds, rounds):
    command = [program(place, "campaign_programs"), "devices" if result.kind == "devices" else "hosts"]
    run_rounds(result, place, command, seed, seconds, rounds, "steps")


def run_networks(result, place, seed, seconds, rounds):
    why = networks.why_not()
    if why:
        result.notes.append(f"left out: {why}")
        return
    end, left = time.monotonic() + seconds, rounds or sys.maxsize
    sealed = []
    while time.monotonic() < end and left:
        one = networks.run_one(place, environment, seed, seconds > 200)
        result.tried += 1
        if one.is_sealed:
            sealed.append(one)
        if one.wrong:
            result.fail("network", repeat_of(result.kind, seed), one.wrong)
        seed, left = seed + 1, left - 1
    result.notes.append(f"{len(sealed)} jobs were encrypted: of {sum(one.frames for one in sealed):,} frames "
                        f"the box read each and changed {sum(one.changed for one in sealed):,}.")


def run_hostile(result, place, seed, seconds, rounds):
    end, left, jobs = time.monotonic() + seconds, rounds or sys.maxsize, 0
    while time.monotonic() < end and left:
        count, wrong = hostile.run_one(place, environment, seed, min(max(3, seconds - 1), 20))
        result.tried += count
        if wrong:
            result.fail("hostile", repeat_of(result.kind, seed), wrong)
        seed, left, jobs = seed + 1, left - 1, jobs + 1
    result.notes.append(f"to the ports of {jobs} jobs of {hostile.RANKS} ranks.")


def run_soak(result, place, seed, seconds, rounds):
    out = subprocess.run([program(place, "campaign_soak"), str(seed), str(min(seconds, 1e9))] +
                         ([str(rounds)] if rounds else []), capture_output=True, text=True,
                         env=environment(place))
    found = re.search(r"soak (\d+) cycles, (.*), (ok|failed)", out.stdout)
    result.tried += int(found.group(1)) if found else 1
    if out.returncode:
        result.fail("soak", f"scripts/campaign --only soak --seed {seed} --minutes {seconds / 60:.1f}",
                    out.stdout + out.stderr[-2000:])
    elif found:
        result.notes.append(f"4 ranks, {found.group(2)}.")


KINDS = {
    "deaths": Kind(40, "a rank of 2 to 8 dies, in any call", ["campaign_deaths"], run_deaths),
    "leaves": Kind(8, "a rank exits, destroys its communicator or aborts, between calls",
                   ["campaign_deaths"], run_deaths),
    "stops": Kind(8, "a rank is stopped for up to 1 s, and all go on", ["campaign_deaths"],
                  run_deaths),
    "recoveries": Kind(10, "8 ranks die to 1 and grow to 8 again", ["mp_recovery"], run_recoveries),
    "networks": Kind(12, "a job of 2 hosts whose network is disturbed", ["net_stream"],
                     run_networks),
    "hostile": Kind(6, "a stranger's connection to a running job", ["net_stream"], run_hostile),
    "messages": Kind(4, "random messages of 2 threads a rank, beside collectives",
                     ["campaign_messages"], run_messages),
    "devices": Kind(8, "a random program of calls by ranks with devices", ["campaign_programs"],
                    run_programs),
    "programs": Kind(4, "a random program of calls on memory of hosts", ["campaign_programs"],
                     run_programs),
    "calls": Kind(6, "a drawn call, every byte compared", ["world_matrix"], run_calls),
    "soak": Kind(6, "all that there is, made, used and destroyed", ["campaign_soak"], run_soak),
    "files": Kind(10, "a file or message, mutated", [], run_files),
}


# -- What is left behind ----------------------------------------------------------------------------

def processes_of(place):
    """Those whose TMPDIR is the campaign's."""
    mark, found = f"TMPDIR={place.work}".encode(), []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(path.split("/")[2])
        except OSError:
            continue
    return found


def left_behind(place, shm_before):
    shm = set(os.listdir("/dev/shm")) - shm_before
    files = [name for name in os.listdir(place.work) if name != "cache"]
    found = [f"process {pid}" for pid in processes_of(place)]
    # Trees are those of unit tests that run beside.
    found += [f"/dev/shm/{name}" for name in shm if "tutti" in name and not name.startswith("tutti-tree-")]
    return found + [f"{place.work}/{name}" for name in files]


def build(tree, chosen):
    targets = sorted({name for kind in chosen for name in KINDS[kind].programs})
    if not os.path.exists(f"{tree}/CMakeCache.txt"):
        sys.exit(f"{tree} is no tree of a build: make it first, by cmake --preset {os.path.basename(tree)}")
    if targets:
        subprocess.run(["cmake", "--build", tree, "-j", str(os.cpu_count()), "--target", *targets],
                       check=True, stdout=subprocess.DEVNULL)


def run(kind, place, seed, seconds, rounds):
    result = Result(kind)
    shm_before = set(os.listdir("/dev/shm"))
    KINDS[kind].run(result, place, seed, seconds, rounds)
    end = time.monotonic() + PATIENCE_S
    while left_behind(place, shm_before) and time.monotonic() < end:
        time.sleep(0.05)
    for what in left_behind(place, shm_before):
        result.fail("left", repeat_of(kind, seed), f"left behind: {what}\n")
    return result
