/**
 * What was chosen for the whole server: the model of sessions that name none, and what a prompt does while a turn runs
 * (SE9). Owns the choices as they are in force here; the state DB has them, and other servers on the home change them
 * there, so it is looked once a second whether anything changed.
 */
import type { SettingsStore } from '../../db/stores.ts';
import type { BUSY_MODES, ServerSettings } from '../core/server-settings.ts';
import { AppError } from '../errors.ts';

type BusyMode = (typeof BUSY_MODES)[number];

/** The choices, and what holds without them. */
export interface SettingsView extends ServerSettings {
  configured: { default_model: string; busy_input_mode: BusyMode };
}

export interface ServerSettingsParts {
  store: SettingsStore;
  /** Grows whenever another connection changed the state DB. */
  dataVersion(): number;
  configured: { defaultModel(): string; busyMode: BusyMode };
  /** Why there is no such model; null when there is. */
  checkModel(id: string): string | null;
  /** Readers may want to know that something else holds now. */
  onChange(): void;
  log: { warn(fields: object, message: string): void };
}

export interface SettingsOfServer {
  /** As they are kept now. */
  view(): Promise<SettingsView>;
  /** @throws AppError unknown_model */
  change(changes: Partial<ServerSettings>): Promise<SettingsView>;
  /** The model that was chosen for sessions that name none, as last known; null for the configured one. */
  defaultModel(): string | null;
  /** What a prompt does while a turn runs, as last known. */
  busyMode(): BusyMode;
  /** Reads them, and follows other servers from now on. */
  start(): Promise<void>;
  stop(): void;
}

/** How often it is looked whether another server changed something, in milliseconds. */
const LOOK_EVERY_MS = 1_000;

export function createServerSettings(parts: ServerSettingsParts): SettingsOfServer {
  const { store, configured } = parts;
  let current: ServerSettings = { default_model: null, busy_input_mode: null };
  /** Data version at which `current` was read; NaN, which is like no other, before that. */
  let seen = Number.NaN;
  let timer: NodeJS.Timeout | null = null;

  const take = (next: ServerSettings): void => {
    const isNew = next.default_model !== current.default_model || next.busy_input_mode !== current.busy_input_mode;
    current = next;
    if (isNew) parts.onChange();
  };

  const read = async (): Promise<void> => {
    // Asked first: what is changed between the two is seen the next time.
    const version = parts.dataVersion();
    take(await store.read());
    seen = version;
  };

  const look = async (): Promise<void> => {
    if (parts.dataVersion() !== seen) await read();
  };
  const lookQuietly = (): void => {
    look().catch((error) => parts.log.warn({ err: error }, 'the settings could not be read'));
  };

  const view = (): SettingsView => ({
    ...current,
    configured: { default_model: configured.defaultModel(), busy_input_mode: configured.busyMode },
  });

  return {
    async view() {
      await read();
      return view();
    },

    async change(changes) {
      const { default_model: model } = changes;
      const refusal = model ? parts.checkModel(model) : null;
      if (refusal !== null) throw new AppError('unknown_model', refusal);
      take(await store.change(changes));
      return view();
    },

    defaultModel: () => current.default_model,
    busyMode: () => current.busy_input_mode ?? configured.busyMode,

    async start() {
      await read();
      timer = setInterval(lookQuietly, LOOK_EVERY_MS).unref();
    },

    stop() {
      if (timer) clearInterval(timer);
      timer = null;
    },
  };
}
