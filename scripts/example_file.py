# SPDX-License-Identifier: BSD-3-Clause
"""Makes a small netCDF-4 file like a climate model's: temperature with a land mask, wind, and coordinates."""

import sys

import netCDF4
import numpy as np


def main(path: str) -> None:
    """Write the file."""
    rng = np.random.default_rng(1)
    lat, lon = np.linspace(-89, 89, 180), np.arange(0, 360, 1.0)
    y, x = np.radians(lat)[:, None], np.radians(lon)[None, :]
    land = np.sin(3 * x) * np.cos(2 * y) + 0.4 * np.sin(7 * x + 5 * y) > 0.45
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "example made by pyfilter: an idealised climate"
        for name, values, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
            ds.createDimension(name, values.size)
            v = ds.createVariable(name, "f8", (name,))
            v.units = units
            v[:] = values
        ds.createDimension("time", None)
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        tos = ds.createVariable("tos", "f4", ("time", "lat", "lon"), fill_value=1e20)
        tos.units = "K"
        u = ds.createVariable("u", "f4", ("time", "lat", "lon"))
        u.units = "m s-1"
        for step in range(24):
            season = 4 * np.cos(2 * np.pi * step / 24)
            waves = sum(np.sin(k * x + 0.3 * k * step + k) * np.cos((k + 1) * y) / k for k in range(1, 12))
            time[step] = 15.0 * step
            warm = 273.15 + 30 * np.cos(y) ** 2 + season * np.sin(y) + 0.8 * waves + rng.normal(0, 0.02, land.shape)
            tos[step] = np.ma.masked_array(warm, mask=land)
            u[step] = 12 * np.sin(2 * y) ** 2 + 3 * waves + rng.normal(0, 0.1, land.shape)


if __name__ == "__main__":
    main(sys.argv[1])
