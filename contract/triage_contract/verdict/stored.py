"""The statements that read the events of one invocation, made small in the database.

Run them with the parameters ``app_name``, ``user_id``, ``session_id`` and ``invocation_id``; each row is an event
for ``event_facts``, in the order in which ADK reads them. They find the rows by ``idx_events_invocation``.
"""

import re
from typing import Final

PARAMETERS: Final = ("app_name", "user_id", "session_id", "invocation_id")

_INVOCATION: Final = """
    app_name = :app_name AND user_id = :user_id AND session_id = :session_id AND invocation_id = :invocation_id
"""

EVENTS: Final = f"""
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'id', id,
        'author', event -> 'author',
        'branch', event -> 'branch',
        'isolation_scope', event -> 'isolation_scope',
        'long_running_tool_ids', event -> 'long_running_tool_ids',
        'error_code', event -> 'error_code',
        'error_message', event -> 'error_message',
        'output', CASE WHEN event ? 'output' THEN to_jsonb(true) END,
        'actions', jsonb_build_object(
            'skip_summarization', event #> '{{actions,skip_summarization}}',
            'transfer_to_agent', event #> '{{actions,transfer_to_agent}}',
            'end_of_agent', event #> '{{actions,end_of_agent}}',
            'requested_tool_confirmations', (SELECT jsonb_object_agg(key, true) FROM jsonb_each(jsonb_path_query_first(
                event, '$.actions.requested_tool_confirmations ? (@.type() == "object")'))),
            'requested_auth_configs', (SELECT jsonb_object_agg(key, true) FROM jsonb_each(jsonb_path_query_first(
                event, '$.actions.requested_auth_configs ? (@.type() == "object")'))),
            'compaction', CASE WHEN event #> '{{actions,compaction}}' IS NOT NULL THEN to_jsonb(true) END,
            'agent_state', CASE WHEN event #> '{{actions,agent_state}}' IS NOT NULL THEN jsonb_build_object(
                'nodes', (SELECT jsonb_object_agg(key, jsonb_build_object('status', value -> 'status'))
                          FROM jsonb_each(jsonb_path_query_first(
                              event, '$.actions.agent_state.nodes ? (@.type() == "object")'
                          )))
            ) END
        ),
        'content', CASE WHEN event ? 'content' THEN jsonb_build_object(
            'parts', (SELECT jsonb_agg(CASE
                        WHEN part ? 'function_call' THEN jsonb_build_object('function_call', jsonb_build_object(
                            'id', part #> '{{function_call,id}}',
                            'name', part #> '{{function_call,name}}'
                        ))
                        WHEN part ? 'function_response' THEN jsonb_build_object(
                            'function_response', jsonb_build_object(
                                'id', part #> '{{function_response,id}}',
                                'name', part #> '{{function_response,name}}',
                                'response', CASE WHEN part #>> '{{function_response,name}}' = 'finish_task'
                                            THEN part #> '{{function_response,response}}' END
                            )
                        )
                        WHEN part ? 'executable_code' THEN '{{"executable_code": {{}}}}'
                        WHEN part ? 'code_execution_result' THEN '{{"code_execution_result": {{}}}}'
                        WHEN id = (SELECT id FROM events
                                   WHERE {_INVOCATION}
                                       AND event_data ->> 'author' <> 'user'
                                       AND event_data @? '$.content.parts[*] ? (@.text != "" && !(@.thought == true))'
                                   ORDER BY timestamp DESC, id DESC LIMIT 1)
                            THEN jsonb_build_object('text', part -> 'text', 'thought', part -> 'thought')
                        ELSE '{{}}'
                      END ORDER BY place)
                      FROM jsonb_array_elements(event #> '{{content,parts}}') WITH ORDINALITY p (part, place))
        ) END
    )) AS event
    -- Unpacked once: else each look at an event that holds a page decompresses the page.
    FROM events, LATERAL (SELECT event_data - '' AS event OFFSET 0) AS unpacked
    WHERE {_INVOCATION}
    ORDER BY timestamp, id
    """
"""What the rules need, and the text of the last event in which an agent says something: never a tool's result."""

EVENTS_PREPARED: Final = re.sub(r":(\w+)", lambda name: f"${PARAMETERS.index(name[1]) + 1}", EVENTS)
"""The same with the parameters by their place, as the driver prepares it; each event comes as text."""

WHOLE_EVENTS: Final = f"SELECT event_data AS event FROM events WHERE {_INVOCATION} ORDER BY timestamp, id"
"""The whole events, on SQLite: a session by hand is small, and in this process anyway."""

CALLS: Final = """
SELECT c.call_id AS key, coalesce(c.function_call_id, split_part(c.call_id, '@', 1)) AS id, c.tool, c.state, c.kind,
    c.epoch, triage.is_confirmed(c) AS confirmed, c.cleared_by IS NOT NULL AS cleared, c.doubt,
    coalesce(c.asked_confirmed, false) AS asked_confirmed
FROM triage.tool_calls c
WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id
    AND invocation_id = :invocation_id
ORDER BY begun_at
"""
"""The journaled calls of an invocation, each for ``CallFacts.from_row``."""
