# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzz targets side by side and counts their executions: `campaign.py BUILD [TARGET...]` (scripts/fuzz).

BUILD has the targets (fuzz_NAME), and gets `seeds` (seeds.py, if it has none), `corpus`, which grows from run to run,
and `found`. Each core takes the target that is furthest from its number of executions, for a while; processes of one
target share its corpus. Only the standard library is needed, so that a build can run where the project is not.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

#: Longest that a process runs before its core chooses anew.
SLICE_SECONDS = 90
#: An input that takes longer is a finding, and so is one that takes more memory.
TIMEOUT_SECONDS, RSS_MB = 20, 2560
#: A process that goes on for so long after its time is asked to end, which it does with this status.
OVERTIME_SECONDS, INTERRUPTED = 8, 72
#: Targets with so many findings are given up.
MOST_FINDINGS = 20


@dataclass
class Target:
    """What became of one target."""

    name: str
    executions: int = 0
    core_seconds: float = 0.0
    slices: int = 0
    running: int = 0
    expected: float = 0.0  # executions that those under way will add
    tally: list[int] = field(default_factory=lambda: [0, 0, 0, 0])  # of decode_check.cpp
    findings: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Executions a second on one core."""
        return self.executions / self.core_seconds if self.core_seconds else 1000.0


@dataclass
class Slice:
    """A process under way."""

    target: Target
    process: subprocess.Popen[bytes]
    log: Path
    started: float
    seconds: float
    expected: float
    interrupted: bool = False

    def is_over(self) -> bool:
        """Whether it has ended. libFuzzer does not look at the clock while it loads its corpus."""
        if not self.interrupted and time.monotonic() > self.started + self.seconds + OVERTIME_SECONDS:
            self.process.send_signal(signal.SIGINT)
            self.interrupted = True
        return self.process.poll() is not None


@dataclass
class Campaign:
    """Folders and limits of a run. Entropic schedules are off: with thousands of inputs they take half of the time."""

    build: Path
    jobs: int
    executions: int
    seconds: float
    max_bytes: int

    def command(self, name: str, *words: str) -> list[str]:
        program = next(path for path in (self.build, self.build / "tests/fuzz") if (path / f"fuzz_{name}").exists())
        limits = ["-entropic=0", f"-max_len={self.max_bytes}", f"-timeout={TIMEOUT_SECONDS}", f"-rss_limit_mb={RSS_MB}"]
        return [str(program / f"fuzz_{name}"), *limits, f"-artifact_prefix={self.build}/found/{name}_", *words]

    def start(self, target: Target, seconds: float) -> Slice:
        target.slices += 1
        log = self.build / "logs" / f"{target.name}_{target.slices}.log"
        corpus = self.build / "corpus" / target.name
        left = max(1, self.executions - target.executions)
        words = [f"-max_total_time={max(1, int(seconds))}", f"-runs={left}", "-print_final_stats=1"]
        folders = [str(corpus), str(self.build / "seeds" / target.name)]
        with log.open("wb") as out:
            process = subprocess.Popen(self.command(target.name, *words, *folders), stdout=out, stderr=out)
        target.running += 1
        expected = min(target.rate * seconds, left)
        target.expected += expected
        return Slice(target, process, log, time.monotonic(), seconds, expected)

    def finish(self, done: Slice) -> None:
        target, text = done.target, done.log.read_text("utf-8", "replace")
        target.running -= 1
        target.expected -= done.expected
        target.core_seconds += time.monotonic() - done.started
        # what is executed to load the corpus is not new
        loaded = re.search(r"^#(\d+)\s+INITED", text, re.MULTILINE)
        counts = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", text, re.MULTILINE)
        target.executions += max(0, int(counts[-1] if counts else 0) - int(loaded.group(1) if loaded else 0))
        for numbers in re.findall(r"^tally: (\d+) \D+(\d+) \D+(\d+) \D+(\d+)", text, re.MULTILINE):
            target.tally = [a + int(b) for a, b in zip(target.tally, numbers, strict=True)]
        if done.process.returncode == 0 or (done.interrupted and done.process.returncode == INTERRUPTED):
            done.log.unlink()
            return
        lines = [line for line in text.splitlines() if re.search(r"BROKEN|ERROR|runtime error", line)]
        target.findings.append(lines[0] if lines else f"exit status {done.process.returncode}")
        print(f"{target.name}: {target.findings[-1]} ({done.log})", flush=True)

    def run(self, targets: list[Target]) -> None:
        """Every target's executions, or until the time is over."""
        end = time.monotonic() + self.seconds if self.seconds else float("inf")
        running: list[Slice] = []
        while True:
            for one in [one for one in running if one.is_over()]:
                running.remove(one)
                self.finish(one)
            left = end - time.monotonic()
            open_ones = [
                t
                for t in targets
                if t.executions + t.expected < self.executions and len(t.findings) < MOST_FINDINGS and left > 5
            ]
            if open_ones and len(running) < self.jobs:
                chosen = min(open_ones, key=lambda t: (t.executions + t.expected, t.running))
                running.append(self.start(chosen, min(SLICE_SECONDS, left)))
                continue
            if not running:
                return
            time.sleep(0.1)

    def minimise(self, name: str) -> int:
        """The corpus without what adds nothing; its number of files."""
        corpus, smaller = self.build / "corpus" / name, self.build / "corpus" / f"{name}.smaller"
        shutil.rmtree(smaller, ignore_errors=True)
        smaller.mkdir()
        command = self.command(name, "-merge=1", str(smaller), str(corpus), str(self.build / "seeds" / name))
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            shutil.rmtree(corpus)
            smaller.rename(corpus)
        return len(list(corpus.iterdir()))


