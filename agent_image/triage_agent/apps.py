"""Loading the ADK ``App`` that a TriageAgent names, and how it wants to be run."""

import importlib
import sys
from pathlib import Path

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App

from triage_agent.exceptions import AgentError, AppError
from triage_agent.redacting import redacted


def load_app(name: str) -> App:
    """Import ``module:attribute``. The working directory is searched too, as ``python -m`` would.

    Raises:
        AppError: no such module or attribute, the import failed, or it is no ``App``. The message says which.
        AgentError: what the module itself says is wrong with its settings.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise AppError(f"app {name!r}: expected `module:attribute`")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
        app = getattr(module, attribute, None)
    except AgentError:
        raise  # says what is wrong better than "the import failed"
    except ModuleNotFoundError as error:
        raise AppError(f"app {name!r}: there is no module {error.name!r}") from error
    # A module of the user's can raise anything while it is imported, and each of these is its author's to mend.
    except (Exception, SystemExit) as error:
        raise AppError(
            redacted(f"app {name!r}: the import raised {type(error).__name__}: {error}")
        ) from error
    if app is None:
        raise AppError(f"app {name!r}: module {module_name!r} has no {attribute!r}")
    if not isinstance(app, App):
        raise AppError(f"app {name!r} is {_article(type(app).__name__)}, not a google.adk.apps.App")
    return app


def load_run_config(name: str) -> RunConfig | None:
    """Give ``run_config`` of the module that ``load_app`` imported; None: it has none, and ADK's default holds.

    Raises:
        AppError: it is no ``RunConfig``, or one for a live conversation, which cannot be taken up again.
    """
    module_name = name.partition(":")[0]
    config = getattr(sys.modules[module_name], "run_config", None)
    if config is None:
        return None
    if not isinstance(config, RunConfig):
        raise AppError(f"app {name!r}: run_config is {_article(type(config).__name__)}, not a RunConfig")
    if config.streaming_mode is StreamingMode.BIDI:
        raise AppError(
            f"app {name!r}: run_config asks for a live conversation, which no resume can go on with"
        )
    return config


def _article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
