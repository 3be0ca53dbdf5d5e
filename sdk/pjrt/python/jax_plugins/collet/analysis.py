# SPDX-License-Identifier: Apache-2.0
"""Cost analysis of programs that are lowered and not yet compiled: `jax.jit(f).lower(x).cost_analysis()`.

JAX has none for plugins. XLA counts the operations of a program independently of the device, so JAX's own cpu platform,
if it is available, computes the analysis.
"""
from jax._src import xla_bridge
from jax._src.interpreters import pxla
from jax._src.lib import _jax


def _wrap(original, platforms):
    def cost_analysis(self):
        cpu = xla_bridge._backends.get("cpu")
        if self.compile_args["backend"].platform not in platforms or cpu is None:
            return original(self)
        return _jax.hlo_module_cost_analysis(cpu, self.hlo().as_hlo_module())

    return cost_analysis


_platforms: set[str] = set()


def register(platform: str) -> None:
    """Enables the cost analysis of programs that are lowered for `platform`."""
    if not _platforms:
        pxla.MeshComputation.cost_analysis = _wrap(pxla.MeshComputation.cost_analysis, _platforms)
    _platforms.add(platform)
