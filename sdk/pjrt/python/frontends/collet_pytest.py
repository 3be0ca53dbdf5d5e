# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: makes JAX's tests treat the platform like JAX's cpu.

JAX_TEST_DUT=cpu runs the tests that are limited to the cpu: JAX reads this setting only from absl's command line, which
pytest does not pass on. The number of virtual cpu devices that a file requests becomes the number of this platform's devices.
"""
import functools
import os

import pytest


@functools.cache
def _prepare():
    from jax._src import config
    from jax._src import test_util

    if os.environ.get("JAX_TEST_DUT"):
        config.update("jax_test_dut", os.environ["JAX_TEST_DUT"])
    request = test_util.request_cpu_devices

    def request_devices(count):
        os.environ.setdefault("COLLET_DEVICES", str(count))
        return request(count)

    test_util.request_cpu_devices = request_devices


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(collector):
    # Not earlier, because JAX's test helpers store the standard output stream that exists when they are imported.
    if isinstance(collector, pytest.File):
        _prepare()
    return (yield)
