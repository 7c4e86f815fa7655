"""Making values from a resource storable: JSON that Postgres takes."""

from collections.abc import Mapping
from typing import Any

from triage_contract.texts import storable_text


def storable(value: Any) -> Any:
    """Give JSON without what Postgres does not take in its strings and names."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
