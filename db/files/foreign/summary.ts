/** A session of another program as a list needs it: from a row of its state.db, or from the header of its sidecar. */
import type { Usage } from '../../../server/core/terms.ts';

/** What either store of another program says of a session. Times are epoch seconds. */
export interface ForeignSummary {
  session_id: string;
  /** Where its writer says that it comes from: `cli`, `webui`, `telegram` … */
  source: string;
  title: string | null;
  model: string | null;
  workspace: string | null;
  created_at: number;
  /** Newest activity: what a list is ordered by. */
  activity: number;
  message_count: number;
  pinned: boolean;
  archived: boolean;
  parent_session_id: string | null;
  usage: Usage;
}

/** What only a sidecar says. */
export interface SidecarSummary extends ForeignSummary {
  /** Which file it is of; `damaged` when neither can be read. */
  from: 'live' | 'backup' | 'damaged';
  /** A backup whose live file is gone: it counts only where the state.db still has the session (orphan). */
  orphan: boolean;
  /** The record of what was before a compression: the conversation goes on in a child of it. */
  snapshot: boolean;
  /** An edit of it stands: its own count is right, whatever else holds more rows. */
  fenced: boolean;
}

/** What only a row of a state.db says. */
export interface StateSummary extends ForeignSummary {
  /**
   * What it is of its parent: `root` of none, `continuation` behind a compression, `branch` or `reset` a conversation of
   * its own, `child` a helper's.
   */
  kind: 'root' | 'continuation' | 'branch' | 'reset' | 'child';
  /** Whether its writer hides it: by its source, or by a flag. */
  hidden: boolean;
  /** Changes with what happens to the rows of a session besides new ones. */
  mark: string;
}

/** Sources of helpers, jobs and boards: no conversation of a person. */
const HIDDEN_SOURCES = /^(tool|cron|kanban|subagent|delegate|background)([_:.-]|$)/;

export const isHiddenSource = (source: string): boolean => HIDDEN_SOURCES.test(source);
