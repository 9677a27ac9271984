# SPDX-License-Identifier: BSD-3-Clause
"""Spack package of h5pyfilter: the file packages/py_h5pyfilter/package.py of a Spack repository (docs/releasing.md)."""

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyH5pyfilter(PythonPackage, CudaPackage):
    """An HDF5/netCDF filter that stores floating-point data with a guaranteed error bound, on CPUs and GPUs.

    The import is named pyfilter. Programs other than Python find the filter by HDF5_PLUGIN_PATH, which is set.
    """

    pypi = "h5pyfilter/h5pyfilter-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")  # with sha256="..." of the sdist once it is released

    conflicts("platform=darwin")
    conflicts("platform=windows")
    conflicts("%gcc@:10", msg="C++20 needs GCC 11 or newer")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@4.1:", type="build")
    depends_on("ninja@1.10:", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-numpy@1.23:", type=("build", "run"))
    depends_on("py-h5py@3.8:", type=("build", "run"))
    depends_on("py-click@8.1.3:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-tomli@1.1:", type=("build", "run"), when="^python@:3.10")
    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("py-cupy@13:", type="run")

    def config_settings(self, spec, prefix):
        """Return the settings that scikit-build-core passes on to CMake."""
        settings = {"cmake.define.PYF_CUDA": "ON" if spec.satisfies("+cuda") else "OFF"}
        if spec.satisfies("+cuda"):
            settings["cmake.define.PYF_CUDA_ARCHITECTURES"] = ";".join(spec.variants["cuda_arch"].value)
        return settings

    def setup_run_environment(self, env):
        """Let h5dump, ncdump and others find the filter."""
        env.prepend_path("HDF5_PLUGIN_PATH", join_path(python_platlib, "pyfilter", "lib"))
