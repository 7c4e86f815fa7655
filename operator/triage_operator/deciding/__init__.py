"""Deciding: from a snapshot of a run to the one action that it calls for. Pure.

Policies about the open attempt look at pods, never at the verdict. Those about a run without an open attempt
look at the verdict, never at pods: it was read after the last attempt's fence was closed, so nothing can
change it any more. A loss therefore takes two passes, which follow each other at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from triage_operator.actions import Action, Wait
from triage_operator.deciding.agent import wait_for_agent
from triage_operator.deciding.awaiting_word import await_word
from triage_operator.deciding.cancelling import cancel
from triage_operator.deciding.carrying_out import carry_out
from triage_operator.deciding.cleaning_up import clean_up, clean_up_at
from triage_operator.deciding.closed import keep_closed
from triage_operator.deciding.confirming import confirm_death
from triage_operator.deciding.deadline import deadline_at, enforce_deadline
from triage_operator.deciding.doubting import fail_in_doubt
from triage_operator.deciding.falling_behind import stop_behind
from triage_operator.deciding.filling_cause import fill_cause
from triage_operator.deciding.finishing import finish
from triage_operator.deciding.giving_up import give_up
from triage_operator.deciding.leaving_node import leave_node
from triage_operator.deciding.losing_fence import lose_fenced
from triage_operator.deciding.losing_life import lose_silent, lose_silent_at
from triage_operator.deciding.losing_pod import lose_with_pod, lose_with_pod_at
from triage_operator.deciding.making_pod import make_pod
from triage_operator.deciding.opening import open_next
from triage_operator.deciding.pausing import pause
from triage_operator.deciding.policy import Alarm, Policy, earliest
from triage_operator.deciding.queueing import queue
from triage_operator.deciding.raising_memory import raise_memory, raise_memory_at
from triage_operator.deciding.refusing import refuse
from triage_operator.deciding.releasing import accept_release
from triage_operator.deciding.rolling_out import await_turn, remake, roll_out
from triage_operator.deciding.starting import enforce_start, enforce_start_at
from triage_operator.deciding.stopping import stop
from triage_operator.deciding.suspending import stay_suspended, suspend_attempt
from triage_operator.deciding.waiting import wait_for_person
from triage_operator.deciding.watching import watch
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

POLICIES: Final[Sequence[Policy]] = (
    # Nothing may rest on rows that are older than what they led to.
    stop_behind,
    # Ended attempts, before what goes by their causes (budget, memory) and by their deaths (calls in doubt).
    fill_cause,
    confirm_death,
    clean_up,
    # The open attempt. What it says of itself goes before everything that others say of it.
    accept_release,
    # The user's will goes before the pod's fate: a cancelled attempt is not a lost one.
    stop,
    lose_with_pod,
    lose_silent,
    lose_fenced,
    enforce_start,
    # Only an attempt that is not lost can be asked for anything.
    suspend_attempt,
    make_pod,
    leave_node,
    # Whatever an attempt hands off for, its successor is as the agent is now; so the node's fate goes first.
    remake,
    roll_out,
    raise_memory,
    await_turn,
    watch,
    # No attempt is open. What is over stays so.
    keep_closed,
    finish,
    cancel,
    enforce_deadline,
    # A decision goes before the agent's policy, which would leave nothing to decide about.
    carry_out,
    fail_in_doubt,
    refuse,
    # What holds the next attempt up, the user's will first.
    stay_suspended,
    wait_for_person,
    wait_for_agent,
    await_word,
    # The budget is a setting of the agent's, hence after it.
    give_up,
    pause,
    queue,
    open_next,
)

ALARMS: Final[Sequence[Alarm]] = (
    clean_up_at,
    deadline_at,
    lose_with_pod_at,
    lose_silent_at,
    enforce_start_at,
    raise_memory_at,
)


def decide(snapshot: Snapshot, settings: DecidingSettings) -> Action:
    """Give what the first policy that has something to say wants.

    A ``Wait`` ends at the latest when some policy would act by itself.
    """
    actions = (policy(snapshot, settings) for policy in POLICIES)
    # The last policy opens an attempt, and the one that waits for the agent stands before it.
    action = next(action for action in actions if action is not None)
    if not isinstance(action, Wait):
        return action
    alarms = (alarm(snapshot, settings) for alarm in ALARMS)
    coming = (alarm for alarm in alarms if alarm is not None and alarm > snapshot.now)
    return replace(action, until=earliest((action.until, *coming)))
