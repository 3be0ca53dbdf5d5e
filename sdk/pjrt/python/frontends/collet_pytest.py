# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: makes JAX's tests treat the platform like JAX's cpu.

JAX_TEST_DUT=cpu runs the tests that are limited to the cpu: JAX reads this setting only from absl's command line, which
pytest does not pass on. The number of virtual cpu devices that a file requests becomes the number of this platform's devices.
COLLET_FRONTENDS_SAMPLE is "N SEED": one test of N is run. COLLET_FRONTENDS_ONLY is a file with the tests, CLASS.METHOD, that are run.
"""
import functools
import os

import judge_journal
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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    every, seed = os.environ.get("COLLET_FRONTENDS_SAMPLE", "1 0").split()
    items[:] = [item for item in items if judge_journal.is_drawn(item.nodeid, int(every), seed)]
    if only := os.environ.get("COLLET_FRONTENDS_ONLY"):
        with open(only, encoding="utf-8") as names:
            wanted = set(names.read().split())
        items[:] = [item for item in items if ".".join(item.nodeid.split("::")[-2:]) in wanted]
