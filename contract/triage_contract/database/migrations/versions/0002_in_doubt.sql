-- Calls in doubt: what is known of them, what was decided, and whether their process is known to be dead.

ALTER TABLE triage.attempts
    ADD COLUMN confirmed_at timestamptz;       -- since when its process is known to be dead; null: at most presumed

ALTER TABLE triage.tool_calls
    ADD COLUMN function_call_id text,          -- ADK's id of the call that began it last; null: the row's own up to "@"
    ADD COLUMN doubt text CHECK (doubt IN ('raised', 'unknown', 'not_happened')),
    ADD COLUMN doubt_message text,             -- what was raised or answered, for people, without secrets
    ADD COLUMN asked_confirmed boolean,        -- whether its process was known to be dead when its outside was asked
    ADD COLUMN cleared_by text CHECK (cleared_by IN ('reconcile', 'decision')), -- who said that it may run again
    ADD COLUMN settled_by text CHECK (settled_by IN ('reconcile', 'decision')); -- who knew its result

-- Sessions that were put right before ADK went on with them. Written by the agent, told by the operator.
CREATE TABLE triage.repairs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES triage.runs ON DELETE CASCADE,
    epoch bigint NOT NULL,
    call_id text,                  -- the call that was lost; null: it was about none
    message text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX repairs_by_run ON triage.repairs (run_id);

-- Whether the process that began a call last was known, at a time, to be able to do nothing more about it; null: now.
CREATE FUNCTION triage.is_confirmed(p_call triage.tool_calls, p_at timestamptz DEFAULT NULL) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(p_call.doubt = 'raised', false) OR EXISTS (
        SELECT FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
        WHERE r.app_name = p_call.app_name AND r.user_id = p_call.user_id AND r.session_id = p_call.session_id
            AND a.epoch = p_call.epoch AND a.confirmed_at <= coalesce(p_at, a.confirmed_at))
$$;

-- Answers a finished call from its row; marks any other as begun by this attempt. `is_begun` false: do not run it.
-- `p_may_repeat`: a call that began and did not end may run again, whether or not that was allowed for this one.
DROP FUNCTION triage.begin_call(integer, text, text, text, text, jsonb);
CREATE FUNCTION triage.begin_call(p_serial integer, p_token text, p_call_id text, p_tool text, p_kind text, p_args jsonb,
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
    PERFORM triage.count_up('duplicates_suppressed',
                            jsonb_build_object('namespace', run.namespace, 'tool', p_tool, 'where', 'journal'), 1);
    is_begun := false;
    result := call.result;
    actions := call.actions;
END $$;

-- Journals what became of a call that this attempt began. What its effect's own transaction noted is made complete.
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
    IF p_is_duplicate THEN
        PERFORM triage.count_up('duplicates_suppressed',
                                jsonb_build_object('namespace', run.namespace, 'tool', call.tool, 'where', 'tracker'), 1);
    END IF;
END $$;

-- Notes that a call which this attempt began ended in its process, and that nobody knows with what effect.
CREATE FUNCTION triage.doubt_call(p_serial integer, p_token text, p_call_id text, p_message text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    UPDATE triage.tool_calls c SET doubt = 'raised', doubt_message = p_message
    FROM triage.runs r
    WHERE r.id = attempt.run_id AND c.app_name = r.app_name AND c.user_id = r.user_id AND c.session_id = r.session_id
        AND c.call_id = p_call_id AND c.state = 'begun' AND c.epoch = attempt.epoch;
END $$;

-- Notes what its outside world says of a call in doubt. Gives whether it may run again: it did not happen, and the process
-- that began it was known to be dead at `p_asked_at`, before it was asked.
CREATE FUNCTION triage.settle_call(p_serial integer, p_token text, p_call_id text, p_settled text, p_result jsonb,
                                   p_message text, p_asked_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    call triage.tool_calls;
    confirmed boolean;
BEGIN
    SELECT c.* INTO call
        FROM triage.tool_calls c JOIN triage.runs r USING (app_name, user_id, session_id)
        WHERE r.id = attempt.run_id AND c.call_id = p_call_id AND c.state = 'begun'
        FOR UPDATE OF c;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'call % is not in doubt', p_call_id USING ERRCODE = 'TR001';
    END IF;
    confirmed := triage.is_confirmed(call, p_asked_at);
    UPDATE triage.tool_calls c
    SET state = CASE WHEN p_settled = 'happened' THEN 'settled' ELSE c.state END,
        settled_by = CASE WHEN p_settled = 'happened' THEN 'reconcile' END,
        result = CASE WHEN p_settled = 'happened' THEN p_result END,
        ended_at = CASE WHEN p_settled = 'happened' THEN clock_timestamp() END,
        doubt = CASE WHEN p_settled <> 'happened' THEN p_settled END,
        doubt_message = p_message,
        asked_confirmed = confirmed,
        cleared_by = CASE WHEN p_settled = 'not_happened' AND confirmed THEN 'reconcile' END
    WHERE c.app_name = call.app_name AND c.user_id = call.user_id AND c.session_id = call.session_id
        AND c.call_id = p_call_id;
    UPDATE triage.attempts a SET first_write_at = clock_timestamp() WHERE a.serial = p_serial AND a.first_write_at IS NULL;
    RETURN p_settled = 'not_happened' AND confirmed;
END $$;

CREATE FUNCTION triage.note_repair(p_serial integer, p_token text, p_call_id text, p_message text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    INSERT INTO triage.repairs (run_id, epoch, call_id, message)
        VALUES (attempt.run_id, attempt.epoch, p_call_id, p_message);
END $$;

-- Gives the token up, so that a successor can start while this process still ends. Refused while a call of it runs.
CREATE OR REPLACE FUNCTION triage.release(p_serial integer, p_token text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
BEGIN
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    -- First, since it waits for whoever is about to begin a call.
    UPDATE triage.fences f SET token = NULL
        WHERE f.app_name = run.app_name AND f.user_id = run.user_id AND f.session_id = run.session_id;
    IF EXISTS (SELECT FROM triage.tool_calls c
               WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
                   AND c.state = 'begun' AND c.doubt IS DISTINCT FROM 'raised' AND c.epoch = attempt.epoch) THEN
        RAISE EXCEPTION 'a call of attempt % still runs', p_serial USING ERRCODE = 'TR003';
    END IF;
    UPDATE triage.attempts SET released_at = clock_timestamp(), outcome = 'handed_off' WHERE serial = p_serial;
    PERFORM pg_notify('triage_released', run.id::text);
END $$;
