-- Sessions in one round trip an event. TR005: another process wrote to the session since it was read. TR006: no session.
-- An attempt reads and writes its own session by these functions, and any other of its namespace as ADK does.

-- One function for each table: turning a whole row into JSON to find its session costs more than all else here.
DROP TRIGGER triage_guard ON public.events;
DROP TRIGGER triage_guard ON public.sessions;
DROP FUNCTION triage.guard_session();

-- Raises unless the current connection or transaction shows the token of a session; a session without a fence is free.
CREATE FUNCTION triage.guard(p_app_name text, p_user_id text, p_session_id text) RETURNS triage.fences
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fence triage.fences;
    shown text := current_setting('triage.token', true);
BEGIN
    SELECT f.* INTO fence FROM triage.fences f
        WHERE f.app_name = p_app_name AND f.user_id = p_user_id AND f.session_id = p_session_id FOR SHARE;
    -- Null on either side is a refusal.
    IF FOUND AND (fence.token IS NULL OR shown IS NULL OR fence.token <> shown) THEN
        RAISE EXCEPTION 'session % belongs to another attempt', p_session_id USING ERRCODE = 'TR001';
    END IF;
    RETURN fence;
END $$;

CREATE FUNCTION triage.guard_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM triage.guard(OLD.app_name, OLD.user_id, OLD.id);
        RETURN OLD;
    END IF;
    -- Only the session that a row is in is looked at below: none may move out of a fenced one.
    IF TG_OP = 'UPDATE' AND (OLD.app_name, OLD.user_id, OLD.id) IS DISTINCT FROM (NEW.app_name, NEW.user_id, NEW.id) THEN
        RAISE EXCEPTION 'rows do not move between sessions' USING ERRCODE = 'TR001';
    END IF;
    PERFORM triage.guard(NEW.app_name, NEW.user_id, NEW.id);
    RETURN NEW;
END $$;

CREATE FUNCTION triage.guard_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fence triage.fences;
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM triage.guard(OLD.app_name, OLD.user_id, OLD.session_id);
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.app_name, OLD.user_id, OLD.session_id)
            IS DISTINCT FROM (NEW.app_name, NEW.user_id, NEW.session_id) THEN
        RAISE EXCEPTION 'rows do not move between sessions' USING ERRCODE = 'TR001';
    END IF;
    fence := triage.guard(NEW.app_name, NEW.user_id, NEW.session_id);
    IF TG_OP = 'INSERT' AND fence.epoch IS NOT NULL THEN
        UPDATE triage.attempts a
        SET first_write_at = coalesce(a.first_write_at, clock_timestamp()),
            events = a.events + CASE
                WHEN NEW.event_data ->> 'author' = 'user' OR NEW.event_data ? 'error_code'
                    OR coalesce(NEW.event_data -> 'custom_metadata' ? 'triage_replayed', false) THEN 0 ELSE 1 END
        FROM triage.runs r
        WHERE r.app_name = NEW.app_name AND r.user_id = NEW.user_id AND r.session_id = NEW.session_id
            AND r.state = 'active' AND a.run_id = r.id AND a.epoch = fence.epoch;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER triage_guard BEFORE INSERT OR UPDATE OR DELETE ON public.sessions
    FOR EACH ROW EXECUTE FUNCTION triage.guard_session();
CREATE TRIGGER triage_guard BEFORE INSERT OR UPDATE OR DELETE ON public.events
    FOR EACH ROW EXECUTE FUNCTION triage.guard_event();

-- Creates the attempt's session unless it is there, and reads it without its events.
CREATE FUNCTION triage.open_session(p_serial integer, p_token text, p_now timestamp,
                                    OUT state jsonb, OUT app_state jsonb, OUT user_state jsonb, OUT update_time timestamp)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
BEGIN
    PERFORM set_config('triage.token', p_token, true);
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    INSERT INTO public.app_states AS a (app_name, state, update_time) VALUES (run.app_name, '{}', p_now)
        ON CONFLICT DO NOTHING;
    INSERT INTO public.user_states AS u (app_name, user_id, state, update_time)
        VALUES (run.app_name, run.user_id, '{}', p_now) ON CONFLICT DO NOTHING;
    INSERT INTO public.sessions AS s (app_name, user_id, id, state, create_time, update_time)
        VALUES (run.app_name, run.user_id, run.session_id, '{}', p_now, p_now) ON CONFLICT DO NOTHING;
    SELECT s.state, a.state, u.state, s.update_time INTO open_session.state, app_state, user_state, open_session.update_time
        FROM public.sessions s
            JOIN public.app_states a USING (app_name) JOIN public.user_states u USING (app_name, user_id)
        WHERE s.app_name = run.app_name AND s.user_id = run.user_id AND s.id = run.session_id;
END $$;

