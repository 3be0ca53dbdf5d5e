# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: lets JAX's tests see the platform as they see JAX's cpu.

JAX_TEST_DUT=cpu runs what they keep for the cpu: JAX reads this setting from absl's command line alone, which pytest does
not pass on. And the number of virtual cpu devices that a file asks for becomes the number of ours.
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
    # Not before: JAX's helpers remember the standard output that they meet when they are imported.
    if isinstance(collector, pytest.File):
        _prepare()
    return (yield)
