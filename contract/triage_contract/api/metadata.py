"""The part of ``metadata`` that the project reads."""

from pydantic import AwareDatetime

from triage_contract.api.base import ApiModel


class ObjectMeta(ApiModel):
    """Metadata of a stored object: what an API server always sets is required."""

    name: str
    """Name of the object."""
    namespace: str
    """Namespace of the object."""
    uid: str
    """Unique over all objects that ever were."""
    creation_timestamp: AwareDatetime
    """When the object was stored first."""
    generation: int = 0
    """Counts the changes of the spec."""
