-- The last lines that an attempt wrote, which outlive its pod. Not in the attempt's own row, which is written at each
-- heartbeat.
CREATE TABLE triage.log_tails (
    serial integer PRIMARY KEY REFERENCES triage.attempts ON DELETE CASCADE,
    tail text NOT NULL,
    told_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
