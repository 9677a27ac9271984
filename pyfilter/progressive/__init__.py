# SPDX-License-Identifier: BSD-3-Clause
"""Reading progressive datasets as precisely as a question needs, and more later (docs/codecs/progressive.md).

`open` a dataset or the address of a file, `Reader.read` to a tolerance, `Reader.refine` it; `retrieve` values that are
derived from several datasets. Only the bytes that a tolerance needs are read, from local files and over the network.
"""

from pyfilter.progressive.opening import open
from pyfilter.progressive.qoi import Retrieved, retrieve
from pyfilter.progressive.reader import Reader

__all__ = ["Reader", "Retrieved", "open", "retrieve"]
