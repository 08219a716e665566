CREATE TABLE `api_tokens` (
	`token_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`secret_hash` text NOT NULL,
	`scope` text NOT NULL,
	`created_at` real NOT NULL,
	`used_at` real,
	`expires_at` real
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_tokens_secret_hash_unique` ON `api_tokens` (`secret_hash`);--> statement-breakpoint
CREATE TABLE `logins` (
	`login_id` text PRIMARY KEY NOT NULL,
	`secret_hash` text NOT NULL,
	`basis` text NOT NULL,
	`scope` text NOT NULL,
	`address` text NOT NULL,
	`agent` text NOT NULL,
	`created_at` real NOT NULL,
	`seen_at` real NOT NULL,
	`expires_at` real NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `logins_secret_hash_unique` ON `logins` (`secret_hash`);--> statement-breakpoint
CREATE INDEX `logins_by_address` ON `logins` (`address`);