"""One trial: a run whose processes are harmed, taken up again as an operator does, and judged by the ledger."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from chaos.answering import answer
from chaos.faults import Fault, Harm
from chaos.ledger import Ledger
from chaos.processes import Stage, Working
from chaos.shapes import NAMES, SHAPES
from triage_contract.database import deciding
from triage_contract.database.fence import NewAttempt, OpenedAttempt, close_fence, open_attempt
from triage_contract.database.reading import judge, read_run
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import RunState, Verdict
from triage_contract.verdict import DoubtfulCall, Judgement, Remedy

MAX_ATTEMPTS: Final = 8
"""More than any trial needs: who comes here makes no progress."""

_CONFIRM: Final = text(
    "UPDATE triage.attempts SET confirmed_at = clock_timestamp()"
    " WHERE run_id = :run_id AND epoch = :epoch AND confirmed_at IS NULL"
)
_ARGUMENTS: Final = text(
    "SELECT tool, args FROM triage.tool_calls WHERE session_id = :session_id AND call_id = :key"
)
_WRITTEN: Final = text(
    "SELECT (SELECT count(*) FROM public.events WHERE session_id = :session_id),"
    " (SELECT count(*) FROM triage.model_replies WHERE session_id = :session_id),"
    " (SELECT string_agg(call_id || state || coalesce(result::text, ''), ',' ORDER BY call_id)"
    "  FROM triage.tool_calls WHERE session_id = :session_id)"
)
# What an agent that starts over is given again is no second answer.
_ANSWERS: Final = text(
    "SELECT DISTINCT event_data ->> 'author', part ->> 'text',"
    " coalesce(event_data #>> '{custom_metadata,triage_reply}', id) FROM public.events,"
    " LATERAL jsonb_array_elements(event_data #> '{content,parts}') AS part"
    " WHERE session_id = :session_id AND event_data ->> 'author' <> 'user' AND part ? 'text'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run left: its effects by the ledger, its words, how often models were asked.

    ``steps`` says how often the first attempt came to each step; empty: it did not end by itself.
    """

    effects: Counter[str]
    answers: Counter[tuple[str, str]]
    asked: int
    steps: Mapping[str, int]


NOTHING: Final = Outcome(effects=Counter(), answers=Counter(), asked=0, steps={})


@dataclass(slots=True, kw_only=True)
class Trial:
    """A run of a shape, and the faults that its first attempts meet, one each.

    ``cold_kill_at``: its processes import anew, and the first is killed once the ledger has so many entries. None: they
    are forked.
    """

    shape: str
    faults: Sequence[Fault] = ()
    skew_seconds: float = 0.0
    twins: bool = False
    cold_kill_at: int | None = None
    attempts: int = 0
    parked: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        extra = [*(["a clock an hour off"] if self.skew_seconds else []), *(["twins"] if self.twins else [])]
        if self.cold_kill_at is not None:
            extra.append(f"a cold process killed at entry {self.cold_kill_at} of the ledger")
        return f"{self.shape}: {', '.join([*map(str, self.faults), *extra]) or 'undisturbed'}"


