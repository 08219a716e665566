CREATE TABLE `session_counts` (
	`archived` integer PRIMARY KEY NOT NULL,
	`sessions` integer NOT NULL
);

--> statement-breakpoint
-- A hidden session is in no list. `INSERT OR REPLACE` over a session would not be told of what it deletes: use an upsert.
CREATE TRIGGER session_counts_insert AFTER INSERT ON sessions WHEN NOT new.hidden BEGIN
  UPDATE session_counts SET sessions = sessions + 1 WHERE archived = new.archived;
END;
--> statement-breakpoint
CREATE TRIGGER session_counts_delete AFTER DELETE ON sessions WHEN NOT old.hidden BEGIN
  UPDATE session_counts SET sessions = sessions - 1 WHERE archived = old.archived;
END;
--> statement-breakpoint
CREATE TRIGGER session_counts_update AFTER UPDATE OF archived, hidden ON sessions BEGIN
  UPDATE session_counts SET sessions = sessions - 1 WHERE archived = old.archived AND NOT old.hidden;
  UPDATE session_counts SET sessions = sessions + 1 WHERE archived = new.archived AND NOT new.hidden;
END;
--> statement-breakpoint
-- What there was before it was counted.
INSERT INTO session_counts (archived, sessions)
  SELECT flag, (SELECT count(*) FROM sessions WHERE archived = flag AND hidden = 0) FROM (SELECT 0 AS flag UNION ALL SELECT 1);
