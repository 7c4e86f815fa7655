-- What a reply cost, so that a resume can tell what it did not pay twice; and the parts of an attempt's start.
ALTER TABLE triage.model_replies
    ADD COLUMN prompt_tokens bigint,
    ADD COLUMN output_tokens bigint,
    ADD COLUMN seconds double precision;       -- that the model took
ALTER TABLE triage.attempts
    ADD COLUMN scheduled_at timestamptz,       -- the pod had a node
    ADD COLUMN started_at timestamptz,         -- the agent's container ran
    ADD COLUMN fenced_at timestamptz;          -- a write of it was refused
