# SPDX-License-Identifier: Apache-2.0
"""The backend and options that this package registers. wheel.py writes another file into a vendor's wheel."""
PLATFORM = "collet"
# File name of the backend's library in lib/collet/backends; None: chosen by the environment or by libcollet.
BACKEND = None
OPTIONS: dict = {}  # options of the client: fallback, target, device_count, and those of the backend
