"""The operator's SQL. ``store`` says who runs it and when."""

from typing import Final

from sqlalchemy import text

from triage_contract.states import ToolKind

ARGUMENTS_LENGTH: Final = 8192
"""Characters of a call's arguments that are read, more than are ever shown: secrets in them are masked later."""

_RUNNING: Final = """(
        SELECT count(*) FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
        WHERE a.ended_at IS NULL
            AND r.cluster_id = :cluster_id AND r.namespace = :namespace AND r.agent = :agent
    )"""

SUMMARY: Final = text(f"""
SELECT clock_timestamp() AS now,
    {_RUNNING} AS running,
    count(*) AS begun, count(*) FILTER (WHERE state <> 'begun') AS done,
    coalesce(sum(suppressed_by_journal), 0) AS suppressed_by_journal,
    coalesce(sum(suppressed_by_tracker), 0) AS suppressed_by_tracker,
    (array_agg(result ->> 'number' ORDER BY ended_at DESC)
        FILTER (WHERE tool = 'file_issue' AND state IN ('done', 'settled') AND result ->> 'number' IS NOT NULL)
    )[1] AS issue
FROM triage.tool_calls
WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id
    AND invocation_id = :invocation_id
""")
"""By the database's clock: how many attempts of the run's agent are open; the run's journaled calls, counted, and
the number of the last issue that one of them filed."""

JOURNAL: Final = text("""
SELECT call_id AS key, tool, kind, state, epoch, left(args::text, :length) AS arguments, begun_at, begun_times, doubt,
    doubt_message, cleared_by IS NOT NULL AS cleared, coalesce(settled_by = 'decision', false) AS decided
FROM triage.tool_calls
WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id AND invocation_id = :invocation_id
    AND (state = 'begun' OR call_id = ANY(:decided))
ORDER BY begun_at, call_id
""").bindparams(length=ARGUMENTS_LENGTH)
"""The calls of a run that did not end, and those of some keys."""

REPAIRS: Final = text("""
SELECT id, epoch, message FROM triage.repairs
WHERE run_id = :id AND created_at > clock_timestamp() - interval '1 hour' ORDER BY id
""")
"""The repairs of a run that were made as long ago as an API server keeps Events, or later."""

RECORD_POD: Final = text("""
WITH made AS (
    UPDATE triage.attempts a SET pod_uid = :pod_uid WHERE a.serial = :serial AND a.pod_uid IS NULL
    RETURNING a.run_id, a.epoch, a.memory_limit_bytes
), resumed AS (
    SELECT triage.run_labels(r) AS labels, coalesce(p.cause, nullif(p.outcome, 'lost')) AS cause, p.outcome,
        made.memory_limit_bytes > p.memory_limit_bytes AS is_bigger,
        extract(epoch FROM clock_timestamp() - p.ended_at)::double precision AS seconds
    FROM made JOIN triage.runs r ON r.id = made.run_id JOIN LATERAL (
        SELECT p.cause, p.outcome, p.memory_limit_bytes, p.ended_at FROM triage.attempts p
        WHERE p.run_id = made.run_id AND p.epoch < made.epoch ORDER BY p.epoch DESC LIMIT 1
    ) p ON true
)
SELECT CASE WHEN is_bigger THEN triage.count_up('memory_raises', labels || '{"how": "next_attempt"}', 1) END,
    CASE WHEN outcome = 'model_unavailable' THEN triage.count_up('model_wait_seconds', labels, seconds) END,
    CASE WHEN outcome = 'model_unavailable' THEN triage.count_up('model_waits', labels, 1) END,
    CASE WHEN cause IS NOT NULL THEN triage.count_up('resumes', labels || jsonb_build_object('cause', cause), 1) END
FROM resumed
""")
"""Records the pod of an attempt, once, and counts it as a resume where an attempt came before. After a loss whose cause
is not known yet, the resume is counted with the loss. Counts more memory, and a wait for the model, as well."""

