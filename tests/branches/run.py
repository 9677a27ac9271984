# SPDX-License-Identifier: BSD-3-Clause
"""Build the library with `--coverage`, run the tests that matter, and print which branches they took.

In the folder `tests`: `python -m branches.run [--print]`; with `--print` only the table of an earlier run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter

from .measure import ROOT, measure, missed
from .unreached import reason_of

BUILD = ROOT / "build" / "coverage"
FLAGS = "-O0 --coverage -fprofile-update=atomic -DPYF_COVERAGE"
#: Of these test_library.py looks at a library as it is released, and two levels are needed by one test of fuzz.
TESTS = (
    *("golden", "hdf5", "reference/test_library.py", "reference/test_adaptive.py"),
    *("contract/test_half.py", "contract/test_complex.py", "contract/test_lossless.py", "contract/test_blocks.py"),
    *("contract/test_records.py", "python/test_records.py"),
    *("fuzz/test_replay.py", "-k", "not undefined_symbols and not path_of_the_builder and not what_is_broken"),
    "--deselect=fuzz/test_replay.py::test_seeds_and_what_is_made_of_them[decode_any-30000]",  # too slow here
    "--deselect=fuzz/test_replay.py::test_seeds_and_what_is_made_of_them[filter-20000]",
    "--deselect=fuzz/test_replay.py::test_seeds_and_what_is_made_of_them[round_trip-3000]",
)
#: Files that decoders use; encoders may use them, too. Files that only encoders use are left out.
DECODERS = (
    r"core/(header|cpu_driver|grid|types|bits|tile_shape)\.[ch]pp",
    r"(cuszp2|hierarchical_delta|lossless)/codec\.cpp",
    r"\w+/cpu/coders\.cpp",
    r"(lorenzo|particles|progressive)/cpu/decode\.hpp",
    r"adaptive/(cpu/(unit_decode|stream)|model_read|tile|known|layout|grid)\.hpp",
    r"lorenzo/(cpu/(lanes|rounds|huffman_stream|flags|simd/\w+)|huffman|model|group|rans|round_tables)\.hpp",
    r"lossless/(binned\.cpp|binned_plan\.hpp|cpu/(binned\.cpp|bin_streams\.hpp))",
    r"particles/(head|sequence)\.hpp",
    r"progressive/((bit_stream|head|layout|tile|order|specials|values|memory)\.hpp|(driver|codec)\.cpp)",
    r"progressive/cpu/(pieces|tile_words|points)\.hpp",
    r"stages/(entropy/(tables|slots|rans_step)|tile_decode|blocks|block_plan|planes|special|masks|bit_map)\.hpp",
    r"stages/packed/(decode|decode_parts|differences|layout|tile_bits|tile_values|values|missing|map_steps|special)\.hpp",
    r"stages/(packed/parameters|block_codec|cpu/values)\.cpp",
    r"stages/(quantizing_map|simd/(rows|planes_generic))\.hpp",
)
GROUPS = {
    "the filter and cd_values": re.compile(r"filter/(?!device_)\w+\.[ch]pp"),
    "header": re.compile(r"kernels/core/header\.cpp"),
    "decoders": re.compile(rf"kernels/({'|'.join(DECODERS)})"),
}


def build() -> None:
    options = ["-DPYF_LEVELS=baseline", "-DPYF_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Coverage"]
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER="]  # a cache of objects has no notes for gcov
    command = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", f"-DCMAKE_CXX_FLAGS_COVERAGE={FLAGS}"]
    subprocess.run([*command, *options, *launcher], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD)], check=True)


def run_tests() -> None:
    for data in BUILD.rglob("*.gcda"):
        data.unlink()
    env = {**os.environ, "PYFILTER_LIBRARY": str(BUILD / "libh5pyfilter.so"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS]
    subprocess.run(command, cwd=ROOT / "tests", env=env, check=True)


def main() -> None:
    if shutil.which("gcov") is None:
        sys.exit("no gcov: it comes with GCC")
    if "--print" not in sys.argv[1:]:
        build()
        run_tests()
    lines: list[str] = []
    reasons: Counter[str] = Counter()
    print("| files | branches | taken | |\n|---|---|---|---|")
    for name, files in GROUPS.items():
        taken = measure(BUILD, files)
        share = 100 * sum(taken.values()) / len(taken)
        print(f"| {name} | {len(taken)} | {sum(taken.values())} | {share:.1f} % |")
        for line in missed(taken):
            reason = reason_of(line)
            reasons[reason or "not looked into"] += line.branches
            lines.append(f"{line.file}:{line.line} ({line.branches}): {reason or '?'}: {line.text}")
    print("\n| branches that no test took | |\n|---|---|")
    for reason, count in reasons.most_common():
        print(f"| {reason} | {count} |")
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
