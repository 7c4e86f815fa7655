"""From a model's name to what an ADK agent takes as its model."""

import importlib
import os
import re
from pathlib import Path
from typing import Any, Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.genai.types import HttpOptions, HttpRetryOptions

from triage_agent.exceptions import ConfigurationError
from triage_agent.models.recording import RecordingModel
from triage_agent.models.replaying import ReplayModel
from triage_contract.names import DocsEnv

TIMEOUT_SECONDS: Final = 120.0
"""A reply that takes longer counts as none: without it the client waits for ever."""

_KEY_NAMES: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_ENTERPRISE_NAMES: Final = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")


def build_model(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> BaseLlm:
    """Make a model. A call that fails is never tried again in here: the run's own backoff decides that.

    Args:
        name: a Gemini model; ``provider/name`` for LiteLLM; ``record:FILE:NAME``, which is any of these with
            its replies kept in FILE; ``replay:FILE``, which answers from there.
        base_url: the endpoint; None: the provider's.
        api_key: a secret; None: what the provider's client finds by itself.
        timeout_seconds: how long to wait for one reply.

    Raises:
        ConfigurationError: no such model, or something that it needs is missing.
    """
    if name.startswith("replay:"):
        return ReplayModel(path=Path(name.removeprefix("replay:")))
    if name.startswith("record:"):
        file, _, inner = name.removeprefix("record:").partition(":")
        if not file or not inner or inner.startswith(("record:", "replay:")):
            raise ConfigurationError(f"{DocsEnv.MODEL} is {name!r}: expected record:FILE:NAME")
        folder = Path(file).resolve().parent
        if not folder.is_dir():
            raise ConfigurationError(f"{DocsEnv.MODEL} is {name!r}: there is no folder {folder}")
        model = build_model(inner, base_url=base_url, api_key=api_key, timeout_seconds=timeout_seconds)
        return RecordingModel(model=model.model, inner=model, path=Path(file))
    if "/" in name and not name.startswith("projects/"):
        return _build_litellm(name, base_url, api_key, timeout_seconds)
    return _build_gemini(name, base_url, api_key, timeout_seconds)


def _build_gemini(name: str, base_url: str | None, api_key: str | None, timeout_seconds: float) -> BaseLlm:
    # An endpoint of one's own may serve any name by Gemini's protocol.
    if not base_url and not any(re.fullmatch(pattern, name) for pattern in Gemini.supported_models()):
        raise ConfigurationError(
            f"{DocsEnv.MODEL} is {name!r}: expected a Gemini model, provider/name, record:FILE:NAME"
            " or replay:FILE"
        )
    found = (*_KEY_NAMES, *_ENTERPRISE_NAMES)
    if not api_key and not name.startswith("projects/") and not any(map(os.environ.get, found)):
        raise ConfigurationError(
            f"{DocsEnv.MODEL} is {name!r}, which needs a key: set {DocsEnv.MODEL_API_KEY} or {_KEY_NAMES[0]}"
        )
    options = HttpOptions(timeout=round(timeout_seconds * 1000))
    return Gemini(
        model=name,
        base_url=base_url or None,
        # With none at all the client sleeps up to 10 s after a lost connection and tries again by itself.
        retry_options=HttpRetryOptions(attempts=1),
        client_kwargs={"http_options": options, **({"api_key": api_key} if api_key else {})},
    )


def _build_litellm(name: str, base_url: str | None, api_key: str | None, timeout_seconds: float) -> BaseLlm:
    # LiteLLM would fetch a price list at import, and load a .env file.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        litellm: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise ConfigurationError(
            f"{DocsEnv.MODEL} is {name!r}, which needs LiteLLM: pip install 'triage-operator[agent,litellm]'"
        ) from error
    from google.adk.models.lite_llm import LiteLlm

    # Otherwise each error prints where to give feedback.
    litellm.suppress_debug_info = True
    return LiteLlm(
        model=name,
        timeout=timeout_seconds,
        # The first is LiteLLM's own, the second the one of the provider's client below it.
        num_retries=0,
        max_retries=0,
        **({"api_base": base_url} if base_url else {}),
        **({"api_key": api_key} if api_key else {}),
    )
