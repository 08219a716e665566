CREATE TABLE `active_sessions` (
	`session_id` text PRIMARY KEY NOT NULL,
	`lease_id` text NOT NULL,
	`surface` text NOT NULL,
	`pid` integer NOT NULL,
	`process_start_time` text,
	`live_session_id` text NOT NULL,
	`epoch` integer NOT NULL,
	`started_at` real NOT NULL,
	`updated_at` real NOT NULL
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`session_id` text NOT NULL,
	`role` text NOT NULL,
	`content` text,
	`tool_call_id` text,
	`tool_calls` text,
	`tool_name` text,
	`timestamp` real NOT NULL,
	`token_count` integer,
	`finish_reason` text,
	`reasoning` text,
	`active` integer DEFAULT 1 NOT NULL,
	`compacted` integer DEFAULT 0 NOT NULL,
	`display_kind` text,
	`message_id` text,
	`run_id` text,
	`extra` text,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `messages_by_session` ON `messages` (`session_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `messages_by_message_id` ON `messages` (`session_id`,`message_id`);--> statement-breakpoint
CREATE INDEX `messages_by_run` ON `messages` (`run_id`);--> statement-breakpoint
CREATE TABLE `projects` (
	`project_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`color` text,
	`created_at` real NOT NULL
);
--> statement-breakpoint
CREATE TABLE `runtime_epochs` (
	`epoch` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`instance_id` text NOT NULL,
	`pid` integer NOT NULL,
	`process_start` text,
	`started_at` real NOT NULL,
	`ended_at` real
);
--> statement-breakpoint
CREATE TABLE `session_admissions` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`admission_id` text NOT NULL,
	`request_id` text NOT NULL,
	`principal_id` text NOT NULL,
	`target_session_id` text NOT NULL,
	`payload_json` text NOT NULL,
	`payload_digest` text NOT NULL,
	`intent` text NOT NULL,
	`status` text NOT NULL,
	`outcome` text,
	`owner_epoch` integer,
	`generation` integer,
	`run_id` text NOT NULL,
	`created_at` real NOT NULL,
	`started_at` real,
	`ended_at` real,
	`last_seq` integer,
	`message_id` text,
	`error` text,
	`journal_pruned` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`target_session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE restrict
);
--> statement-breakpoint
CREATE UNIQUE INDEX `session_admissions_admission_id_unique` ON `session_admissions` (`admission_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `session_admissions_run_id_unique` ON `session_admissions` (`run_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `admissions_by_key` ON `session_admissions` (`principal_id`,`target_session_id`,`request_id`);--> statement-breakpoint
CREATE INDEX `admissions_by_session` ON `session_admissions` (`target_session_id`,`seq`);--> statement-breakpoint
CREATE INDEX `admissions_by_generation` ON `session_admissions` (`target_session_id`,`generation`);--> statement-breakpoint
CREATE INDEX `admissions_open` ON `session_admissions` (`target_session_id`,`seq`) WHERE status <> 'terminal';--> statement-breakpoint
CREATE INDEX `admissions_with_journal` ON `session_admissions` (`ended_at`) WHERE journal_pruned = 0 and status = 'terminal';--> statement-breakpoint
CREATE TABLE `session_tombstones` (
	`session_id` text PRIMARY KEY NOT NULL,
	`deleted_at` real NOT NULL,
	`files_removed` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`source` text NOT NULL,
	`model` text,
	`parent_session_id` text,
	`started_at` real NOT NULL,
	`ended_at` real,
	`end_reason` text,
	`message_count` integer DEFAULT 0 NOT NULL,
	`tool_call_count` integer DEFAULT 0 NOT NULL,
	`input_tokens` integer DEFAULT 0 NOT NULL,
	`output_tokens` integer DEFAULT 0 NOT NULL,
	`cache_read_tokens` integer DEFAULT 0 NOT NULL,
	`reasoning_tokens` integer DEFAULT 0 NOT NULL,
	`cwd` text,
	`estimated_cost_usd` real,
	`title` text,
	`title_source` text,
	`rewind_count` integer DEFAULT 0 NOT NULL,
	`archived` integer DEFAULT false NOT NULL,
	`pinned` integer DEFAULT false NOT NULL,
	`hidden` integer DEFAULT false NOT NULL,
	`last_activity_at` real,
	`runtime_revision` integer DEFAULT 0 NOT NULL,
	`runtime_generation` integer DEFAULT 0 NOT NULL,
	`project_id` text,
	`draft` text DEFAULT '' NOT NULL,
	`updated_at` real NOT NULL,
	`last_message_at` real,
	`edit_number` integer DEFAULT 0 NOT NULL,
	`edit_fence` text,
	`context_used` integer,
	`context_length` integer,
	`flags` text DEFAULT '[]' NOT NULL,
	`create_key` text,
	`create_digest` text,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`project_id`) ON UPDATE no action ON DELETE set null
);
--> statement-breakpoint
CREATE INDEX `sessions_by_activity` ON `sessions` (`archived`,`hidden`,`pinned`,`last_activity_at`,`id`);--> statement-breakpoint
CREATE INDEX `sessions_by_project` ON `sessions` (`project_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_by_create_key` ON `sessions` (`create_key`);--> statement-breakpoint
CREATE TABLE `state_meta` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text
);