RECORD_NODE: Final = text("""
UPDATE triage.attempts SET node = :node, scheduled_at = coalesce(CAST(:scheduled_at AS timestamptz), clock_timestamp())
WHERE serial = :serial AND node IS NULL
""")
"""Records the node of an attempt's pod, and since when it has it, once."""

RECORD_START: Final = text(
    "UPDATE triage.attempts SET started_at = :started_at WHERE serial = :serial AND started_at IS NULL"
)
"""Records, once, when the container of an attempt began to run."""

RECORD_RAISE: Final = text("""
WITH raised AS (
    UPDATE triage.attempts SET memory_limit_bytes = :memory_limit_bytes
    WHERE serial = :serial AND memory_limit_bytes < :memory_limit_bytes RETURNING run_id
)
SELECT triage.count_up('memory_raises', triage.run_labels(r) || '{"how": "in_place"}', 1)
FROM raised JOIN triage.runs r ON r.id = raised.run_id
""")
"""Records, once, and counts that a running attempt was given more memory."""

RENAME_POD: Final = text("UPDATE triage.attempts SET pod = :pod WHERE serial = :serial AND pod_uid IS NULL")
"""Records another name for a pod that was not made yet."""

END_ATTEMPT: Final = text("""
WITH ended AS (
    UPDATE triage.attempts a
    SET ended_at = clock_timestamp(), outcome = :outcome, cause = CAST(:cause AS text), counted = :counted,
        exit_code = CAST(:exit_code AS integer), error = coalesce(a.error, CAST(:message AS text)),
        confirmed_at = CASE WHEN :confirmed THEN clock_timestamp() END,
        lost_at = CASE WHEN CAST(:cause AS text) IS NOT NULL OR CAST(:outcome AS text) = 'lost'
            THEN coalesce(a.released_at, clock_timestamp()) END
    WHERE a.serial = :serial AND a.ended_at IS NULL
    RETURNING a.*
), labelled AS (
    SELECT e.*, r.app_name, r.user_id, r.session_id, r.invocation_id, triage.run_labels(r) AS labels
    FROM ended e JOIN triage.runs r ON r.id = e.run_id
)
SELECT CASE WHEN cause IS NOT NULL OR outcome <> 'lost' THEN triage.count_up('attempts',
        labels || jsonb_build_object('outcome', outcome, 'cause', coalesce(cause, '')), 1) END,
    (
        SELECT count(triage.count_up('calls_in_doubt_found', labels || jsonb_build_object('tool', tool), calls))
        FROM (
            SELECT c.tool, count(*) AS calls FROM triage.tool_calls c
            WHERE (c.app_name, c.user_id, c.session_id) = (l.app_name, l.user_id, l.session_id)
                AND c.epoch = l.epoch AND c.state = 'begun' AND c.cleared_by IS NULL
            GROUP BY c.tool ORDER BY c.tool
        ) doubted
    ),
    CASE WHEN cause IS NOT NULL THEN triage.count_up('losses', labels || jsonb_build_object('cause', cause), 1) END,
    (
        SELECT count(triage.observe('start_seconds', labels || jsonb_build_object('stage', stage),
            greatest(extract(epoch FROM at - created_at), 0)::double precision,
            CAST(:bounds AS double precision[])))
        FROM (VALUES ('claimed', claimed_at), ('first_write', first_write_at), ('scheduled', scheduled_at),
            ('started', started_at)) AS reached (stage, at)
        WHERE at IS NOT NULL
    )
FROM labelled l
""")
"""Ends an open attempt and counts it, the calls that it began and did not end, and how long its start took; one that
was lost for a reason not known yet is counted once that is known. A loss is dated back to where the attempt gave its
token up itself."""

