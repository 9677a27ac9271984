# SPDX-License-Identifier: BSD-3-Clause
"""Tables in the format of compression-recommendations are read strictly, and a file is compressed by one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Auto, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import bounds_file

from .support import field
from .test_cli import run

EXAMPLE = Path(__file__).parents[2] / "docs" / "tables" / "example.yaml"
T = {"kind": "cf-standard-name", "value": "t"}


def table(path: Path, *pairs: tuple[list[Any], list[Any]]) -> Path:
    """Write recommendations, each of filters and requirements."""
    entries = [{"filters": filters, "requirements": requirements} for filters, requirements in pairs]
    path.write_text(json.dumps({"version": "0.1.0", "recommendations": entries}))
    return path


def need(kind: str, value: float) -> dict[str, Any]:
    return {"kind": kind, "value": value}


ABSOLUTE, RELATIVE = "max-pointwise-absolute-error-bound", "max-pointwise-relative-error-bound"


@pytest.mark.parametrize(
    ("requirements", "codec"),
    [
        ([need(ABSOLUTE, 0.1)], Auto(absolute=0.1)),
        ([need("mean-absolute-error-bound", 0.1), need(ABSOLUTE, 0.5)], Auto(absolute=0.1)),
        ([need("mean-relative-error-bound", 0.1)], Auto(pointwise_relative=0.1)),
        ([need("mean-range-relative-error-bound", 0.1)], Auto(relative=0.1)),
        ([need(ABSOLUTE, 0.1), need(RELATIVE, 0.1)], Lossless()),
        ([need(ABSOLUTE, 0.0)], Lossless()),
        ([need(ABSOLUTE, 0.1), {"kind": "isovalue", "value": 0}], Lossless()),
        ([{"kind": "made-later"}], Lossless()),
        ([{"kind": "any", "requirements": [{"kind": "lossless"}, need(ABSOLUTE, 2)]}], Auto(absolute=2)),
        ([{"kind": "all", "requirements": [need(ABSOLUTE, 3), need(ABSOLUTE, 2)]}], Auto(absolute=2)),
    ],
)
def test_requirements(tmp_path: Path, requirements: list[Any], codec: object) -> None:
    found = bounds_file.load(table(tmp_path / "a.json", ([T], requirements)))
    assert found.standard_names == {"t": codec}
    assert found.variables == {}


def test_filters_and_the_strictest_of_several(tmp_path: Path) -> None:
    u = {"kind": "any", "filters": [T, {"kind": "cf-short-name", "value": "u"}]}
    level = {"kind": "level-kind", "value": "pressure"}
    path = table(
        tmp_path / "a.json",
        ([u, level], [need(ABSOLUTE, 0.5), {"kind": "data-limits", "minimum": -3}]),
        ([T], [need(ABSOLUTE, 0.2), {"kind": "data-limits", "minimum": 0, "maximum": 9}]),
        ([level], [need(ABSOLUTE, 0.001)]),  # of any name: no variable can be told
        ([{"kind": "not", "filter": T}], [need(ABSOLUTE, 0.001)]),
        ([T, {"kind": "cf-short-name", "value": "u"}], [need(ABSOLUTE, 0.001)]),  # no list of names says both
    )
    found = bounds_file.load(path)
    assert found.standard_names == {"t": Auto(absolute=0.2)}
    assert found.variables == {"u": Auto(absolute=0.5)}
    assert found.ranges == {"t": (0.0, 9.0), "u": (-3.0, math.inf)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "must have a list of recommendations"),
        ("{", "is no JSON file"),
        ('{"recommendations": [{"filters": 1, "requirements": []}]}', "recommendation 1: filters must be a list"),
        ('{"recommendations": [{"filters": [{"kind": "x"}], "requirements": []}]}', "got 'x'"),
        (
            '{"recommendations": [{"filters": [], "requirements": [{"kind": "mean-absolute-error-bound"}]}]}',
            "must be a number of 0 or more, got None",
        ),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InvalidArgument, match=reason):
        bounds_file.load(tmp_path / "a.json")
    (tmp_path / "a.yaml").write_text("a: [")
    with pytest.raises(InvalidArgument, match="is no YAML file"):
        bounds_file.load(tmp_path / "a.yaml")


def test_the_example_compresses_a_file(tmp_path: Path) -> None:
    values = field((100, 120)).astype("f4")
    cloud = np.clip(values + 0.5, 0, 1)
    with h5py.File(tmp_path / "a.nc", "w") as file:
        for name, standard, data in (
            ("ta", "air_temperature", 280 + 10 * values),
            ("clt", "cloud_area_fraction", cloud),
            ("pr", "precipitation_flux", np.maximum(values, 0)),
            ("other", "sea_ice_speed", values),
        ):
            file[name] = data
            file[name].attrs["standard_name"] = standard
    out = run("compress", tmp_path / "a.nc", tmp_path / "b.nc", "--config", EXAMPLE)
    assert "land_binary_mask" not in out
    with h5py.File(tmp_path / "a.nc") as before, h5py.File(tmp_path / "b.nc") as after:
        assert pyfilter.verify(before["ta"], after["ta"], 0.05).ok
        assert not pyfilter.verify(before["ta"], after["ta"], 0.005).ok
        assert pyfilter.verify(before["clt"], after["clt"], 0.01).ok
        assert after["clt"][()].max() <= 1
        assert after["clt"][()].min() >= 0
        assert np.array_equal(before["pr"][()] == 0, after["pr"][()] == 0)
        assert np.array_equal(before["other"][()], after["other"][()])
