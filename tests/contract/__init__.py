# SPDX-License-Identifier: BSD-3-Clause
"""What every codec promises, hunted for counter-examples: see README.md."""
