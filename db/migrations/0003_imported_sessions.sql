CREATE TABLE `imported_sessions` (
	`home` text NOT NULL,
	`original_id` text NOT NULL,
	`session_id` text NOT NULL,
	`digest` text NOT NULL,
	`seen` text NOT NULL,
	`row_count` integer NOT NULL,
	`last_row` integer NOT NULL,
	`edit_number` integer DEFAULT 0 NOT NULL,
	`files_done` integer DEFAULT false NOT NULL,
	`imported_at` real NOT NULL,
	PRIMARY KEY(`home`, `original_id`)
);
--> statement-breakpoint
CREATE INDEX `imported_sessions_by_original` ON `imported_sessions` (`original_id`);--> statement-breakpoint
CREATE INDEX `imported_sessions_by_session` ON `imported_sessions` (`session_id`);