-- A role for each namespace. Whoever connects as one, a stolen credential included, reaches the runs and sessions of its
-- namespace alone: ours by functions that want an attempt's token, ADK's by row security.

CREATE TABLE triage.tenants (
    role name PRIMARY KEY,
    namespace text NOT NULL
);

-- The namespace of whoever is connected, the session's user, since SET ROLE does not change that. Null, and no limit: who may
-- read the fences anyhow, as the owner and an operator may, and who has nothing to do with our schema. Empty, and none: a
-- tenant that was renamed or lost its row.
CREATE FUNCTION triage.own_namespace() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(
        (SELECT t.namespace FROM triage.tenants t WHERE t.role = session_user),
        CASE WHEN has_schema_privilege(session_user, 'triage', 'USAGE')
                AND NOT has_table_privilege(session_user, 'triage.fences', 'SELECT') THEN '' END)
$$;

-- The attempt behind a token, its fence row locked against a move until the transaction ends.
CREATE OR REPLACE FUNCTION triage.current_attempt(p_serial integer, p_token text) RETURNS triage.attempts
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attempt triage.attempts;
    fence triage.fences;
BEGIN
    SELECT a.* INTO attempt FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
        WHERE a.serial = p_serial AND r.namespace = coalesce(triage.own_namespace(), r.namespace);
    SELECT f.* INTO fence FROM triage.fences f JOIN triage.runs r USING (app_name, user_id, session_id)
        WHERE r.id = attempt.run_id FOR SHARE OF f;
    -- Null on either side is a refusal, and so is no row at all.
    IF fence.token IS NULL OR p_token IS NULL OR fence.token <> p_token OR fence.epoch <> attempt.epoch THEN
        RAISE EXCEPTION 'attempt % is not the current one', p_serial USING ERRCODE = 'TR001';
    END IF;
    RETURN attempt;
END $$;

CREATE OR REPLACE FUNCTION triage.serial_of(p_run_id uuid, p_epoch bigint) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.serial FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id
    WHERE a.run_id = p_run_id AND a.epoch = p_epoch AND r.namespace = coalesce(triage.own_namespace(), r.namespace)
$$;

-- Says whether the attempt is still the current one, and the reason of a hand-off that was asked for.
CREATE OR REPLACE FUNCTION triage.heartbeat(p_serial integer, p_token text, p_memory_used_bytes bigint, p_sigterm boolean,
                                            OUT is_current boolean, OUT handoff_reason text)
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
END $$;

-- The owner, and roles of other applications with ADK, see what they saw before.
DO $$
DECLARE
    adk_table text;
BEGIN
    FOREACH adk_table IN ARRAY ARRAY['app_states', 'user_states', 'sessions', 'events'] LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', adk_table);
        -- Subqueries are evaluated once in a statement, not for each row.
        EXECUTE format(
            'CREATE POLICY triage_tenant ON public.%I USING ((SELECT triage.own_namespace()) IS NULL'
            ' OR starts_with(app_name, (SELECT triage.own_namespace()) || ''/''))', adk_table);
    END LOOP;
END $$;

-- Texts, and an object of texts. The operator reads all roots at once, whoever wrote them, and what Postgres takes for JSON,
-- such as numbers of 5000 digits and arrays 2000 deep, is more than Python reads.
ALTER TABLE triage.runs ADD CONSTRAINT root_has_a_form CHECK (
    jsonb_typeof(root) = 'object' AND coalesce(jsonb_typeof(root -> 'tools'), 'object') = 'object'
    AND NOT jsonb_path_exists(root - 'tools', 'strict $.* ? (@.type() != "string")')
    AND NOT jsonb_path_exists(root -> 'tools', 'strict $.* ? (@.type() != "string")')) NOT VALID;