@dataclass(slots=True, kw_only=True)
class Play:
    """Carries a trial out, in the place of operator and person."""

    trial: Trial
    engine: AsyncEngine
    stage: Stage
    run: RunRow
    epoch: int = 0
    zombies: dict[int, Working] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, trial: Trial, *, engine: AsyncEngine, url: DatabaseUrl, folder: Path) -> "Play":
        """Set a trial up."""
        run_id = uuid4()
        run = RunRow(
            id=run_id,
            cluster_id="chaos",
            namespace="chaos",
            name=f"run-{run_id}",
            agent="chaos",
            session=SessionKey(app_name="chaos/chaos", user_id="triage", session_id=f"run-{run_id}"),
            invocation_id=f"inv-{run_id}",
            message={"parts": [{"text": "Go."}]},
            root=None,
            state=RunState.ACTIVE,
            reason=None,
            created_at=None,
            ended_at=None,
        )
        stage = Stage(app=f"chaos.shapes:{NAMES[trial.shape]}", url=url, ledger=folder / str(run_id))
        return cls(trial=trial, engine=engine, stage=stage, run=run)

    async def to_the_end(self) -> Outcome:
        """Carry on until the run is finished, or cannot be; whatever is wrong is noted in the trial."""
        faults = list(self.trial.faults)
        judgement: Judgement | None = None
        while judgement is None or judgement.verdict is not Verdict.FINISHED:
            if self.trial.attempts == MAX_ATTEMPTS:
                why = "no attempt" if judgement is None else f"{judgement.verdict}, {judgement.why}"
                self.trial.problems.append(f"lost: {why}")
                break
            if judgement is not None and judgement.verdict is Verdict.IN_DOUBT:
                await self._settle(judgement)
            elif judgement is not None and judgement.verdict is Verdict.WAITING:
                self.epoch = await answer(self.engine, self.run, self.epoch, judgement.calls, self.stage.url)
            elif judgement is not None and judgement.verdict in (Verdict.ABORTED, Verdict.UNKNOWN):
                self.trial.problems.append(f"lost: {judgement.verdict}")
                break
            await self._attempt(faults.pop(0) if faults else None)
            judgement = await self._judge()
        await self._wake_the_zombies()
        return await self._outcome()

    async def _attempt(self, fault: Fault | None) -> None:
        attempt = await open_attempt(
            self.engine,
            self.run,
            observed_epoch=self.epoch,
            attempt=NewAttempt(pod="pod", image=None, memory_limit_bytes=None),
        )
        self.epoch = attempt.epoch
        self.trial.attempts += 1
        if self.trial.cold_kill_at is not None:
            kill_at = self.trial.cold_kill_at if attempt.epoch == 1 else None
            await self.stage.run_cold(self.run, attempt, kill_at=kill_at)
            self.dead.add(attempt.epoch)
        else:
            await self._work(attempt, fault)
        await close_fence(self.engine, self.run.session, attempt.epoch)

    async def _work(self, attempt: OpenedAttempt, fault: Fault | None) -> None:
        skew = self.trial.skew_seconds if attempt.epoch % 2 == 0 else 0.0
        working = self.stage.start(self.run, attempt, fault=fault, skew_seconds=skew)
        twin = self.stage.start(self.run, attempt, fault=None) if self.trial.twins else None
        if fault is not None and fault.harm in (Harm.STOP, Harm.RACE) and await working.rang():
            self.zombies[attempt.epoch] = working
        else:
            await working.ended()
            self.dead.add(attempt.epoch)
        if twin is not None:
            await twin.ended()

    async def _judge(self) -> Judgement:
        async with self.engine.connect() as connection:
            row = await read_run(connection, self.run.id)
            assert row is not None
            self.run = row
            return await judge(connection, row)

    async def _settle(self, judgement: Judgement) -> None:
        """Wait for the old processes to end, then decide as a person does who looks at the world outside."""
        if all(doubt.remedy is Remedy.ASK for doubt in judgement.doubts):
            await self._confirm()
            return
        self.trial.parked += 1
        await self._end_the_zombies()
        await self._confirm()
        judgement = await self._judge()
        for doubt in judgement.doubts:
            if doubt.remedy is Remedy.PARK:
                await self._decide(doubt)

    async def _decide(self, doubt: DoubtfulCall) -> None:
        async with self.engine.begin() as connection:
            where = {"session_id": self.run.session.session_id, "key": doubt.key}
            tool, args = (await connection.execute(_ARGUMENTS, where)).one()
            effect = f"{tool} {next(iter(args.values()), '')}"
            happened = Ledger(self.stage.ledger).has(doubt.key) or (
                tool == "post" and Ledger(self.stage.ledger).has_effect(effect)
            )
            await deciding.carry_out(
                connection,
                self.run.session,
                fence=self.epoch,
                call=doubt.key,
                epoch=doubt.epoch,
                result={"decided": True} if happened else None,
            )

    async def _confirm(self) -> None:
        async with self.engine.begin() as connection:
            for epoch in self.dead:
                await connection.execute(_CONFIRM, {"run_id": self.run.id, "epoch": epoch})

    async def _end_the_zombies(self) -> None:
        for epoch, zombie in self.zombies.items():
            zombie.wake()
            await zombie.ended()
            self.dead.add(epoch)
        self.zombies.clear()

    async def _wake_the_zombies(self) -> None:
        before = await self._written()
        await self._end_the_zombies()
        if await self._written() != before:
            self.trial.problems.append("a fenced process wrote")

    async def _written(self) -> Any:
        async with self.engine.connect() as connection:
            where = {"session_id": self.run.session.session_id}
            return tuple((await connection.execute(_WRITTEN, where)).one())

    async def _outcome(self) -> Outcome:
        ledger = Ledger(self.stage.ledger)
        async with self.engine.connect() as connection:
            rows = await connection.execute(_ANSWERS, {"session_id": self.run.session.session_id})
            answers = Counter((author, said) for author, said, _ in rows)
        return Outcome(
            effects=ledger.effects(), answers=answers, asked=ledger.asked(), steps=self.stage.counts(1)
        )


def hold_against(trial: Trial, outcome: Outcome, undisturbed: Outcome) -> None:
    """Note in the trial whatever is not as in the undisturbed run."""
    twice, missing = outcome.effects - undisturbed.effects, undisturbed.effects - outcome.effects
    if twice:
        trial.problems.append(f"effects that happened again: {', '.join(sorted(twice))}")
    if missing:
        trial.problems.append(f"effects that are missing: {', '.join(sorted(missing))}")
    if outcome.answers != undisturbed.answers and not SHAPES[trial.shape].is_chatty:
        trial.problems.append(f"answers: {sorted(outcome.answers.elements())}")
    # A reply that was on its way when the process died was never seen by anybody.
    losses = len(trial.faults) + (trial.cold_kill_at is not None)
    # One that is overtaken or cut off may ask once more before it hears of it.
    losses += sum(fault.harm in (Harm.RACE, Harm.CUT, Harm.STOP) for fault in trial.faults)
    if outcome.asked > undisturbed.asked + losses * SHAPES[trial.shape].asked_at_once:
        trial.problems.append(f"models were asked {outcome.asked} times, not {undisturbed.asked}")


async def carry_out(trial: Trial, *, engine: AsyncEngine, url: DatabaseUrl, folder: Path) -> Outcome:
    """Carry a trial out."""
    play = Play.of(trial, engine=engine, url=url, folder=folder)
    try:
        return await play.to_the_end()
    finally:
        for zombie in play.zombies.values():
            zombie.kill()
            await zombie.ended()
