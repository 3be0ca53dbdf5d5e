# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: JAX_TEST_DUT=cpu runs what JAX's tests keep for the cpu.

JAX reads this setting from absl's command line alone, which pytest does not pass on; the environment has no effect by
itself.
"""
import os

from jax._src import config
from jax._src import test_util  # noqa: F401  defines the setting

if os.environ.get("JAX_TEST_DUT"):
    config.update("jax_test_dut", os.environ["JAX_TEST_DUT"])
