-- A role for each namespace.
DO $$ BEGIN END $$;
