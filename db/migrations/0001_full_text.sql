-- Full text over what people and agents said. External content: the text itself stays in `messages` only.
CREATE VIEW messages_fts_src AS
  SELECT id, coalesce(content, '') AS content FROM messages WHERE role IN ('user', 'assistant');
--> statement-breakpoint
CREATE VIRTUAL TABLE messages_fts USING fts5(
  content, content = 'messages_fts_src', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);
--> statement-breakpoint
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN new.role IN ('user', 'assistant') BEGIN
  INSERT INTO messages_fts (rowid, content) VALUES (new.id, coalesce(new.content, ''));
END;
--> statement-breakpoint
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages WHEN old.role IN ('user', 'assistant') BEGIN
  INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, coalesce(old.content, ''));
END;
--> statement-breakpoint
CREATE TRIGGER messages_fts_update AFTER UPDATE OF content, role ON messages BEGIN
  INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, coalesce(old.content, '') WHERE old.role IN ('user', 'assistant');
  INSERT INTO messages_fts (rowid, content)
    SELECT new.id, coalesce(new.content, '') WHERE new.role IN ('user', 'assistant');
END;
--> statement-breakpoint
-- What was said before there was an index.
INSERT INTO messages_fts (messages_fts) VALUES ('rebuild');