FILL_CAUSE: Final = text("""
WITH before AS (
    SELECT serial, cause FROM triage.attempts WHERE serial = :serial FOR UPDATE
), filled AS (
    UPDATE triage.attempts a
    SET cause = CAST(:cause AS text), counted = :counted, exit_code = CAST(:exit_code AS integer),
        error = CAST(:message AS text),
        confirmed_at = coalesce(a.confirmed_at, CASE WHEN :confirmed THEN clock_timestamp() END)
    FROM before WHERE a.serial = before.serial
    RETURNING a.run_id, a.epoch, a.outcome, a.cause, before.cause AS cause_before
), labelled AS (
    SELECT triage.run_labels(r) || jsonb_build_object('cause', f.cause) AS labels, f.outcome, (
        SELECT n.pod_uid FROM triage.attempts n
        WHERE n.run_id = f.run_id AND n.epoch > f.epoch ORDER BY n.epoch LIMIT 1
    ) AS next_pod
    FROM filled f JOIN triage.runs r ON r.id = f.run_id WHERE f.cause_before IS NULL
)
SELECT triage.count_up('attempts', labels || jsonb_build_object('outcome', outcome), 1),
    triage.count_up('losses', labels, 1),
    CASE WHEN next_pod IS NOT NULL THEN triage.count_up('resumes', labels, 1) END
FROM labelled
""")
"""Corrects the cause of a lost attempt; if it had none before, counts attempt and loss, and the resume that it led
to."""

CONFIRM_DEATH: Final = text(
    "UPDATE triage.attempts SET confirmed_at = clock_timestamp() WHERE serial = :serial AND confirmed_at IS NULL"
)
"""Records, once, that the process of an attempt is known to be dead."""

_RECOVERIES = """
WITH recovered AS (
    UPDATE triage.attempts a SET recovery_counted = true
    FROM triage.runs r, LATERAL (
        SELECT p.lost_at, p.cause FROM triage.attempts p
        WHERE p.run_id = r.id ORDER BY p.epoch DESC OFFSET 1 LIMIT 1
    ) before
    WHERE r.id = a.run_id AND r.cluster_id = :cluster_id
        AND NOT a.recovery_counted AND a.first_write_at IS NOT NULL AND before.lost_at IS NOT NULL AND {which}
        AND a.epoch = (SELECT max(n.epoch) FROM triage.attempts n WHERE n.run_id = r.id)
    RETURNING r.namespace, r.name, a.epoch, r.app_name, r.user_id, r.session_id, r.invocation_id,
        triage.run_labels(r) AS labels, coalesce(before.cause, 'unknown') AS cause,
        greatest(extract(epoch FROM a.first_write_at - before.lost_at), 0)::double precision AS seconds
), spared AS (
    SELECT r.*, replies.*, calls.*
    FROM recovered r, LATERAL (
        SELECT count(*) AS replies, coalesce(sum(m.prompt_tokens), 0) AS prompt_tokens,
            coalesce(sum(m.output_tokens), 0) AS output_tokens, coalesce(sum(m.seconds), 0) AS model_seconds
        FROM triage.model_replies m
        WHERE (m.app_name, m.user_id, m.session_id) = (r.app_name, r.user_id, r.session_id)
            AND m.invocation_id = r.invocation_id AND m.epoch < r.epoch
    ) replies, LATERAL (
        SELECT coalesce(sum(extract(epoch FROM c.ended_at - c.begun_at)), 0) AS tool_seconds
        FROM triage.tool_calls c
        WHERE (c.app_name, c.user_id, c.session_id) = (r.app_name, r.user_id, r.session_id)
            AND c.invocation_id = r.invocation_id AND c.epoch < r.epoch AND c.state IN ('done', 'raised')
    ) calls
), counted AS (
    SELECT 'replies_replayed' AS name, labels, sum(replies) AS amount FROM spared GROUP BY labels
    UNION ALL
    SELECT 'seconds_saved', labels || '{{"kind": "model"}}', sum(model_seconds) FROM spared GROUP BY labels
    UNION ALL
    SELECT 'seconds_saved', labels || '{{"kind": "tool"}}', sum(tool_seconds) FROM spared GROUP BY labels
    UNION ALL
    SELECT 'tokens_saved', labels || '{{"kind": "output"}}', sum(output_tokens) FROM spared GROUP BY labels
    UNION ALL
    SELECT 'tokens_saved', labels || '{{"kind": "prompt"}}', sum(prompt_tokens) FROM spared GROUP BY labels
), counting AS MATERIALIZED (
    SELECT triage.count_up(name, labels, amount::double precision)
    FROM (SELECT * FROM counted WHERE amount > 0 ORDER BY name, labels) AS ordered -- to wait, not to deadlock
)
SELECT namespace, name, epoch, cause, seconds, replies, prompt_tokens + output_tokens AS tokens,
    model_seconds + tool_seconds AS seconds_saved, (SELECT count(*) FROM counting) AS counters,
    triage.observe('recovery_seconds', labels || jsonb_build_object('cause', cause), seconds,
        CAST(:bounds AS double precision[]))
FROM (SELECT * FROM spared ORDER BY labels, cause) AS ordered
"""

