"""Settings of the docs-triage agent, read once from its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from triage_agent.docs_triage import samples
from triage_agent.exceptions import ConfigurationError
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUrlError
from triage_contract.names import AttemptEnv, DocsEnv
from triage_contract.states import Pooler

DEFAULT_MODEL: Final = "gemini-3.5-flash"
"""What ADK 2.13 takes by itself."""

DEFAULT_TRACKER_FILE: Final = "file:issues.json"
"""By hand on SQLite, where there is no Postgres to file in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsSettings:
    """With what the agent works. ``DocsEnv`` says what the variables mean."""

    model: str = DEFAULT_MODEL
    model_base_url: str | None = None
    """None: the provider's endpoint."""
    model_api_key: str | None = field(default=None, repr=False)
    """None: whatever the provider's client finds."""
    pages: Path = samples.PAGES
    tracker: str
    github_token: str | None = field(default=None, repr=False)
    github_url: str | None = None
    """None: the public GitHub."""
    database: DatabaseUrl | None = None
    """Where the sessions are; None: not in Postgres."""
    run_id: UUID | None = None
    """The run that this process works on; None: by hand."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read ``DocsEnv``, and in a pod the database and the run of ``AttemptEnv``; empty is unset.

        Raises:
            ConfigurationError: a value cannot be read; the message names its variable.
        """
        database = _database(environment)
        path = environment.get(DocsEnv.PATH)
        run_id = environment.get(AttemptEnv.RUN_ID)
        try:
            run = UUID(run_id) if run_id else None
        except ValueError:
            raise ConfigurationError(f"{AttemptEnv.RUN_ID} is {run_id!r}, not a UUID") from None
        return cls(
            model=environment.get(DocsEnv.MODEL) or DEFAULT_MODEL,
            model_base_url=environment.get(DocsEnv.MODEL_BASE_URL) or None,
            model_api_key=environment.get(DocsEnv.MODEL_API_KEY) or None,
            pages=Path(path) if path else samples.PAGES,
            tracker=environment.get(DocsEnv.TRACKER) or ("postgres" if database else DEFAULT_TRACKER_FILE),
            # A file that became a Secret often ends in a newline.
            github_token=environment.get(DocsEnv.GITHUB_TOKEN, "").strip() or None,
            github_url=environment.get(DocsEnv.GITHUB_URL) or None,
            database=database,
            run_id=run,
        )


def _database(environment: Mapping[str, str]) -> DatabaseUrl | None:
    name = AttemptEnv.DATABASE_URL if environment.get(AttemptEnv.DATABASE_URL) else DocsEnv.DB
    url = environment.get(name, "")
    if not url or url.startswith("sqlite"):
        return None
    pooler = environment.get(AttemptEnv.DATABASE_POOLER) or Pooler.NONE
    try:
        return DatabaseUrl.parse(url, pooler=Pooler(pooler))
    except DatabaseUrlError as error:
        raise ConfigurationError(f"{name}: {error}") from error
    except ValueError:
        raise ConfigurationError(
            f"{AttemptEnv.DATABASE_POOLER} is {pooler!r}: expected 'transaction'"
        ) from None
