CREATE TABLE `agent_offers` (
	`agent` text PRIMARY KEY NOT NULL,
	`offer` text NOT NULL,
	`updated_at` real NOT NULL
);
