CREATE TABLE `context_summaries` (
	`session_id` text PRIMARY KEY NOT NULL,
	`anchor` text NOT NULL,
	`covers` text NOT NULL,
	`summary` text NOT NULL,
	`created_at` real NOT NULL
);
--> statement-breakpoint
ALTER TABLE `sessions` ADD `context_estimated` integer DEFAULT false NOT NULL;