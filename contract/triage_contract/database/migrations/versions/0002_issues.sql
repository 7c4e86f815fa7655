-- Issues in the transaction of the journal.
DO $$ BEGIN END $$;
