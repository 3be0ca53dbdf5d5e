# SPDX-License-Identifier: Apache-2.0
"""What this package registers. wheel.py writes another one into a vendor's wheel."""
PLATFORM = "collet"
BACKEND = None  # file name of the backend's library in lib/collet/backends; None: the environment's or libcollet's choice
OPTIONS: dict = {}  # for the client: fallback, target, device_count, and what the backend itself knows
