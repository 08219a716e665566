/** The refusal of whatever would write into another program's home: it says what can be done instead. */
import path from 'node:path';
import { AppError } from '../errors.ts';

/** Where a home of another program is, by the places that the configuration names. */
export interface ForeignPlaces {
  state_db?: string;
  sessions_dir?: string;
}

/** The folder that `turnkeep import` is given. */
export const homeOf = ({ state_db, sessions_dir }: ForeignPlaces): string => path.dirname(state_db ?? sessions_dir!);

export const foreignHome = (places: ForeignPlaces): AppError =>
  new AppError(
    'foreign_home',
    "This session is in another program's home, which is only read: " +
      `"turnkeep import ${homeOf(places)}" brings it into ours, where it can go on.`,
  );
