"""Which trials there are: a kill at every boundary of every shape, and samples of everything else."""

import random
from collections.abc import Iterator, Mapping
from typing import Final

from chaos.faults import Fault, Harm, Step
from chaos.trials import Trial

_SAMPLED: Final = (Harm.STOP, Harm.RACE, Harm.DRAIN, Harm.CUT)
_FEW: Final = 0.05
"""Share of the boundaries at which something else than a kill is tried, or a second kill."""

_HOUR_SECONDS: Final = 3600.0


def boundaries(counts: Mapping[str, int], harm: Harm) -> list[Fault]:
    """Give a fault before and after each execution of each step that an undisturbed attempt came to."""
    return [
        Fault(harm=harm, when=when, step=Step(step), nth=nth)
        for step, count in counts.items()
        for nth in range(1, count + 1)
        for when in ("before", "after")
    ]


def kills(counts: Mapping[str, int]) -> list[Fault]:
    """Give a kill for every state that a process can leave behind.

    What is there before a step that writes is what was there after the one before it.
    """
    return [
        fault
        for fault in boundaries(counts, Harm.KILL)
        if fault.when == "after" or fault.step in (Step.CLAIM, Step.EFFECT, Step.MODEL)
    ]


def plan(shape: str, counts: Mapping[str, int], *, chance: random.Random, sample: float) -> Iterator[Trial]:
    """Give the trials of a shape.

    ``sample`` is the share of the boundaries at which a kill is tried; the other trials go by it too.
    """
    everywhere = kills(counts)
    yield from (Trial(shape=shape, faults=(fault,)) for fault in _some(everywhere, sample, chance))
    few = _FEW * sample
    for harm in _SAMPLED:
        faults = _some(boundaries(counts, harm), few, chance)
        yield from (Trial(shape=shape, faults=(fault,)) for fault in faults)
    for fault in _some(everywhere, few, chance):
        second = chance.choice(everywhere)
        yield Trial(shape=shape, faults=(fault, second))
    for hours in (-1, 1):
        (fault,) = chance.sample(everywhere, 1)
        yield Trial(shape=shape, faults=(fault,), skew_seconds=hours * _HOUR_SECONDS)
    yield Trial(shape=shape, twins=True)


def _some(faults: list[Fault], share: float, chance: random.Random) -> list[Fault]:
    return chance.sample(faults, max(1, round(len(faults) * share)))
