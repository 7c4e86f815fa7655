-- Sessions in one round trip an event.
DO $$ BEGIN END $$;
