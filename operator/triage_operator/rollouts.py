"""Places of a rollout: how many runs of an agent are between two attempts for it. They are counted in the rows alone,
so that any number of workers, and of operators, take no more of them than there are."""

from collections.abc import Collection
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.rows import RunRow
from triage_contract.names import Channel
from triage_operator import statements


async def between(connection: AsyncConnection, run: RunRow) -> frozenset[str]:
    """Read the names of the other runs of a run's agent that are between two attempts for a rollout."""
    return frozenset((await connection.execute(statements.BETWEEN, _params(run))).scalars())


async def request(
    connection: AsyncConnection, run: RunRow, serial: int, *, places: int, resting: Collection[str]
) -> bool:
    """In a transaction, ask an attempt of a run to hand off for a rollout, if there is a place for it.

    Args:
        places: how many runs may be between two attempts.
        resting: names of runs that take none, since they do not go on by themselves.

    Returns whether it was asked.
    """
    params = {**_params(run), "serial": serial, "places": places, "resting": list(resting)}
    await connection.execute(statements.TAKE_TURN, params)
    asked = await connection.execute(statements.REQUEST_ROLLOUT, {**params, "channel": Channel.HANDOFF})
    return asked.first() is not None


def _params(run: RunRow) -> dict[str, Any]:
    return {"cluster_id": run.cluster_id, "namespace": run.namespace, "agent": run.agent, "id": run.id}
