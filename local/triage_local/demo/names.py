"""Names of the runs, as their manifests have them."""

from enum import StrEnum


class RunName(StrEnum):
    """What befalls a run."""

    KILLED = "killed-after-write"
    OUT_OF_MEMORY = "out-of-memory"
    DRAINED = "drained"
    OPERATOR_AWAY = "operator-away"
    HALF_DONE = "half-done"
    IN_DOUBT = "in-doubt"
    UNDISTURBED = "undisturbed"
