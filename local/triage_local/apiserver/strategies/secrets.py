"""Secrets: plain text comes in, base64 is kept."""

import base64

from triage_local.apiserver.objects import Json
from triage_local.apiserver.strategies.base import Strategy


class SecretStrategy(Strategy):
    """Moves ``stringData`` into ``data``, and defaults the type."""

    def created(self, obj: Json) -> Json:
        """The secret as it is kept."""
        kept = {"type": "Opaque", **{key: value for key, value in obj.items() if key != "stringData"}}
        plain = obj.get("stringData") or {}
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in plain.items()}
        return {**kept, "data": {**obj.get("data", {}), **encoded}} if encoded else kept

    def updated(self, new: Json, old: Json) -> Json:
        """The same."""
        return self.created(new)
