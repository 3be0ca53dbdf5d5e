# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: lets JAX's tests see the platform as they see JAX's cpu.

JAX_TEST_DUT=cpu runs what they keep for the cpu: JAX reads this setting from absl's command line alone, which pytest does
not pass on. And the number of virtual cpu devices that a file asks for becomes the number of ours.
"""
import os

from jax._src import config
from jax._src import test_util

if os.environ.get("JAX_TEST_DUT"):
    config.update("jax_test_dut", os.environ["JAX_TEST_DUT"])

_request = test_util.request_cpu_devices


def _request_devices(count):
    os.environ.setdefault("COLLET_DEVICES", str(count))
    return _request(count)


test_util.request_cpu_devices = _request_devices
