"""Database URLs: what is accepted, and how they are shown without their password."""

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote, unquote

from triage_contract.exceptions import DatabaseUrlError
from triage_contract.states import Pooler

_URL: Final = re.compile(
    r"(?P<driver>[\w+]+)://"
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<host>\[[^/?]+\]|[^/:?\[]+)?(?::(?P<port>\d*))?"
    r"(?:/(?P<database>[^?]*))?"
    r"(?P<options>\?.*)?"
)
"""A URL as SQLAlchemy reads it: a password may hold anything but ``@`` as it is."""


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
        url = _URL.fullmatch(self.dsn)
        assert url is not None
        host = (url["host"] or "localhost").strip("[]")
        return f"{host}:{url['port'] or 5432}/{unquote(url['database'] or '')}"

    def __repr__(self) -> str:
        return f"DatabaseUrl({self})"


def _libpq(dsn: str) -> str:
    """Give the URL as every driver reads it, with user, password and database quoted."""
    url = _URL.fullmatch(dsn.strip())
    if url is None:
        raise DatabaseUrlError(
            "the database URL cannot be read: expected postgresql://user:password@host:port/name"
        )
    if url["driver"].partition("+")[0] not in ("postgresql", "postgres"):
        raise DatabaseUrlError(
            f"the database URL begins with {url['driver']!r}: expected postgresql://user:password@host:port/name"
        )
    password = "" if url["password"] is None else f":{_quoted(url['password'])}"
    login = "" if url["user"] is None else f"{_quoted(url['user'])}{password}@"
    place = (url["host"] or "") + (f":{url['port']}" if url["port"] else "")
    database = "" if url["database"] is None else f"/{_quoted(url['database'], safe=' +/')}"
    return f"postgresql://{login}{place}{database}{url['options'] or ''}"


def _quoted(part: str, *, safe: str = " +") -> str:
    return quote(unquote(part), safe=safe)
