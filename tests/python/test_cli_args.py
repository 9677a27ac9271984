# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter args``: filter strings for other programs, tried with them, and read back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.cli import args

from .support import run_script, run_tool
from .test_cli import BOUND, run, source, target

__all__ = ["source", "target"]  # fixtures


def test_args_for_h5repack(source: Path) -> None:
    words = run("args", "--absolute", "1e-3", "--for", "h5repack").split()
    run_tool("h5repack", "-l", "t:CHUNK=30x70", words[0], f"t:{words[1]}", source, source.with_name("c.h5"))
    with h5py.File(source) as before, h5py.File(source.with_name("c.h5")) as after:
        assert pyfilter.codec_of(after["t"]) == BOUND
        assert pyfilter.verify(before["t"], after["t"]).ok


def test_args_for_nccopy_and_ncgen(tmp_path: Path) -> None:
    option, spec = run("args", "--absolute", "0.5", "--for", "nccopy", "--var", "t").strip().replace('"', "").split()
    line = run("args", "--absolute", "0.5", "--for", "ncgen", "--var", "t").strip()
    (tmp_path / "a.cdl").write_text(
        f"netcdf a {{ dimensions: x = 4 ; variables: float t(x) ; {line} data: t = 1, 2, 3, 4 ; }}", encoding="utf-8"
    )
    run_tool("ncgen", "-4", "-o", tmp_path / "a.nc", tmp_path / "a.cdl")
    (tmp_path / "b.cdl").write_text(
        "netcdf b { dimensions: x = 4 ; variables: float t(x) ; data: t = 1, 2, 3, 4 ; }", encoding="utf-8"
    )
    run_tool("ncgen", "-4", "-o", tmp_path / "b.nc", tmp_path / "b.cdl")
    run_tool("nccopy", option, spec, tmp_path / "b.nc", tmp_path / "c.nc")
    for name in ("a", "c"):
        with h5py.File(tmp_path / f"{name}.nc") as file:
            assert pyfilter.codec_of(file["t"]) == Cuszp2(absolute=0.5)
            assert np.all(np.abs(file["t"][()] - [1, 2, 3, 4]) <= 0.5)


def test_args_for_h5py(tmp_path: Path) -> None:
    text = run("args", "--relative", "1e-3", "--mode", "fixed", "--for", "h5py").strip()
    script = f"""
import sys, h5py, numpy as np
import pyfilter
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("a", data=np.arange(1000.0), chunks=(100,), {text})
    print(pyfilter.codec_of(file["a"]))
"""
    assert run_script(script, tmp_path / "a.h5").stdout.strip() == "Cuszp2(relative=0.001, mode='fixed')"


def test_args_for_the_c_library() -> None:
    text = run("args", "--lossless", "--for", "netcdf-c")
    assert "{1u, 2u, 0u, 0u, 0u, 0u}" in text
    assert "nc_def_var_filter(ncid, varid, 52907u, 6, words);" in text


@pytest.mark.parametrize(
    "codec", [BOUND, Cuszp2(relative=0.25, mode="plain", block_dims=2), Lossless(block_dims=3)], ids=repr
)
@pytest.mark.parametrize("tool", args.TOOLS)
def test_args_are_decoded(codec: pyfilter.Codec, tool: str) -> None:
    text = args.format_for(tool, codec, "var2")
    assert pyfilter.Codec.from_cd_values(args.parse_words(text)) == codec
    assert run("args", "--decode", text).strip() == repr(codec)


def test_stored_words_are_decoded_as_programs_print_them(target: Path) -> None:
    dump = run_tool("h5dump", "-pH", "-d", "/t", target)
    params = re.search(r"PARAMS \{ (.*) \}", dump)
    assert params is not None
    out = run("args", "--decode", params.group(1))
    assert out.splitlines() == [repr(BOUND), "stored for f32, little-endian, chunks (60, 70)"]


@pytest.mark.parametrize(
    "text",
    [
        "52907,1,1,1,0.001d,0",
        't:_Filter = "52907,1u,1ub,1s,1e-3d,0" ;',
        "USER_DEFINED_FILTER { FILTER_ID 52907 COMMENT pyfilter PARAMS { 1 1 1 -755914244 1062232653 0 } }",
        "{1u, 1u, 1u, 4562254508917369340UL, 0}",
    ],
)
def test_constants_as_programs_write_them(text: str) -> None:
    assert pyfilter.Codec.from_cd_values(args.parse_words(text)) == BOUND
    found = json.loads(run("args", "--decode", text, "--json"))
    assert (found["codec"], found["words"][:3]) == (repr(BOUND), [1, 1, 1])


def test_a_double_without_its_d_is_refused() -> None:
    """NetCDF itself takes it for 0 and says nothing."""
    with pytest.raises(ValueError, match=r"0\.001d"):
        run("args", "--decode", "52907,1,1,1,0.001,0")


@pytest.mark.parametrize("text", ["", "abc", "1,2,3,4,5,6,7,8", "1 9 0"])
def test_words_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"decode|cd_values"):
        run("args", "--decode", text)


def test_args_as_json(target: Path) -> None:
    found = json.loads(run("args", "--absolute", "1e-3", "--for", "h5py", "--json"))
    assert found["words"] == list(BOUND.filter_options)
    assert found["text"] == f"compression=52907, compression_opts={BOUND.filter_options}"
    with h5py.File(target) as file:
        words = file["t"]._filters["52907"]
    found = json.loads(run("args", "--decode", " ".join(map(str, words)), "--json"))
    assert (found["codec"], found["dtype"], found["chunks"]) == (repr(BOUND), "f32", [60, 70])


def test_args_need_a_bound_and_a_known_tool() -> None:
    with pytest.raises(ValueError, match="--absolute, --relative"):
        run("args")
    with pytest.raises(ValueError, match="--for must be one of h5repack, nccopy, ncgen, h5py, netcdf-c"):
        run("args", "--lossless", "--for", "zip")


def test_args_without_a_codec_take_one_that_has_the_bound() -> None:
    text = run("args", "--pointwise-relative", "0.01", "--for", "h5py")
    assert run("args", "--decode", text).strip() == "HierarchicalDelta(pointwise_relative=0.01)"
    assert run("args", "--decode", run("args", "--psnr", "60", "--for", "h5py")).strip() == "Cuszp2(psnr=60.0)"
