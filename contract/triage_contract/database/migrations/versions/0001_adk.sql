-- The tables of google-adk's session service, schema v1 (google-adk 2.x), as its own DDL makes them, so that no agent
-- has to create or own a table. An existing ADK database keeps its tables. The schema is named, since a role called
-- `triage` would otherwise make them in ours, which its search path names first.

CREATE TABLE IF NOT EXISTS public.adk_internal_metadata (
    key varchar(128) PRIMARY KEY,
    value varchar(256) NOT NULL
);
INSERT INTO public.adk_internal_metadata (key, value) VALUES ('schema_version', '1') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS public.app_states (
    app_name varchar(128) PRIMARY KEY,
    state jsonb NOT NULL,
    update_time timestamp NOT NULL
);

CREATE TABLE IF NOT EXISTS public.user_states (
    app_name varchar(128),
    user_id varchar(128),
    state jsonb NOT NULL,
    update_time timestamp NOT NULL,
    PRIMARY KEY (app_name, user_id)
);

CREATE TABLE IF NOT EXISTS public.sessions (
    app_name varchar(128),
    user_id varchar(128),
    id varchar(128),
    state jsonb NOT NULL,
    create_time timestamp NOT NULL,
    update_time timestamp NOT NULL,
    PRIMARY KEY (app_name, user_id, id)
);

CREATE TABLE IF NOT EXISTS public.events (
    id varchar(128),
    app_name varchar(128),
    user_id varchar(128),
    session_id varchar(128),
    invocation_id varchar(256) NOT NULL,
    timestamp timestamp NOT NULL,
    event_data jsonb,
    PRIMARY KEY (id, app_name, user_id, session_id),
    FOREIGN KEY (app_name, user_id, session_id) REFERENCES public.sessions (app_name, user_id, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_events_app_user_session_ts_id
    ON public.events (app_name, user_id, session_id, timestamp DESC, id DESC);

-- The verdict reads one invocation of a session that may hold thousands of events.
CREATE INDEX IF NOT EXISTS idx_events_invocation ON public.events (app_name, user_id, session_id, invocation_id);
