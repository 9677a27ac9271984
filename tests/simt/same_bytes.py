# SPDX-License-Identifier: BSD-3-Clause
"""tests/gpu/same_bytes.py with kernels that run on a CPU: those of PYFILTER_CUDA_LIBRARY (README.md).

``python tests/simt/same_bytes.py --sanitize [--codec NAME]``; PYF_SIMT_SEED is the order of threads.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from simt import arrays

if __name__ == "__main__":
    arrays.install()
    from gpu import same_bytes

    sys.exit(same_bytes.main())
