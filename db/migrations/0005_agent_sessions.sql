CREATE TABLE `agent_sessions` (
	`session_id` text PRIMARY KEY NOT NULL,
	`agent` text NOT NULL,
	`agent_session_id` text NOT NULL,
	`cwd` text NOT NULL,
	`seen_run` text NOT NULL,
	`answered` integer NOT NULL,
	`updated_at` real NOT NULL
);
