"""Database URLs: read as SQLAlchemy reads them, and shown without their secrets."""

import pytest
from sqlalchemy.engine import make_url

from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUrlError


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://host/name",
        "postgres://user@host/name",
        "postgresql+asyncpg://user:password@host:6432/name",
        "postgresql://user:p%40ss%2Fword@host/name",  # pragma: allowlist secret
        "postgresql://user:a/b#c?d:e+f g@host/name",
        "postgresql://us%20er:@host",
        "postgresql://user:password@[::1]:5432/name",
        "postgresql://user:password@/name?host=/run/postgresql",
        "postgresql://host:5432/a%20name?sslmode=verify-full",
    ],
)
def test_a_url_is_given_to_the_driver_as_sqlalchemy_would(given: str) -> None:
    url = DatabaseUrl.parse(f" {given}\n")
    read = make_url(given).set(drivername="postgresql")
    assert make_url(url.dsn) == read
    assert str(url) == f"{read.host or 'localhost'}:{read.port or 5432}/{read.database or ''}"


@pytest.mark.parametrize(
    "given",
    ["", "host/name", "postgresql:/host", "postgresql://host:port/name", "mysql://user:secret@host/name"],
)
def test_what_is_no_url_of_postgres_is_refused_without_telling_it(given: str) -> None:
    with pytest.raises(DatabaseUrlError) as refused:
        DatabaseUrl.parse(given)
    assert "secret" not in str(refused.value)