def keep(corpus: Path, folder: Path) -> None:
    """Write a corpus to one file, the same for the same inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / f"{corpus.name}.tar.xz", "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(corpus.iterdir()):
            data = path.read_bytes()
            member = tarfile.TarInfo(path.name[:16])
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def main() -> None:
    codecs = ("cuszp2", "lossless", "hierarchical_delta", "lorenzo", "particles", "progressive", "adaptive", "any")
    every = [*(f"decode_{codec}" for codec in codecs), "filter", "round_trip"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("targets", nargs="*", default=every)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
    parser.add_argument("--executions", type=int, default=10_000_000, help="of each target")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after these; 0: when all is executed")
    parser.add_argument("--bytes", type=int, default=1024, help="of an input at most")
    parser.add_argument("--minimise", action="store_true", help="take out of the corpora what adds nothing")
    parser.add_argument("--keep", type=Path, help="do so, and write each corpus to a file in this folder (corpora/)")
    words = parser.parse_args()
    campaign = Campaign(words.build.resolve(), words.jobs, words.executions, words.seconds, words.bytes)
    targets = [Target(name) for name in words.targets]
    for folder in ("found", "logs", *(f"corpus/{t.name}" for t in targets), *(f"seeds/{t.name}" for t in targets)):
        (campaign.build / folder).mkdir(parents=True, exist_ok=True)
    campaign.run(targets)
    with ThreadPoolExecutor(words.jobs) as pool:
        if words.minimise or words.keep:
            list(pool.map(campaign.minimise, [t.name for t in targets]))
    if words.keep:
        for t in targets:
            keep(campaign.build / "corpus" / t.name, words.keep)
    print("| target | executions | a second and core | decoded / refused / by header / too large | corpus | findings |")
    print("|---|---|---|---|---|---|")
    for t in targets:
        inputs = len(list((campaign.build / "corpus" / t.name).iterdir()))
        header, large, refused, good = (f"{100 * n / max(1, sum(t.tally)):.0f} %" for n in t.tally)
        kinds = f"{good} / {refused} / {header} / {large}" if sum(t.tally) else ""
        print(f"| {t.name} | {t.executions:,} | {t.rate:,.0f} | {kinds} | {inputs:,} | {len(t.findings) or 'none'} |")
    sys.exit(any(t.findings for t in targets))


if __name__ == "__main__":
    main()