COUNT_OPEN_RECOVERIES: Final = text(
    _RECOVERIES.format(which="a.ended_at IS NULL AND before.cause IS NOT NULL")
)
"""Counts how long it took from a loss to the next attempt's first write, for open attempts that wrote, and what these
did not have to do again. Gives what it counted, run by run."""

COUNT_RECOVERY: Final = text(_RECOVERIES.format(which="a.serial = :serial"))
"""The same for one attempt, for good: with the cause ``unknown`` where none was found."""

REQUEST_HANDOFF: Final = text("""
WITH asked AS (
    UPDATE triage.attempts SET handoff_requested_at = clock_timestamp(), handoff_reason = :reason
    WHERE serial = :serial AND handoff_requested_at IS NULL AND ended_at IS NULL
    RETURNING serial
)
SELECT pg_notify(:channel, serial::text) FROM asked
""")
"""Asks an attempt, once, to release its fence, and tells its process so."""

_BETWEEN = """
SELECT r.name FROM triage.runs r
WHERE r.cluster_id = :cluster_id AND r.namespace = :namespace AND r.agent = :agent AND r.state = 'active'
    AND r.id <> :id AND EXISTS (
        SELECT FROM triage.attempts a WHERE a.run_id = r.id AND a.handoff_reason = 'rollout' AND NOT EXISTS (
            SELECT FROM triage.attempts n
            WHERE n.run_id = r.id AND n.epoch > a.epoch AND n.first_write_at IS NOT NULL
        )
    )
"""

BETWEEN: Final = text(_BETWEEN)
"""The other runs of an agent of which an attempt was asked to hand off for a rollout, and no later one has written
anything yet."""

TAKE_TURN: Final = text("""
SELECT pg_advisory_xact_lock(hashtext('triage.rollout'),
    hashtext(jsonb_build_array(CAST(:cluster_id AS text), CAST(:namespace AS text), CAST(:agent AS text))::text))
""")
"""Lets one transaction at a time count an agent's runs between two attempts and add one. In a statement of its own, so
that the next one sees what others have committed meanwhile."""

REQUEST_ROLLOUT: Final = text(f"""
WITH asked AS (
    UPDATE triage.attempts SET handoff_requested_at = clock_timestamp(), handoff_reason = 'rollout'
    WHERE serial = :serial AND handoff_requested_at IS NULL AND ended_at IS NULL
        AND (SELECT count(*) FROM ({_BETWEEN}) b WHERE b.name <> ALL(:resting)) < :places
    RETURNING serial
)
SELECT serial, pg_notify(:channel, serial::text) FROM asked
""")
"""Asks an attempt to hand off for a rollout, and tells its process so, while fewer runs than there are places are
between two attempts; those of some names take none."""

