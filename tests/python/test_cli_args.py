# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter args``: filter strings for other programs, tried with them, and read back."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless, checking
from pyfilter.cli import args

from .support import REPOSITORY, clean_environment, field, run_script, run_tool
from .test_cli import BOUND, in_a_shell, run, source, target

netCDF4 = pytest.importorskip("netCDF4")

__all__ = ["source", "target"]  # fixtures


def printed(*arguments: str) -> str:
    """Return what is on stdout alone, as a shell's $(...) has it."""
    result = in_a_shell("args", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def pipelines(path: Path) -> dict[str, list[int]]:
    """Return the filters of each dataset of numbers or text."""
    found = {}
    with h5py.File(path) as file:
        for dataset in checking.datasets(file):
            plist = dataset.id.get_create_plist()
            found[str(dataset.name)] = [plist.get_filter(index)[0] for index in range(plist.get_nfilters())]
    return found


@pytest.mark.parametrize("chunk", [[], ["-l", "t:CHUNK=30x70"]])
def test_args_for_h5repack(source: Path, chunk: list[str]) -> None:
    with h5py.File(source, "r+") as file:
        file["lat"] = np.linspace(-90, 90, 60)
    out = source.with_name("c.h5")
    words = printed("--absolute", "1e-3", "--for", "h5repack", "--var", "t").split()
    run_tool("h5repack", *chunk, *words, source, out)
    with h5py.File(source) as before, h5py.File(out) as after:
        assert pyfilter.codec_of(after["t"]) == BOUND
        assert after["t"].chunks == ((30, 70) if chunk else (60, 70))
        assert pyfilter.verify(before["t"], after["t"]).ok
        assert np.array_equal(before["lat"], after["lat"])
    assert pipelines(out) == {"/count": [], "/group/p": [], "/lat": [], "/t": [52907]}


def test_h5repack_and_the_placeholder(source: Path) -> None:
    """A name that is not in the file is an error there; h5repack of text leaves it alone."""
    words = printed("--absolute", "1e-3").split()
    assert words[1].startswith("NAME:UD=52907,0,6,")
    env = clean_environment(HDF5_PLUGIN_PATH=str(Path(clean_environment()["PYFILTER_LIBRARY"]).parent))
    result = subprocess.run(["h5repack", *words, source, source.with_name("c.h5")], env=env, check=False)
    assert result.returncode != 0
    with h5py.File(source, "r+") as file:
        file["text"] = ["a", "b"]
    words[1] = words[1].replace("NAME", "text,group/p")
    run_tool("h5repack", *words, source, source.with_name("d.h5"))
    found = pipelines(source.with_name("d.h5"))
    assert (found["/text"], found["/group/p"], found["/t"]) == ([], [52907], [])


def test_interop_has_what_args_prints(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "howto" / "other-programs.md").read_text(encoding="utf-8")
    (repack,) = re.findall(r"`h5repack (-f \S+) in\.h5 out\.h5`", text)
    copies = re.findall(r'nccopy (-F "\S+") (?:in|plain)\.nc out\.nc', text)
    assert repack == printed("--absolute", "1e-3", "--for", "h5repack", "--var", "pressure")
    assert len(copies) == 2
    for option in (repack, *copies):
        assert run("args", "--decode", option).strip() == repr(BOUND)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["pressure"] = file["other"] = field((60, 70))
    run_tool("h5repack", *repack.split(), tmp_path / "in.h5", tmp_path / "out.h5")
    assert pipelines(tmp_path / "out.h5") == {"/other": [], "/pressure": [52907]}


def test_nccopy_of_deflated_input_in_two_steps(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as file:
        file.createDimension("x", 5000)
        for name, deflated in (("u", True), ("plain", False), ("w", True)):
            file.createVariable(name, "f4", ("x",), zlib=deflated)[:] = field((5000,))
    result = in_a_shell("args", "--absolute", "1e-3", "--for", "nccopy", "--var", "u")
    option = result.stdout.strip().replace('"', "").split()
    assert result.stderr.splitlines() == [
        "nccopy does nothing, and says nothing, where the variable is deflated already.",
        "Then unpack all variables first: nccopy -d0 in.nc plain.nc, and use -F with plain.nc.",
    ]
    paths = {name: tmp_path / f"{name}.nc" for name in ("in", "once", "both", "plain", "out", "other")}
    run_tool("nccopy", *option, paths["in"], paths["once"])
    assert pipelines(paths["once"])["/u"] == [2, 1]  # the fault of which the note warns
    run_tool("nccopy", "-d0", *option, paths["in"], paths["both"])
    assert pipelines(paths["both"])["/u"] == []
    run_tool("nccopy", "-d0", paths["in"], paths["plain"])
    run_tool("nccopy", *option, paths["plain"], paths["out"])
    found = pipelines(paths["out"])
    assert (found["/u"], found["/plain"], found["/w"]) == ([52907], [], [])
    with h5py.File(paths["in"]) as before, h5py.File(paths["out"]) as after:
        assert pyfilter.verify(before["u"], after["u"]).ok
        assert np.array_equal(before["w"], after["w"])
    run_tool("nccopy", option[0], option[1].replace("u,", "plain,"), paths["in"], paths["other"])
    assert pipelines(paths["other"])["/plain"] == [52907]


def test_notes_are_not_on_stdout_and_in_json(tmp_path: Path) -> None:
    for tool, notes in (("h5repack", 2), ("nccopy", 3), ("ncgen", 1), ("h5py", 0), ("netcdf-c", 0)):
        result = in_a_shell("args", "--absolute", "1e-3", "--for", tool)
        assert result.stdout.strip() == args.format_for(tool, BOUND, "NAME")
        assert len(result.stderr.splitlines()) == notes
        assert ("Write the name of the variable for NAME, or give --var." in result.stderr) is (notes > 0)
        found = json.loads(printed("--absolute", "1e-3", "--for", tool, "--json"))
        assert "\n".join(found["notes"]) == result.stderr.strip()
    assert "-l g/t:CHUNK=..." in in_a_shell("args", "--absolute", "1", "--var", "g/t").stderr
    assert run("args", "--decode", "-f /g/2:UD=52907,0,6,1,2,0,0,0,0").strip() == "Lossless()"


def test_args_for_nccopy_and_ncgen(tmp_path: Path) -> None:
    option, spec = printed("--absolute", "0.5", "--for", "nccopy", "--var", "t").replace('"', "").split()
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
