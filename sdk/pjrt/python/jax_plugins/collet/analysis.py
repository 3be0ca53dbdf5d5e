# SPDX-License-Identifier: Apache-2.0
"""Cost analysis of programs that are lowered and not yet compiled: `jax.jit(f).lower(x).cost_analysis()`.

JAX has none for plugins. XLA counts the operations of a program independently of the device, so JAX's own cpu platform,
if it is available, computes the analysis.
"""
from . import private


def _wrap(original, platforms):
    def cost_analysis(self):
        cpu = private.backends.get("cpu")
        if self.compile_args["backend"].platform not in platforms or cpu is None:
            return original(self)
        return private.hlo_module_cost_analysis(cpu, self.hlo().as_hlo_module())

    return cost_analysis


_platforms: set[str] = set()


def register(platform: str) -> None:
    """Enables the cost analysis of programs that are lowered for `platform`."""
    if not _platforms:
        private.MeshComputation.cost_analysis = _wrap(private.MeshComputation.cost_analysis, _platforms)
    _platforms.add(platform)
