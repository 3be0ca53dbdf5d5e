# SPDX-License-Identifier: Apache-2.0
"""Collet's PJRT plugin for PyTorch/XLA, which finds `Plugin` by the entry point torch_xla.plugins.

PJRT_DEVICE, set to the platform's name in capitals, selects it; COLLET_BACKEND, COLLET_DEVICES, COLLET_FALLBACK and
COLLET_PJRT_LIBRARY mean what they mean under JAX.
"""
from torch_xla.experimental import plugins

from . import installed, settings


class Plugin(plugins.DevicePlugin):
    """The plugin of a single process that uses all devices of the client."""

    def library_path(self) -> str:
        return str(installed.library())

    def physical_chip_count(self) -> int:
        return 1

    def client_create_options(self) -> dict:
        return installed.client_options(settings.PLATFORM)
