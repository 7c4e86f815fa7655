"""What really happened: the tables of runs as they are, and the objects of the API server."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

Json = dict[str, Any]
Row = Mapping[Any, Any]

_TABLES: Final = ("runs", "attempts", "tool_calls", "model_replies", "repairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Rows of our schema as they are, and the TriageRuns and TriageAgents.

    Nothing of ``triage.totals``, from which the operator exports its counters, is in it.
    """

    runs: Sequence[Row]
    attempts: Sequence[Row]
    tool_calls: Sequence[Row]
    model_replies: Sequence[Row]
    repairs: Sequence[Row]
    objects: Sequence[Json]
    """The TriageRuns."""
    agents: Sequence[Json]
    """The TriageAgents."""

    def of(self, run: Row) -> tuple[Row, ...]:
        """Give the attempts of a run, the first one first."""
        mine = (attempt for attempt in self.attempts if attempt["run_id"] == run["id"])
        return tuple(sorted(mine, key=lambda attempt: int(attempt["epoch"])))

    def followed(self) -> Iterator[tuple[Row, Row, Row]]:
        """Give each attempt that came after another one: its run, the one before, and itself."""
        for run in self.runs:
            for before, after in pairwise(self.of(run)):
                yield run, before, after

    def run_of(self, row: Row) -> Row:
        """Give the run that a row belongs to, by its id or by its session."""
        if "run_id" in row:
            return next(run for run in self.runs if run["id"] == row["run_id"])
        key = ("app_name", "user_id", "session_id")
        return next(run for run in self.runs if all(run[column] == row[column] for column in key))


async def read_tables(engine: AsyncEngine, objects: Sequence[Json], agents: Sequence[Json]) -> Tables:
    """Read all rows in one snapshot.

    Args:
        engine: On the database.
        objects: The TriageRuns as they are.
        agents: The TriageAgents as they are.
    """
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="REPEATABLE READ")
        rows = {
            table: (await connection.execute(text(f"SELECT * FROM triage.{table}"))).mappings().all()
            for table in _TABLES
        }
    return Tables(**rows, objects=objects, agents=agents)
