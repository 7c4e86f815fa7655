-- The last lines that an attempt wrote, which outlive its pod. Not in the attempt's own row, which is written at each
-- heartbeat.
CREATE TABLE triage.log_tails (
    serial integer PRIMARY KEY REFERENCES triage.attempts ON DELETE CASCADE,
    tail text NOT NULL,
    told_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- As before; notes that whoever asks is not the current attempt any more, and did not give the fence up itself; and keeps
-- the last lines of any attempt, since those of one that was overtaken may tell why. The process cuts them; this is a stop.
DROP FUNCTION triage.heartbeat(integer, text, bigint, boolean);
CREATE FUNCTION triage.heartbeat(p_serial integer, p_token text, p_memory_used_bytes bigint, p_sigterm boolean,
                                 p_log_tail text DEFAULT NULL, OUT is_current boolean, OUT handoff_reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT f.token IS NOT NULL AND f.token = p_token AND f.epoch = a.epoch,
            CASE WHEN f.token = p_token THEN a.handoff_reason END
        INTO is_current, handoff_reason
        FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
            JOIN triage.fences f USING (app_name, user_id, session_id)
        WHERE a.serial = p_serial AND r.namespace = coalesce(triage.own_namespace(), r.namespace);
    IF is_current THEN
        UPDATE triage.attempts a
        SET heartbeat_at = clock_timestamp(), memory_used_bytes = p_memory_used_bytes,
            sigterm_at = CASE WHEN p_sigterm THEN coalesce(a.sigterm_at, clock_timestamp()) ELSE a.sigterm_at END
        WHERE a.serial = p_serial;
    END IF;
    is_current := coalesce(is_current, false);
    IF NOT is_current THEN
        UPDATE triage.attempts a SET fenced_at = clock_timestamp()
        FROM triage.runs r JOIN triage.fences f USING (app_name, user_id, session_id)
        WHERE a.serial = p_serial AND a.fenced_at IS NULL AND a.released_at IS NULL AND r.id = a.run_id
            AND r.namespace = coalesce(triage.own_namespace(), r.namespace)
            -- Not for whoever forged a token of the current one.
            AND (f.token IS NULL OR f.epoch <> a.epoch);
    END IF;
    IF p_log_tail IS NOT NULL THEN
        INSERT INTO triage.log_tails (serial, tail)
            SELECT a.serial, right(p_log_tail, 131072) FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
            WHERE a.serial = p_serial AND r.namespace = coalesce(triage.own_namespace(), r.namespace)
            ON CONFLICT (serial) DO UPDATE SET tail = excluded.tail, told_at = clock_timestamp();
    END IF;
END $$;
