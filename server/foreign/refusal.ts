/** The refusal of whatever would write into another program's home: it says what can be done instead. */
import path from 'node:path';
import { AppError } from '../errors.ts';

/** Where a home of another program is, by the places that the configuration names: absolute paths. */
export interface ForeignPlaces {
  state_db?: string;
  sessions_dir?: string;
}

/** What `turnkeep import` is given, so that nothing is left out: mostly one home that both places are of. */
export function importPlaces({ state_db, sessions_dir }: ForeignPlaces): string[] {
  const isNamed = (file: string | undefined, name: string) => file !== undefined && path.basename(file) === name;
  const home = isNamed(state_db, 'state.db') ? path.dirname(state_db!) : state_db;
  const folder = isNamed(sessions_dir, 'sessions') ? path.dirname(sessions_dir!) : sessions_dir;
  // Hermes' own home has the folder of its web page in it.
  if (home !== undefined && (folder === home || folder === path.join(home, 'webui'))) return [home];
  return [home, folder].filter((place) => place !== undefined);
}

export function foreignHome(places: ForeignPlaces): AppError {
  const commands = importPlaces(places).map((place) => `"turnkeep import ${place}"`);
  return new AppError(
    'foreign_home',
    "This session is in another program's home, which is only read: " +
      `${commands.join(' or ')} brings it into ours, where it can go on.`,
  );
}