-- Makes a role for a namespace, or gives the one that it has what a tenant needs by now; to be called again for each
-- tenant by a migration that adds to the rights. Returns whether the role has the password of `p_verifier` now: it is new,
-- or `p_is_rotation`. A null limit leaves the one that there is.
CREATE FUNCTION triage.admit_tenant(p_role name, p_namespace text, p_verifier text, p_is_rotation boolean,
                                    p_connection_limit integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_new boolean := NOT EXISTS (SELECT FROM pg_roles WHERE rolname = p_role);
    signature text;
BEGIN
    IF is_new THEN
        EXECUTE format('CREATE ROLE %I LOGIN', p_role);
        INSERT INTO triage.tenants VALUES (p_role, p_namespace) ON CONFLICT (role) DO UPDATE SET namespace = p_namespace;
    ELSIF NOT EXISTS (SELECT FROM triage.tenants t WHERE t.role = p_role AND t.namespace = p_namespace) THEN
        RAISE EXCEPTION 'role "%" exists, and is no tenant of namespace %', p_role, p_namespace
            USING ERRCODE = 'duplicate_object';
    END IF;
    IF has_schema_privilege(p_role, 'public', 'CREATE') THEN
        RAISE EXCEPTION 'every role may create objects in schema public: REVOKE CREATE ON SCHEMA public FROM PUBLIC'
            USING ERRCODE = 'invalid_schema_definition';
    END IF;
    IF is_new OR p_is_rotation THEN
        EXECUTE format('ALTER ROLE %I PASSWORD %L', p_role, p_verifier);
    END IF;
    IF p_connection_limit IS NOT NULL THEN
        EXECUTE format('ALTER ROLE %I CONNECTION LIMIT %s', p_role, p_connection_limit);
    END IF;
    -- A role sets its own defaults as it likes: none that a thief left stays, and the limits are against accidents.
    EXECUTE format('ALTER ROLE %I RESET ALL', p_role);
    EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''10s''', p_role);
    EXECUTE format('ALTER ROLE %I SET statement_timeout = ''60s''', p_role);
    -- Ending a frozen agent's backend takes membership in its role.
    EXECUTE format('GRANT %I TO %I', p_role,
                   (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n WHERE n.nspname = 'triage'));
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), p_role);
    EXECUTE format('GRANT USAGE ON SCHEMA triage, public TO %I', p_role);
    EXECUTE format('GRANT SELECT ON triage.alembic_version, public.adk_internal_metadata TO %I', p_role);
    -- What ADK's session service does, but for deletions: a right to delete, or to update more than named columns, is one
    -- to lock the whole table.
    REVOKE ALL ON public.adk_internal_metadata, public.app_states, public.user_states, public.sessions, public.events
        FROM PUBLIC;
    EXECUTE format('GRANT SELECT, INSERT ON public.app_states, public.user_states, public.sessions, public.events TO %I',
                   p_role);
    EXECUTE format('GRANT UPDATE (state, update_time) ON public.app_states, public.user_states, public.sessions TO %I',
                   p_role);
    FOR signature IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'triage'::regnamespace AND p.proname IN (
            'serial_of', 'heartbeat', 'claim', 'record_root', 'release', 'finish',
            'begin_call', 'end_call', 'doubt_call', 'begun_call', 'settle_call', 'calls_of', 'store_reply', 'replies_of',
            'note_repair', 'file_issue', 'open_session', 'read_session', 'events_of', 'append_event')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', signature, p_role);
    END LOOP;
    RETURN is_new OR p_is_rotation;
END $$;

-- Lets nobody connect any more as one of a namespace's roles; to be committed before they are removed.
CREATE FUNCTION triage.bar_tenant(p_namespace text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    barred name;
BEGIN
    FOR barred IN SELECT t.role FROM triage.tenants t JOIN pg_roles r ON r.rolname = t.role
            WHERE t.namespace = p_namespace LOOP
        EXECUTE format('ALTER ROLE %I NOLOGIN', barred);
    END LOOP;
END $$;

-- Drops the roles of a namespace, with what they own, and ends their connections. Returns their names.
CREATE FUNCTION triage.remove_tenant(p_namespace text) RETURNS SETOF name
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed name;
BEGIN
    FOR removed IN DELETE FROM triage.tenants t WHERE t.namespace = p_namespace RETURNING t.role LOOP
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = removed) THEN
            PERFORM pg_terminate_backend(s.pid, 5000) FROM pg_stat_activity s WHERE s.usename = removed;
            EXECUTE format('DROP OWNED BY %I', removed);
            EXECUTE format('DROP ROLE %I', removed);
        END IF;
        RETURN NEXT removed;
    END LOOP;
END $$;

REVOKE ALL ON SCHEMA triage FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA triage FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA triage FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA triage FROM PUBLIC;
-- The policies ask for it in the name of whoever reads.
GRANT EXECUTE ON FUNCTION triage.own_namespace() TO PUBLIC;
