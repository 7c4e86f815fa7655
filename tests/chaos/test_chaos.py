"""A sample of what `make chaos` does, for every shape: one effect per intended call, one answer, nothing lost."""

import random
from collections import Counter

import pytest
from chaos.faults import Harm, Step
from chaos.planning import kills, plan
from chaos.running import Extent, run_trials
from chaos.shapes import SHAPES
from chaos.trials import Outcome, Trial, hold_against
from rich.console import Console
from rich.progress import Progress

from support.shapes import ACCEPTED


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(4))
async def test_killed_anywhere_it_ends_with_each_effect_once(part: int) -> None:
    progress = Progress(console=Console(quiet=True))
    shapes = [*SHAPES][part::4]
    extent = Extent(sample=0.05, cold=0, at_most=2)
    trials = await run_trials(shapes, extent, seed=random.randrange(1000), progress=progress)
    assert [f"{trial}: {problem}" for trial in trials for problem in trial.problems] == []
    assert len(trials) == 3 * len(shapes)


def test_every_accepted_shape_is_killed() -> None:
    assert [*SHAPES] == [shape.title for shape in ACCEPTED]


def test_there_is_a_kill_around_each_effect_and_after_each_write() -> None:
    faults = kills({Step.BEGIN: 2, Step.EFFECT: 1})
    assert [(fault.when, fault.step, fault.nth) for fault in faults] == [
        ("after", Step.BEGIN, 1),
        ("after", Step.BEGIN, 2),
        ("before", Step.EFFECT, 1),
        ("after", Step.EFFECT, 1),
    ]
    trials = [*plan("LoopAgent", {Step.BEGIN: 2}, chance=random.Random(1), sample=1.0)]
    assert {str(fault.harm) for trial in trials for fault in trial.faults} == {str(harm) for harm in Harm}


@pytest.mark.parametrize(
    ("effects", "answers", "asked", "problem"),
    [
        (["pay a", "pay a"], ["done"], 1, "effects that happened again: pay a"),
        ([], ["done"], 1, "effects that are missing: pay a"),
        (["pay a"], ["done", "done"], 1, "answers: [('docs', 'done'), ('docs', 'done')]"),
        (["pay a"], ["done"], 2, "models were asked 2 times, not 1"),
    ],
)
def test_what_is_wrong_is_said(effects: list[str], answers: list[str], asked: int, problem: str) -> None:
    def outcome(effects: list[str], answers: list[str], asked: int) -> Outcome:
        return Outcome(
            effects=Counter(effects), answers=Counter(("docs", it) for it in answers), asked=asked, steps={}
        )

    trial = Trial(shape="LoopAgent")
    hold_against(trial, outcome(effects, answers, asked), outcome(["pay a"], ["done"], 1))
    assert trial.problems == [problem]
