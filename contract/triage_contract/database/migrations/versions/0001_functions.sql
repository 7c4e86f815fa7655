-- What an attempt may write. Each function runs as the owner of the schema, so that a role without any right to write
-- to the tables can call it, and each shows its token. TR001: fenced. TR002: already claimed. TR003: a call still runs.

CREATE FUNCTION triage.count_up(p_name text, p_labels jsonb, p_amount double precision) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO triage.totals (name, labels, value) VALUES (p_name, p_labels, p_amount)
    ON CONFLICT (name, labels) DO UPDATE SET value = triage.totals.value + excluded.value
$$;

-- The attempt behind a token, its fence row locked against a move until the transaction ends.
CREATE FUNCTION triage.current_attempt(p_serial integer, p_token text) RETURNS triage.attempts
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts;
    fence triage.fences;
BEGIN
    SELECT a.* INTO attempt FROM triage.attempts a WHERE a.serial = p_serial;
    SELECT f.* INTO fence FROM triage.fences f JOIN triage.runs r USING (app_name, user_id, session_id)
        WHERE r.id = attempt.run_id FOR SHARE OF f;
    -- Null on either side is a refusal, and so is no row at all.
    IF fence.token IS NULL OR p_token IS NULL OR fence.token <> p_token OR fence.epoch <> attempt.epoch THEN
        RAISE EXCEPTION 'attempt % is not the current one', p_serial USING ERRCODE = 'TR001';
    END IF;
    RETURN attempt;
END $$;

CREATE FUNCTION triage.guard_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    row_now record;
    session text;
    fence triage.fences;
    shown text := current_setting('triage.token', true);
BEGIN
    IF TG_OP = 'DELETE' THEN row_now := OLD; ELSE row_now := NEW; END IF;
    session := to_jsonb(row_now) ->> TG_ARGV[0];  -- the column that names the session
    -- Only the session that a row is in is looked at below: none may move out of a fenced one.
    IF TG_OP = 'UPDATE' AND (OLD.app_name, OLD.user_id, to_jsonb(OLD) ->> TG_ARGV[0])
            IS DISTINCT FROM (NEW.app_name, NEW.user_id, session) THEN
        RAISE EXCEPTION 'rows do not move between sessions' USING ERRCODE = 'TR001';
    END IF;
    SELECT f.* INTO fence FROM triage.fences f
        WHERE f.app_name = row_now.app_name AND f.user_id = row_now.user_id AND f.session_id = session FOR SHARE;
    IF NOT FOUND THEN
        RETURN row_now;  -- a session that no run ever touched
    END IF;
    IF fence.token IS NULL OR shown IS NULL OR fence.token <> shown THEN
        RAISE EXCEPTION 'session % belongs to another attempt', session USING ERRCODE = 'TR001';
    END IF;
    IF TG_TABLE_NAME = 'events' AND TG_OP = 'INSERT' THEN
        UPDATE triage.attempts a
        SET first_write_at = coalesce(a.first_write_at, clock_timestamp()),
            events = a.events + CASE
                WHEN NEW.event_data ->> 'author' = 'user' OR NEW.event_data ? 'error_code'
                    OR coalesce(NEW.event_data -> 'custom_metadata' ? 'triage_replayed', false) THEN 0 ELSE 1 END
        FROM triage.runs r
        WHERE r.app_name = NEW.app_name AND r.user_id = NEW.user_id AND r.session_id = NEW.session_id
            AND r.state = 'active' AND a.run_id = r.id AND a.epoch = fence.epoch;
    END IF;
    RETURN row_now;
END $$;

CREATE TRIGGER triage_guard BEFORE INSERT OR UPDATE OR DELETE ON public.events
    FOR EACH ROW EXECUTE FUNCTION triage.guard_session('session_id');
CREATE TRIGGER triage_guard BEFORE INSERT OR UPDATE OR DELETE ON public.sessions
    FOR EACH ROW EXECUTE FUNCTION triage.guard_session('id');

CREATE FUNCTION triage.serial_of(p_run_id uuid, p_epoch bigint) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.serial FROM triage.attempts a WHERE a.run_id = p_run_id AND a.epoch = p_epoch
$$;

CREATE FUNCTION triage.claim(p_serial integer, p_token text) RETURNS triage.runs
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
BEGIN
    UPDATE triage.attempts SET claimed_at = clock_timestamp(), heartbeat_at = clock_timestamp()
        WHERE serial = p_serial AND claimed_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'attempt % is claimed already', p_serial USING ERRCODE = 'TR002';
    END IF;
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    RETURN run;
END $$;

