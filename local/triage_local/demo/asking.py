"""Asking the database until it says yes, for what it tells nobody by itself."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import TextClause
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_local.exceptions import PatienceError

PATIENCE_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 0.02


async def until_true(engine: AsyncEngine, question: TextClause, what: str, **params: Any) -> None:
    """Wait until a statement gives true.

    Args:
        engine: On the database.
        question: The statement: one row, one boolean.
        what: It asks for, in words.
        params: Of the statement.

    Raises:
        PatienceError: It stays false.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _answer(engine, question, params):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise PatienceError(f"waited {PATIENCE_SECONDS:.0f} s in vain: {what}") from None


async def _answer(engine: AsyncEngine, question: TextClause, params: Mapping[str, Any]) -> bool:
    async with engine.connect() as connection:
        return bool((await connection.execute(question, params)).scalar_one())
