"""Names on both sides of the line between operator and agent: labels, environment, channels.

Each group says who writes it and who reads it. None of them is ever renamed within an API version.
"""

from enum import StrEnum
from typing import Final

GROUP: Final = "triage-operator.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

AGENT_CONTAINER: Final = "agent"
"""Name of the one container whose end is the attempt's end. Written and read by the operator."""


class Label(StrEnum):
    """Labels on agent pods. Written by the operator, read by the operator and by people."""

    RUN_UID = f"{GROUP}/run-uid"
    EPOCH = f"{GROUP}/epoch"
    AGENT = f"{GROUP}/agent"
    REVISION = f"{GROUP}/revision"
    """A digest of what the agent gave to the pod: another one than now, and the pod is outdated."""
    MANAGED_BY = "app.kubernetes.io/managed-by"
    COMPONENT = "app.kubernetes.io/component"


class Annotation(StrEnum):
    """Annotations on agent pods. Written by the operator, read by people and by the cluster autoscaler."""

    RUN = f"{GROUP}/run"
    SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


MANAGER: Final = "triage-operator"
"""Value of ``Label.MANAGED_BY``, field manager of every write, reporting component of every Event."""


class AttemptEnv(StrEnum):
    """Environment of an agent process that works on one attempt. Written by the operator, read by the agent."""

    RUN_ID = "TRIAGE_RUN_ID"
    """The run's id, a UUID: the UID of the TriageRun."""
    EPOCH = "TRIAGE_EPOCH"
    """The attempt's epoch, a positive integer."""
    TOKEN = "TRIAGE_TOKEN"
    """The attempt's fence token. A secret for as long as the attempt is the current one."""
    DATABASE_URL = "TRIAGE_DATABASE_URL"
    """``postgresql://…``, possibly through a transaction pooler."""
    DATABASE_DIRECT_URL = "TRIAGE_DATABASE_DIRECT_URL"
    """A URL past the pooler, for locks and LISTEN; unset: the same as DATABASE_URL."""
    DATABASE_POOLER = "TRIAGE_DATABASE_POOLER"
    """``transaction`` where DATABASE_URL goes through a transaction pooler, else unset."""
    APP = "TRIAGE_APP"
    """``module:attribute`` of the ADK ``App``."""
    TOOLS = "TRIAGE_TOOLS"
    """A JSON object, tool name to ``ToolKind``, from the TriageAgent."""
    IN_DOUBT = "TRIAGE_IN_DOUBT"
    """An ``InDoubt``, from the TriageAgent; unset: ``Park``."""
    GRACE_SECONDS = "TRIAGE_GRACE_SECONDS"
    """Seconds between SIGTERM and SIGKILL."""
    HEARTBEAT_SECONDS = "TRIAGE_HEARTBEAT_SECONDS"
    """Seconds between two heartbeats."""
    MEMORY_LIMIT_BYTES = "TRIAGE_MEMORY_LIMIT_BYTES"
    """The container's memory limit in bytes when it was made, which may be raised since; unset: none."""
    TERMINATION_LOG = "TRIAGE_TERMINATION_LOG"
    """Path of the termination message; unset: ``/dev/termination-log``."""


class DocsEnv(StrEnum):
    """Settings of the docs-triage agent. Written by the operator or by hand, read by the agent."""

    MODEL = "DOCS_MODEL"
    """Model name; ``provider/name`` goes through LiteLLM, ``record:FILE:NAME`` and ``replay:FILE`` to a file."""
    MODEL_BASE_URL = "DOCS_MODEL_BASE_URL"
    """Base URL of the model's endpoint; unset: the provider's."""
    MODEL_API_KEY = "DOCS_MODEL_API_KEY"
    """API key; unset: whatever the provider's client reads by itself."""
    DB = "DOCS_DB"
    """Session database by hand: ``postgresql://…`` or ``sqlite:///FILE``."""
    TRACKER = "DOCS_TRACKER"
    """``postgres`` (in the session database), ``file:PATH`` or ``github:OWNER/NAME``."""
    GITHUB_TOKEN = "DOCS_GITHUB_TOKEN"
    """Token that may read and write the issues of ``github:OWNER/NAME``. A secret."""
    GITHUB_URL = "DOCS_GITHUB_URL"
    """URL of GitHub's REST API; unset: ``https://api.github.com``."""
    PATH = "DOCS_PATH"
    """Folder of Markdown pages; unset: the four pages that come with the package."""


class Channel(StrEnum):
    """LISTEN/NOTIFY channels."""

    RELEASED = "triage_released"
    """Payload: run id. Sent by the agent with release and finish, heard by the operator."""
    HANDOFF = "triage_handoff"
    """Payload: the attempt's serial. Sent by the operator, heard by the agent of that attempt."""


LIFE_LOCK_CLASS: Final = 0x74726961
"""First key of the advisory lock that a live attempt holds; the second is the attempt's serial."""

TOKEN_SETTING: Final = "triage.token"
"""Postgres setting in which a connection shows its token. Written by the agent, read by the fence trigger."""

FENCED_SQLSTATE: Final = "TR001"
"""SQLSTATE of a write that the fence refused. Raised by the database, read by the agent."""

REPLAYED_METADATA: Final = "triage_replayed"
"""Key in an ADK event's ``custom_metadata``: the event repeats a journaled reply or result, no progress."""

EFFECT_KEY_PREFIX: Final = "effect:"
"""What the journal's keys begin with that a tool chose itself; they hold in a whole session. Written by the agent."""

SCARCE_MEMORY: Final = 0.5
"""Share of its memory limit from which a process that dies without a word may have been killed for it.

The agent tells at once when it comes there and as it grows on; the operator waits for the kubelet's word on the cause
of such a death.
It is low, since one allocation can take the rest before the process can tell anything.
"""
