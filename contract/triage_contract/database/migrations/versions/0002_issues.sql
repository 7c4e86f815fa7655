-- Issues in the transaction of the journal: a call of the Postgres tracker is never in doubt.

-- Files an issue, or finds the one that the key has, and journals the call of this attempt as done.
CREATE FUNCTION triage.file_issue(p_serial integer, p_token text, p_call_id text, p_key text, p_title text, p_body text,
                                  OUT number bigint, OUT is_duplicate boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
    call triage.tool_calls;
    issue triage.issues;
BEGIN
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    SELECT c.* INTO call FROM triage.tool_calls c
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id AND c.state IN ('begun', 'done') AND c.epoch = attempt.epoch
        FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'call % was not begun by attempt %', p_call_id, p_serial USING ERRCODE = 'TR001';
    END IF;
    IF call.state = 'done' THEN
        -- Asked again by the same call, to which the answer was lost.
        number := (call.result ->> 'number')::bigint;
        is_duplicate := call.result ? 'duplicate_request';
        RETURN;
    END IF;
    -- A repeat updates, and takes no number from the sequence: a gap would look like an issue that is missing.
    UPDATE triage.issues i SET duplicates = i.duplicates + 1 WHERE i.key = p_key RETURNING i.* INTO issue;
    IF NOT FOUND THEN
        INSERT INTO triage.issues AS i (key, title, body, run_id) VALUES (p_key, p_title, p_body, run.id)
            ON CONFLICT (key) DO UPDATE SET duplicates = i.duplicates + 1
            RETURNING i.* INTO issue;
    END IF;
    -- A key belongs to a session: whoever shows that of another one neither learns of its issue nor touches it.
    IF EXISTS (SELECT FROM triage.runs r
               WHERE r.id = issue.run_id AND (r.app_name, r.user_id, r.session_id)
                   IS DISTINCT FROM (run.app_name, run.user_id, run.session_id)) THEN
        RAISE EXCEPTION 'the key belongs to another session' USING ERRCODE = 'insufficient_privilege';
    END IF;
    number := issue.number;
    is_duplicate := issue.duplicates > 0;
    UPDATE triage.tool_calls c
    SET state = 'done', actions = '{}', ended_at = clock_timestamp(),
        result = jsonb_build_object('number', issue.number)
            || CASE WHEN is_duplicate THEN '{"duplicate_request": true}' ELSE '{}' END::jsonb
    WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
        AND c.call_id = p_call_id;
    UPDATE triage.attempts a SET calls_done = a.calls_done + 1 WHERE a.serial = p_serial;
END $$;