END_RUN: Final = text("""
WITH ended AS (
    INSERT INTO triage.runs (id, cluster_id, namespace, name, agent, app_name, user_id, session_id,
        invocation_id, state, reason, ended_at)
    VALUES (:id, :cluster_id, :namespace, :name, :agent, :app_name, :user_id, :session_id,
        :invocation_id, :state, :recorded, clock_timestamp())
    ON CONFLICT (id) DO UPDATE
        SET state = excluded.state, reason = excluded.reason, ended_at = excluded.ended_at
        WHERE runs.state = 'active'
    RETURNING id, state, triage.run_labels(runs) AS labels
), newest AS (
    SELECT a.outcome FROM triage.attempts a JOIN ended e ON a.run_id = e.id ORDER BY a.epoch DESC LIMIT 1
)
SELECT triage.observe('attempts_per_run', e.labels || jsonb_build_object('state', e.state), (
        SELECT count(*) FROM triage.attempts a WHERE a.run_id = e.id
    )::double precision, CAST(:bounds AS double precision[])),
    CASE WHEN e.state <> 'cancelled'
            AND EXISTS (SELECT FROM newest
                WHERE outcome IN ('lost', 'handed_off', 'failed', 'model_unavailable'))
        THEN triage.count_up('resumes_refused', e.labels || jsonb_build_object('reason', CAST(:reason AS text)), 1) END,
    triage.count_up('runs_ended',
        e.labels || jsonb_build_object('state', e.state, 'reason', CAST(:reason AS text)), 1)
FROM ended e
""")
"""Ends a run, a never recorded one as well, and counts it and its attempts; and a refused resume where an attempt was
lost."""

ACTIVE_RUNS: Final = text("""
SELECT r.*, newest.epoch, CASE WHEN newest.ended_at IS NULL THEN newest.serial END AS open_serial,
    CASE WHEN newest.ended_at IS NULL THEN newest.node END AS node
FROM triage.runs r LEFT JOIN LATERAL (
    SELECT a.serial, a.epoch, a.ended_at, a.node FROM triage.attempts a
    WHERE a.run_id = r.id ORDER BY a.epoch DESC LIMIT 1
) newest ON true
WHERE r.cluster_id = :cluster_id AND r.state = 'active'
    AND (CAST(:namespace AS text) IS NULL OR (r.namespace = :namespace AND r.name = :name))
""")
"""The runs of this cluster that are not over, or those of one name, each with its newest attempt."""

DUPLICATE_EFFECTS: Final = text("""
WITH filed AS (
    SELECT run_id, count(*) - 1 AS repeats FROM triage.issues
    WHERE created_at > clock_timestamp() - interval '1 day' GROUP BY run_id, title, body
)
SELECT triage.run_labels(r) AS labels, sum(filed.repeats)::double precision AS duplicates
FROM filed JOIN triage.runs r ON r.id = filed.run_id
WHERE r.cluster_id = :cluster_id GROUP BY triage.run_labels(r)
""")
"""How many issues of the Postgres tracker a run filed again, word for word, by agent."""

UNATTENDED: Final = text("""
SELECT r.namespace, r.name, extract(epoch FROM clock_timestamp()
    - coalesce(newest.ended_at, newest.heartbeat_at, newest.created_at, r.created_at))::double precision AS seconds
FROM triage.runs r LEFT JOIN LATERAL (
    SELECT * FROM triage.attempts a WHERE a.run_id = r.id ORDER BY a.epoch DESC LIMIT 1
) newest ON true
WHERE r.cluster_id = :cluster_id AND r.state = 'active' AND (
    newest.ended_at IS NOT NULL OR newest.claimed_at IS NULL
    OR newest.heartbeat_at < clock_timestamp() - make_interval(secs => :lapse_seconds)
)
""")
"""The runs that are not over and have no attempt that lives, and for how long."""

