# SPDX-License-Identifier: Apache-2.0
"""Draws programs at random from the kinds of draw_kinds.py. This file can be read without JAX; draw_programs.py builds the programs."""
import dataclasses
import random

import draw_kinds

DEFAULT_COUNT = 8  # programs of each family
MOST = 1000
LARGEST_SEED = 2 ** 32 - 1


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One drawn program. `values` has its kind's parameters; the seed, family and index determine everything."""
    family: str
    variant: str
    dtype: str
    values: dict
    seed: int
    index: int

    @property
    def name(self):
        words = [f"{self.family}/{self.variant}", self.dtype, *(word(key, value) for key, value in self.values.items())]
        return " ".join(words) + f" #{self.seed}.{self.index}"

    @property
    def facts(self):
        """What a row of the report says beside the name, the family, the variant and the type."""
        return {"draw": self.seed, "index": self.index, "values": self.values}


def word(key, value):
    """Returns one parameter as a part of a name, which has no spaces and no characters that a pattern would interpret."""
    if key == "shape":
        return "x".join(map(str, value))
    text = ",".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
    return f"{key}={text}"


def one(seed, family, index):
    """Returns program `index` of a family. It does not depend on which other programs are drawn."""
    source, kinds = random.Random(f"{seed}/{family}/{index}"), draw_kinds.FAMILIES[family]
    kind = source.choices(kinds, [kind.weight for kind in kinds])[0]
    dtype, values = source.choice(kind.types), {}
    for name, parameter in kind.parameters.items():
        values[name] = parameter(source, values) if callable(parameter) else source.choice(parameter)
    return Drawn(family, kind.name, dtype, values, seed, index)


def points(seed, count=DEFAULT_COUNT):
    """Returns `count` programs of each family."""
    return [one(seed, family, index) for family in draw_kinds.FAMILIES for index in range(1, count + 1)]


def read_number(text, option, least, most):
    """Returns the whole number that an option has; ValueError with a clear text if it has none or one out of range."""
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        said = f"'{text}' is not" if text else "needs"
        raise ValueError(f"{option}: {said} a whole number from {least} to {most}, as in {option} 7")
    return int(text)
