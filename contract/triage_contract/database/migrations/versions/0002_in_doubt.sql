-- Calls in doubt: what is known of them, what was decided, and whether their process is known to be dead.
DO $$ BEGIN END $$;
