-- What a reply cost, so that a resume can tell what it did not pay twice; and the parts of an attempt's start.
ALTER TABLE triage.model_replies
    ADD COLUMN prompt_tokens bigint,
    ADD COLUMN output_tokens bigint,
    ADD COLUMN seconds double precision;       -- that the model took
ALTER TABLE triage.attempts
    ADD COLUMN scheduled_at timestamptz,       -- the pod had a node
    ADD COLUMN started_at timestamptz,         -- the agent's container ran
    ADD COLUMN fenced_at timestamptz;          -- its process learned that it was not the current one

-- What is counted by agent was counted by namespace alone: an unknown agent is the empty text.
UPDATE triage.totals SET labels = labels || '{"agent": ""}' WHERE NOT labels ? 'agent';

CREATE FUNCTION triage.run_labels(p_run triage.runs) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('namespace', p_run.namespace, 'agent', p_run.agent)
$$;

-- Counts a value into a histogram: each bucket that it falls into, and the sum. In the order in which all do it, for two
-- that count at once to wait, not to deadlock.
CREATE FUNCTION triage.observe(p_name text, p_labels jsonb, p_value double precision, p_bounds double precision[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    bound double precision;
BEGIN
    FOREACH bound IN ARRAY p_bounds || 'Infinity'::double precision LOOP
        IF p_value <= bound THEN
            PERFORM triage.count_up(
                p_name || '_bucket',
                p_labels || jsonb_build_object('le', CASE WHEN bound = 'Infinity' THEN '"+Inf"' ELSE to_jsonb(bound) END),
                1);
        END IF;
    END LOOP;
    PERFORM triage.count_up(p_name || '_sum', p_labels, p_value);
END $$;

-- Counted where the rows change, whoever changes them.

CREATE FUNCTION triage.count_run() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM triage.count_up('runs_created', triage.run_labels(NEW), 1);
    RETURN NULL;
END $$;
CREATE TRIGGER triage_count AFTER INSERT ON triage.runs FOR EACH ROW EXECUTE FUNCTION triage.count_run();

CREATE FUNCTION triage.count_repair() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM triage.count_up('repairs', triage.run_labels(r), 1) FROM triage.runs r WHERE r.id = NEW.run_id;
    RETURN NULL;
END $$;
CREATE TRIGGER triage_count AFTER INSERT ON triage.repairs FOR EACH ROW EXECUTE FUNCTION triage.count_repair();

CREATE FUNCTION triage.count_refusal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM triage.count_up('fence_refusals', triage.run_labels(r), 1) FROM triage.runs r WHERE r.id = NEW.run_id;
    RETURN NULL;
END $$;
CREATE TRIGGER triage_count AFTER UPDATE OF fenced_at ON triage.attempts FOR EACH ROW
    WHEN (OLD.fenced_at IS NULL AND NEW.fenced_at IS NOT NULL) EXECUTE FUNCTION triage.count_refusal();

CREATE FUNCTION triage.count_call() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    labels jsonb := (
        SELECT triage.run_labels(r) FROM triage.runs r
        WHERE r.app_name = NEW.app_name AND r.user_id = NEW.user_id AND r.session_id = NEW.session_id
        ORDER BY r.created_at DESC LIMIT 1);
BEGIN
    IF NEW.suppressed_by_journal > OLD.suppressed_by_journal THEN
        PERFORM triage.count_up('duplicates_suppressed', labels || jsonb_build_object('tool', NEW.tool, 'where', 'journal'),
                                NEW.suppressed_by_journal - OLD.suppressed_by_journal);
    END IF;
    IF NEW.suppressed_by_tracker > OLD.suppressed_by_tracker THEN
        PERFORM triage.count_up('duplicates_suppressed', labels || jsonb_build_object('tool', NEW.tool, 'where', 'tracker'),
                                NEW.suppressed_by_tracker - OLD.suppressed_by_tracker);
    END IF;
    IF NEW.settled_by = 'decision' AND OLD.settled_by IS DISTINCT FROM 'decision' THEN
        PERFORM triage.count_up('decisions', labels || '{"action": "Done"}', 1);
    END IF;
    IF NEW.cleared_by = 'decision' AND OLD.cleared_by IS DISTINCT FROM 'decision' THEN
        PERFORM triage.count_up('decisions', labels || '{"action": "RunAgain"}', 1);
    END IF;
    RETURN NULL;
END $$;
CREATE INDEX runs_by_session ON triage.runs (app_name, user_id, session_id, created_at);
CREATE TRIGGER triage_count AFTER UPDATE ON triage.tool_calls FOR EACH ROW
    WHEN (NEW.suppressed_by_journal > OLD.suppressed_by_journal OR NEW.suppressed_by_tracker > OLD.suppressed_by_tracker
        OR NEW.settled_by IS DISTINCT FROM OLD.settled_by OR NEW.cleared_by IS DISTINCT FROM OLD.cleared_by)
    EXECUTE FUNCTION triage.count_call();

-- As before, without counting.
CREATE OR REPLACE FUNCTION triage.begin_call(p_serial integer, p_token text, p_call_id text, p_tool text, p_kind text, p_args jsonb,
                                  p_function_call_id text DEFAULT NULL, p_may_repeat boolean DEFAULT true,
                                  OUT is_begun boolean, OUT result jsonb, OUT actions jsonb, OUT is_in_doubt boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
    call triage.tool_calls;
BEGIN
    is_begun := true;
    is_in_doubt := false;
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE triage.attempts a SET first_write_at = clock_timestamp() WHERE a.serial = p_serial AND a.first_write_at IS NULL;
    INSERT INTO triage.tool_calls (app_name, user_id, session_id, call_id, invocation_id, tool, kind, args, state, epoch,
                                   function_call_id)
        VALUES (run.app_name, run.user_id, run.session_id, p_call_id, run.invocation_id, p_tool, p_kind, p_args, 'begun',
                attempt.epoch, p_function_call_id)
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT c.* INTO call FROM triage.tool_calls c
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id
        FOR UPDATE;
    IF call.state = 'begun' AND call.cleared_by IS NULL AND NOT p_may_repeat THEN
        -- Another invocation may have begun it under the same explicit key: from now on it is this one that waits.
        UPDATE triage.tool_calls c SET invocation_id = run.invocation_id, function_call_id = p_function_call_id
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id;
        is_begun := false;
        is_in_doubt := true;
        RETURN;
    END IF;
    IF call.state IN ('begun', 'gated') THEN
        UPDATE triage.tool_calls c
        SET state = 'begun', epoch = attempt.epoch, begun_times = c.begun_times + 1, kind = p_kind,
            begun_at = clock_timestamp(), invocation_id = run.invocation_id, function_call_id = p_function_call_id,
            doubt = NULL, doubt_message = NULL, asked_confirmed = NULL, cleared_by = NULL,
            -- What a gate left of it is no part of what it does now.
            result = NULL, actions = NULL, ended_at = NULL
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id;
        RETURN;
    END IF;
    UPDATE triage.tool_calls c SET suppressed_by_journal = c.suppressed_by_journal + 1
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id;
    is_begun := false;
    result := call.result;
    actions := call.actions;
END $$;

CREATE OR REPLACE FUNCTION triage.end_call(p_serial integer, p_token text, p_call_id text, p_state text, p_result jsonb,
                                           p_actions jsonb, p_is_duplicate boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
    call triage.tool_calls;
BEGIN
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    SELECT c.* INTO call FROM triage.tool_calls c
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id AND c.state IN ('begun', 'done') AND c.epoch = attempt.epoch
        FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'call % was not begun by attempt %', p_call_id, p_serial USING ERRCODE = 'TR001';
    END IF;
    UPDATE triage.tool_calls c
    SET state = p_state, result = p_result, actions = p_actions, ended_at = clock_timestamp(),
        suppressed_by_tracker = c.suppressed_by_tracker + p_is_duplicate::integer
    WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
        AND c.call_id = p_call_id;
    IF call.state = 'begun' AND p_state IN ('done', 'raised') THEN
        UPDATE triage.attempts SET calls_done = calls_done + 1 WHERE serial = p_serial;
    END IF;
END $$;

-- As before; and what the reply cost.
DROP FUNCTION triage.store_reply(integer, text, text, jsonb, bigint, bigint);
CREATE FUNCTION triage.store_reply(p_serial integer, p_token text, p_key text, p_reply jsonb, p_prompt_tokens bigint,
                                   p_output_tokens bigint, p_seconds double precision DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    INSERT INTO triage.model_replies (app_name, user_id, session_id, key, invocation_id, epoch, reply, prompt_tokens,
                                      output_tokens, seconds)
        SELECT r.app_name, r.user_id, r.session_id, p_key, r.invocation_id, attempt.epoch, p_reply, p_prompt_tokens,
            p_output_tokens, p_seconds
        FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE triage.attempts
    SET first_write_at = coalesce(first_write_at, clock_timestamp()), replies = replies + 1,
        prompt_tokens = prompt_tokens + p_prompt_tokens, output_tokens = output_tokens + p_output_tokens
    WHERE serial = p_serial;
END $$;
