"""The plugins of a run."""

from collections.abc import Mapping

from google.adk.plugins.base_plugin import BasePlugin

from triage_agent.replay.asking import AskingPlugin
from triage_agent.replay.calling import CallingPlugin
from triage_agent.replay.confirming import ConfirmingPlugin
from triage_agent.replay.ended_steps import EndedStepsPlugin
from triage_agent.replay.gate import Gate
from triage_agent.replay.journal import Journal
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.trouble import Trouble
from triage_contract.states import InDoubt, ToolKind


def replaying_plugins(
    *,
    journal: Journal,
    replies: ReplyBook,
    declared: Mapping[str, ToolKind],
    gate: Gate,
    trouble: Trouble,
    in_doubt: InDoubt = InDoubt.PARK,
) -> tuple[BasePlugin, ...]:
    """Make what stands around the model calls and the tool calls of one run, in the order in which ADK takes them.

    Args:
        journal: where replies and calls are kept.
        replies: the replies that earlier attempts left.
        declared: the kinds of tools by name from the TriageAgent.
        gate: what each call passes.
        trouble: where they note what went wrong.
        in_doubt: what is done about an undeclared call that began and may have happened.
    """
    return (
        EndedStepsPlugin(),
        AskingPlugin(journal=journal, replies=replies, gate=gate, trouble=trouble),
        ConfirmingPlugin(),
        CallingPlugin(journal=journal, declared=declared, in_doubt=in_doubt, gate=gate, trouble=trouble),
    )
