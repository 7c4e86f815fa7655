"""Database URLs: what is accepted, and how they are shown without their password."""

from dataclasses import dataclass
from typing import Self

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from triage_contract.exceptions import DatabaseUrlError
from triage_contract.states import Pooler


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrl:
    """Where Postgres is.

    ``dsn`` is a libpq URL (``postgresql://user:password@host:port/database?sslmode=…``) and a secret; ``str()`` of this
    object shows neither user nor password nor options. ``direct_dsn`` goes past a pooler; None: there is no such way.
    """

    dsn: str
    direct_dsn: str | None
    pooler: Pooler

    @classmethod
    def parse(cls, dsn: str, *, direct_dsn: str | None = None, pooler: Pooler = Pooler.NONE) -> Self:
        """Check both URLs; without a pooler the direct one is the same.

        Raises:
            DatabaseUrlError: not a PostgreSQL URL. The message holds no part of it.
        """
        if pooler is Pooler.NONE and direct_dsn is None:
            direct_dsn = dsn
        return cls(
            dsn=_libpq(dsn), direct_dsn=None if direct_dsn is None else _libpq(direct_dsn), pooler=pooler
        )

    def __str__(self) -> str:
        url = make_url(self.dsn)
        return f"{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"

    def __repr__(self) -> str:
        return f"DatabaseUrl({self})"


def _libpq(dsn: str) -> str:
    try:
        url = make_url(dsn.strip())
    except (ArgumentError, ValueError):
        raise DatabaseUrlError(
            "the database URL cannot be read: expected postgresql://user:password@host:port/name"
        ) from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseUrlError(
            f"the database URL begins with {url.drivername!r}: expected postgresql://user:password@host:port/name"
        )
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