CREATE FUNCTION triage.record_root(p_serial integer, p_token text, p_root jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    UPDATE triage.runs SET root = p_root WHERE id = attempt.run_id AND root IS NULL;
END $$;

-- Says whether the attempt is still the current one, and the reason of a hand-off that was asked for.
CREATE FUNCTION triage.heartbeat(p_serial integer, p_token text, p_memory_used_bytes bigint, p_sigterm boolean,
                                 OUT is_current boolean, OUT handoff_reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT f.token IS NOT NULL AND f.token = p_token AND f.epoch = a.epoch, a.handoff_reason
        INTO is_current, handoff_reason
        FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
            JOIN triage.fences f USING (app_name, user_id, session_id)
        WHERE a.serial = p_serial;
    IF is_current THEN
        UPDATE triage.attempts a
        SET heartbeat_at = clock_timestamp(), memory_used_bytes = p_memory_used_bytes,
            sigterm_at = CASE WHEN p_sigterm THEN coalesce(a.sigterm_at, clock_timestamp()) ELSE a.sigterm_at END
        WHERE a.serial = p_serial;
    END IF;
    is_current := coalesce(is_current, false);
END $$;

-- Answers a finished call from its row; marks any other as begun by this attempt. `is_begun` false: do not run it.
CREATE FUNCTION triage.begin_call(p_serial integer, p_token text, p_call_id text, p_tool text, p_kind text, p_args jsonb,
                                  OUT is_begun boolean, OUT result jsonb, OUT actions jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
    call triage.tool_calls;
BEGIN
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE triage.attempts a SET first_write_at = coalesce(a.first_write_at, clock_timestamp()) WHERE a.serial = p_serial;
    INSERT INTO triage.tool_calls (app_name, user_id, session_id, call_id, invocation_id, tool, kind, args, state, epoch)
        VALUES (run.app_name, run.user_id, run.session_id, p_call_id, run.invocation_id, p_tool, p_kind, p_args, 'begun',
                attempt.epoch)
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        is_begun := true;
        RETURN;
    END IF;
    SELECT c.* INTO call FROM triage.tool_calls c
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id
        FOR UPDATE;
    IF call.state IN ('begun', 'gated') THEN
        UPDATE triage.tool_calls c
        SET state = 'begun', epoch = attempt.epoch, begun_times = c.begun_times + 1, kind = p_kind
        WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
            AND c.call_id = p_call_id;
        is_begun := true;
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

CREATE FUNCTION triage.end_call(p_serial integer, p_token text, p_call_id text, p_state text, p_result jsonb,
                                p_actions jsonb, p_is_duplicate boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
    call triage.tool_calls;
BEGIN
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE triage.tool_calls c
    SET state = p_state, result = p_result, actions = p_actions, ended_at = clock_timestamp(),
        suppressed_by_tracker = c.suppressed_by_tracker + p_is_duplicate::integer
    WHERE c.app_name = run.app_name AND c.user_id = run.user_id AND c.session_id = run.session_id
        AND c.call_id = p_call_id AND c.state = 'begun' AND c.epoch = attempt.epoch
    RETURNING c.* INTO call;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'call % was not begun by attempt %', p_call_id, p_serial USING ERRCODE = 'TR001';
    END IF;
    IF p_state IN ('done', 'raised') THEN
        UPDATE triage.attempts SET calls_done = calls_done + 1 WHERE serial = p_serial;
    END IF;
    IF p_is_duplicate THEN
        PERFORM triage.count_up('duplicates_suppressed',
                                jsonb_build_object('namespace', run.namespace, 'tool', call.tool, 'where', 'tracker'), 1);
    END IF;
END $$;

CREATE FUNCTION triage.store_reply(p_serial integer, p_token text, p_key text, p_reply jsonb, p_prompt_tokens bigint,
                                   p_output_tokens bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    INSERT INTO triage.model_replies (app_name, user_id, session_id, key, invocation_id, epoch, reply)
        SELECT r.app_name, r.user_id, r.session_id, p_key, r.invocation_id, attempt.epoch, p_reply
        FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE triage.attempts
    SET first_write_at = coalesce(first_write_at, clock_timestamp()), replies = replies + 1,
        prompt_tokens = prompt_tokens + p_prompt_tokens, output_tokens = output_tokens + p_output_tokens
    WHERE serial = p_serial;
END $$;

CREATE FUNCTION triage.replies_of(p_serial integer, p_token text) RETURNS TABLE (key text, reply jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    RETURN QUERY SELECT m.key, m.reply
        FROM triage.model_replies m JOIN triage.runs r USING (app_name, user_id, session_id, invocation_id)
        WHERE r.id = attempt.run_id ORDER BY m.created_at;
END $$;

-- Gives the token up, so that a successor can start while this process still ends. Refused while a call of it runs.
CREATE FUNCTION triage.release(p_serial integer, p_token text) RETURNS void
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
                   AND c.state = 'begun' AND c.epoch = attempt.epoch) THEN
        RAISE EXCEPTION 'a call of attempt % still runs', p_serial USING ERRCODE = 'TR003';
    END IF;
    UPDATE triage.attempts SET released_at = clock_timestamp(), outcome = 'handed_off' WHERE serial = p_serial;
    PERFORM pg_notify('triage_released', run.id::text);
END $$;

-- Ends the attempt with an outcome of its own, and gives the token up.
CREATE FUNCTION triage.finish(p_serial integer, p_token text, p_outcome text, p_error text,
                              p_retry_after_seconds double precision) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    UPDATE triage.fences f SET token = NULL FROM triage.runs r
        WHERE r.id = attempt.run_id AND f.app_name = r.app_name AND f.user_id = r.user_id
            AND f.session_id = r.session_id;
    UPDATE triage.attempts
    SET released_at = clock_timestamp(), outcome = p_outcome, error = p_error, retry_after_seconds = p_retry_after_seconds
    WHERE serial = p_serial;
    PERFORM pg_notify('triage_released', attempt.run_id::text);
END $$;
