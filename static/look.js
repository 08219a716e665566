/** Runs before the first paint: a dark page must not flash white. */
import { applyLook, hasTouchOnly, readSettings } from './settings.js';

applyLook(readSettings(globalThis.localStorage, hasTouchOnly()));
