# SPDX-License-Identifier: Apache-2.0
"""Builds the programs that draw.py draws: a function of JAX and its arguments."""
import draw_algebra
import draw_arrays
import draw_images
import draw_kinds
import draw_lookups
import draw_loops
import draw_models
import draw_windows
import programs

# {family: {kind: a function of the arguments' maker and of the kind's parameters that returns a Program}}
BUILDERS = {family: kinds for module in (draw_arrays, draw_lookups, draw_algebra, draw_windows, draw_loops, draw_models, draw_images)
            for family, kinds in module.BUILDERS.items()}
assert {family: set(kinds) for family, kinds in BUILDERS.items()} == {
    family: {kind.name for kind in kinds} for family, kinds in draw_kinds.FAMILIES.items()}


def build(point):
    """Returns the program of a drawn point. Those of integers must agree exactly."""
    maker = programs.Arguments(point.dtype, [point.seed, point.index])
    program = BUILDERS[point.family][point.variant](maker, **point.values)
    if program.tolerance is None and point.dtype.startswith(("int", "uint", "bool")):
        program.tolerance = 0
    return programs.with_tolerance(program, point.dtype)
