/** Runs before the first paint: a dark page must not flash white. */
import { applyLook, hasTouchOnly, readSettings } from './settings.js';
import { browserStorage } from './storage.js';

applyLook(readSettings(browserStorage(), hasTouchOnly()));