AGENT_FACTS: Final = text(f"""
WITH newest AS (
    SELECT app_name, user_id, session_id FROM triage.runs
    WHERE cluster_id = :cluster_id AND namespace = :namespace AND agent = :agent
    ORDER BY created_at DESC LIMIT 20
)
SELECT {_RUNNING} AS running,
    (
        SELECT root FROM triage.runs
        WHERE cluster_id = :cluster_id AND namespace = :namespace AND agent = :agent AND root IS NOT NULL
        ORDER BY created_at DESC LIMIT 1
    ) AS root,
    count(*) AS calls, array_agg(DISTINCT c.tool) FILTER (WHERE c.kind = :undeclared) AS undeclared
FROM newest JOIN triage.tool_calls c USING (app_name, user_id, session_id)
""").bindparams(undeclared=ToolKind.UNDECLARED.value)
"""What the rows say of an agent; of its tools those that its newest runs called, and in ``root`` those that its newest
run had. Tools that a server offers are known only once they are called."""

LOOK: Final = text("""
WITH locks AS MATERIALIZED (
    SELECT k.objid::bigint AS serial, t.namespace
    FROM pg_locks k JOIN pg_stat_activity s ON s.pid = k.pid LEFT JOIN triage.tenants t ON t.role = s.usename
    WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2 AND k.classid::bigint = :lock_class
        AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), claimed AS MATERIALIZED (
    SELECT a.*, a.serial IN (SELECT serial FROM locks WHERE namespace IS NULL)
        OR (a.serial, r.namespace) IN (SELECT serial, namespace FROM locks WHERE namespace IS NOT NULL) AS is_held
    FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
    WHERE a.ended_at IS NULL AND a.claimed_at IS NOT NULL AND r.cluster_id = :cluster_id
)
SELECT clock_timestamp() AS now,
    array_agg(serial) FILTER (WHERE is_held) AS held,
    array_agg(serial) FILTER (WHERE NOT is_held) AS free,
    array_agg(serial) FILTER (
        WHERE heartbeat_at < clock_timestamp() - make_interval(secs => :lapse_seconds)) AS silent,
    array_agg(serial) FILTER (WHERE released_at IS NOT NULL) AS released,
    array_agg(ARRAY[serial, memory_limit_bytes]) FILTER (
        WHERE memory_used_bytes >= memory_limit_bytes * CAST(:near_limit AS double precision)
    ) AS cramped,
    array_agg(serial) FILTER (WHERE epoch > 1 AND first_write_at IS NOT NULL) AS resumed
FROM claimed
""")
"""The claimed attempts by sign of life, all in one row. Advisory locks with two keys have the subid 2; what another
namespace's tenant holds counts for nothing. Locks are looked up by hash: Postgres takes them for few, and a join would
compare each with each attempt."""

END_HINDRANCES: Final = text("""
SELECT pg_terminate_backend(b.pid)
FROM pg_stat_activity w CROSS JOIN unnest(pg_blocking_pids(w.pid)) AS blocking (pid)
    JOIN pg_stat_activity b ON b.pid = blocking.pid JOIN triage.tenants t ON t.role = b.usename
WHERE w.usename = current_user AND w.wait_event_type = 'Lock'
    AND w.query_start < clock_timestamp() - make_interval(secs => :patience_seconds)
""")
"""Ends the tenants' connections for whose locks a statement of the operator's role, or a migration's, has waited so
long."""

RUNS_OF_ATTEMPTS: Final = text("""
SELECT r.namespace, r.name FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
WHERE a.serial = ANY(:serials)
""")
"""Which runs attempts belong to."""

RUN_BY_ID: Final = text("SELECT namespace, name FROM triage.runs WHERE id = :id AND cluster_id = :cluster_id")
"""Where a run is."""

TOTALS: Final = text("SELECT name, labels, value FROM triage.totals ORDER BY name, labels")
"""All counters."""
