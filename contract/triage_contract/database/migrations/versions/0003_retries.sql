-- How many retries of spec.retries a run was given a new budget for.
ALTER TABLE triage.runs ADD COLUMN retries integer NOT NULL DEFAULT 0;