-- The attempt's session without its events; no row: there is none.
CREATE FUNCTION triage.read_session(p_serial integer, p_token text)
RETURNS TABLE (state jsonb, app_state jsonb, user_state jsonb, update_time timestamp)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    RETURN QUERY SELECT s.state, a.state, u.state, s.update_time
        FROM triage.runs r
            JOIN public.sessions s ON s.app_name = r.app_name AND s.user_id = r.user_id AND s.id = r.session_id
            LEFT JOIN public.app_states a ON a.app_name = r.app_name
            LEFT JOIN public.user_states u ON u.app_name = r.app_name AND u.user_id = r.user_id
        WHERE r.id = attempt.run_id;
END $$;

-- The events of the attempt's session in their order, as ADK's own service makes them of the columns.
CREATE FUNCTION triage.events_of(p_serial integer, p_token text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    -- Nearly all of them hold what the columns do, and need not be made anew.
    RETURN QUERY SELECT CASE
            WHEN e.event_data ->> 'id' = e.id AND e.event_data ->> 'invocation_id' = e.invocation_id
                AND e.event_data ? 'timestamp' THEN e.event_data
            ELSE jsonb_build_object('timestamp', extract(epoch FROM e.timestamp)) || coalesce(e.event_data, '{}')
                || jsonb_build_object('id', e.id, 'invocation_id', e.invocation_id)
        END::text
        FROM triage.runs r JOIN public.events e USING (app_name, user_id, session_id)
        WHERE r.id = attempt.run_id
        ORDER BY e.timestamp, e.id;
END $$;

-- Stores an event, and with it what it changes of the session's states.
-- `p_marker` is when the session was last written to as the writer knows it.
CREATE FUNCTION triage.append_event(p_serial integer, p_token text, p_marker timestamp, p_event_id text,
                                    p_invocation_id text, p_timestamp timestamp, p_event jsonb, p_state jsonb,
                                    p_app_state jsonb, p_user_state jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
    run triage.runs;
BEGIN
    PERFORM set_config('triage.token', p_token, true);
    SELECT r.* INTO run FROM triage.runs r WHERE r.id = attempt.run_id;
    UPDATE public.sessions s
    SET update_time = p_timestamp, state = CASE WHEN p_state IS NULL THEN s.state ELSE s.state || p_state END
    WHERE s.app_name = run.app_name AND s.user_id = run.user_id AND s.id = run.session_id AND s.update_time = p_marker;
    IF NOT FOUND THEN
        PERFORM FROM public.sessions s
            WHERE s.app_name = run.app_name AND s.user_id = run.user_id AND s.id = run.session_id;
        IF FOUND THEN
            RAISE EXCEPTION 'session % was written to since it was read', run.session_id USING ERRCODE = 'TR005';
        END IF;
        RAISE EXCEPTION 'there is no session %', run.session_id USING ERRCODE = 'TR006';
    END IF;
    IF p_app_state IS NOT NULL THEN
        INSERT INTO public.app_states AS a (app_name, state, update_time)
            VALUES (run.app_name, p_app_state, p_timestamp)
            ON CONFLICT (app_name) DO UPDATE SET state = a.state || p_app_state, update_time = p_timestamp;
    END IF;
    IF p_user_state IS NOT NULL THEN
        INSERT INTO public.user_states AS u (app_name, user_id, state, update_time)
            VALUES (run.app_name, run.user_id, p_user_state, p_timestamp)
            ON CONFLICT (app_name, user_id) DO UPDATE SET state = u.state || p_user_state, update_time = p_timestamp;
    END IF;
    INSERT INTO public.events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
        VALUES (p_event_id, run.app_name, run.user_id, run.session_id, p_invocation_id, p_timestamp, p_event);
END $$;

-- What the verdict needs of the attempt's journal, as `CALLS` gives it.
CREATE FUNCTION triage.calls_of(p_serial integer, p_token text)
RETURNS TABLE (key text, id text, tool text, state text, kind text, epoch bigint, confirmed boolean, cleared boolean,
               doubt text, asked_confirmed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    RETURN QUERY SELECT c.call_id, coalesce(c.function_call_id, split_part(c.call_id, '@', 1)), c.tool, c.state, c.kind,
            c.epoch, triage.is_confirmed(c), c.cleared_by IS NOT NULL, c.doubt, coalesce(c.asked_confirmed, false)
        FROM triage.runs r JOIN triage.tool_calls c USING (app_name, user_id, session_id, invocation_id)
        WHERE r.id = attempt.run_id ORDER BY c.begun_at;
END $$;

-- What the attempt's journal holds of a call in doubt, and what time it is: evidence that comes later is no evidence for
-- whoever was asked before.
CREATE FUNCTION triage.begun_call(p_serial integer, p_token text, p_call_id text,
                                  OUT args jsonb, OUT begun_at timestamptz, OUT asked_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts := triage.current_attempt(p_serial, p_token);
BEGIN
    SELECT c.args, c.begun_at, clock_timestamp() INTO begun_call.args, begun_call.begun_at, asked_at
        FROM triage.runs r JOIN triage.tool_calls c USING (app_name, user_id, session_id)
        WHERE r.id = attempt.run_id AND c.call_id = p_call_id;
END $$;
