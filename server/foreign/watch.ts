/**
 * Readers of the session list are told what another program changed in its home, within a few seconds. It is looked at only
 * while somebody reads the list, and compared only when one of its files changed.
 */
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { LiveRegistry } from '../live/registry.ts';
import { toSessionView } from '../sessions/view.ts';
import type { ForeignSession } from './session.ts';
import type { ForeignMap } from './sources.ts';

export interface ForeignWatchParts {
  all(): Promise<ForeignMap>;
  /** Those of these ids that are sessions of ours: of them only our own changes are told. */
  ours(ids: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  registry: Pick<LiveRegistry, 'read' | 'publishList'>;
  log: { warn(fields: object, message: string): void };
}

export interface ForeignWatch {
  /** A reader came; there may be others. */
  came(): void;
  stop(): void;
}

/** How often the other home is looked at, in milliseconds. */
const LOOK_EVERY_MS = 2_000;
/** More changes at once than this are told as one: read the list again. */
const MOST_TOLD = 50;

export function createForeignWatch({ all, ours, registry, log }: ForeignWatchParts): ForeignWatch {
  let timer: NodeJS.Timeout | null = null;
  let known: ForeignMap | null = null;
  let isBusy = false;

  const end = (): void => {
    if (timer) clearInterval(timer);
    timer = known = null;
  };

  async function look(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    try {
      const now = await all();
      const before = known;
      if (!timer) return;
      known = now;
      // Who has just come reads the list after this.
      if (before && before !== now) await tell(before, now);
    } catch (error) {
      // Work in the background: a disk that fails is told to whoever asks for the list.
      if (storageTroubleKind(error) === null) log.warn({ err: error }, "another program's home could not be looked at");
    } finally {
      isBusy = false;
    }
  }

  async function tell(before: ForeignMap, now: ForeignMap): Promise<void> {
    const imported = await ours(now.ids);
    const then = new Map(before.listed.map((session) => [session.row.session_id, session]));
    const changed: { session: ForeignSession; reason: 'created' | 'changed' }[] = [];
    for (const session of now.listed) {
      const id = session.row.session_id;
      const old = then.get(id);
      then.delete(id);
      if (imported.has(id) || (old && isSame(old, session))) continue;
      changed.push({ session, reason: old ? 'changed' : 'created' });
    }
    const gone = [...then.keys()].filter((id) => !imported.has(id));
    if (changed.length + gone.length > MOST_TOLD) return registry.publishList(null, 'changed');
    for (const id of gone) registry.publishList(id, 'deleted');
    for (const { session, reason } of changed) {
      registry.publishList(session.row.session_id, reason, toSessionView(session.row, null));
    }
  }

  return {
    came() {
      if (timer) return;
      timer = setInterval(() => {
        if (registry.read().list) void look();
        else end();
      }, LOOK_EVERY_MS);
      timer.unref();
      void look();
    },
    stop: end,
  };
}

/** Whether a list shows both alike. */
function isSame({ row: a }: ForeignSession, { row: b }: ForeignSession): boolean {
  const shown = ['revision', 'message_count', 'title', 'pinned', 'archived', 'model', 'workspace'] as const;
  return shown.every((field) => a[field] === b[field]);
}
