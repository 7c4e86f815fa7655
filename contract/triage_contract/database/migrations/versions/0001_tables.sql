-- One row per run: what was asked, and whether it is still open. Written by the operator, or by the command line by hand.
CREATE TABLE triage.runs (
    id uuid PRIMARY KEY,
    cluster_id text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    agent text NOT NULL,
    app_name varchar(128) NOT NULL,
    user_id varchar(128) NOT NULL,
    session_id varchar(128) NOT NULL,
    invocation_id varchar(256) NOT NULL,
    message jsonb,                 -- the user's content {"parts": [...]}; null: the session holds it already
    root jsonb,                    -- {"name", "kind", "fingerprint"} of the agent tree, recorded at the first claim
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'succeeded', 'failed', 'cancelled')),
    reason text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX one_active_run_per_session ON triage.runs (app_name, user_id, session_id) WHERE state = 'active';
CREATE INDEX runs_by_cluster ON triage.runs (cluster_id, state);

-- One row per session, and nothing else in it: who may write. A null token refuses everybody. Kept as a tombstone for as
-- long as the session exists.
CREATE TABLE triage.fences (
    app_name varchar(128),
    user_id varchar(128),
    session_id varchar(128),
    epoch bigint NOT NULL CHECK (epoch > 0),
    token text,
    PRIMARY KEY (app_name, user_id, session_id)
);

-- One row per attempt. The operator writes what it decides and observes, the agent through functions what it does.
CREATE TABLE triage.attempts (
    serial integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES triage.runs ON DELETE CASCADE,
    epoch bigint NOT NULL,
    pod text,
    pod_uid text,
    node text,
    image text,
    memory_limit_bytes bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_at timestamptz,
    heartbeat_at timestamptz,
    first_write_at timestamptz,    -- first model reply, begun call or event of this attempt
    sigterm_at timestamptz,
    handoff_requested_at timestamptz,
    handoff_reason text,
    released_at timestamptz,       -- the attempt itself gave its token up
    lost_at timestamptz,           -- the operator saw that it is lost
    ended_at timestamptz,
    memory_used_bytes bigint,
    replies integer NOT NULL DEFAULT 0,      -- new model replies: progress
    calls_done integer NOT NULL DEFAULT 0,   -- new finished calls: progress
    events integer NOT NULL DEFAULT 0,       -- new events, neither errors nor repetitions: progress
    prompt_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    outcome text,
    cause text,
    counted boolean,               -- whether it counts against the no-progress budget; null: not decided
    exit_code integer,
    error text,
    retry_after_seconds double precision,
    recovery_counted boolean NOT NULL DEFAULT false,
    UNIQUE (run_id, epoch)
);
CREATE INDEX open_attempts ON triage.attempts (run_id) WHERE ended_at IS NULL;

-- One row per model reply, so that a reply is asked once.
CREATE TABLE triage.model_replies (
    app_name varchar(128),
    user_id varchar(128),
    session_id varchar(128),
    key text,
    invocation_id varchar(256) NOT NULL,
    epoch bigint NOT NULL,
    reply jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (app_name, user_id, session_id, key)
);
CREATE INDEX model_replies_by_invocation
    ON triage.model_replies (app_name, user_id, session_id, invocation_id);

-- One row per tool call. The call's id is ours and unique in the session.
CREATE TABLE triage.tool_calls (
    app_name varchar(128),
    user_id varchar(128),
    session_id varchar(128),
    call_id text,
    invocation_id varchar(256) NOT NULL,
    tool text NOT NULL,
    kind text NOT NULL,
    args jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('begun', 'done', 'raised', 'gated', 'settled')),
    result jsonb,
    actions jsonb,                 -- ADK's event actions: state delta, transfer, artifacts
    epoch bigint NOT NULL,         -- the attempt that began it last
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    begun_times integer NOT NULL DEFAULT 1,
    suppressed_by_journal integer NOT NULL DEFAULT 0,
    suppressed_by_tracker integer NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, user_id, session_id, call_id)
);
CREATE INDEX tool_calls_by_invocation ON triage.tool_calls (app_name, user_id, session_id, invocation_id);

-- The Postgres tracker: one issue per key.
CREATE TABLE triage.issues (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE,
    title text NOT NULL,
    body text NOT NULL,
    run_id uuid,
    duplicates integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Counters behind the metrics, incremented in the transaction of the change that they count; they outlive every purge.
CREATE TABLE triage.totals (
    name text,
    labels jsonb,
    value double precision NOT NULL,
    PRIMARY KEY (name, labels)
);
