/** How findings are said: aligned lines for a person, one JSON document for a program. */
import type { Finding, Severity } from './finding.ts';

const [SEVERITY_WIDTH, AREA_WIDTH] = [7, 13];

/** One finding as a line, without its end. */
export function lineOf({ severity, area, message, remedy }: Finding): string {
  const what = `${severity.padEnd(SEVERITY_WIDTH)}${area.padEnd(AREA_WIDTH)}${oneLine(message)}`;
  return remedy === null ? what : `${what}  → ${remedy}`;
}

/** A repair that was made, in the same columns. */
export const repairLine = (message: string): string => `${'done'.padEnd(SEVERITY_WIDTH)}${oneLine(message)}`;

// Names of files and texts of SQLite may hold anything; a line is a line.
const oneLine = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ');

export type Summary = Record<Severity, number>;

export function summaryOf(findings: readonly Finding[]): Summary {
  const summary: Summary = { ok: 0, info: 0, warn: 0, error: 0 };
  for (const { severity } of findings) summary[severity] += 1;
  return summary;
}

/** The last line. */
export const summaryLine = ({ ok, info, warn, error }: Summary): string =>
  `${ok} ok, ${info} info, ${warn} warn, ${error} error`;

export interface Report {
  version: string;
  home: string;
  findings: readonly Finding[];
  /** Null without `--repair`. */
  repairs: readonly { code: string; message: string }[] | null;
  /** Where the copies are, from the home on. */
  copies: string | null;
}

/** The document of `--json`. What the program would do by itself is no part of it. */
export function documentOf({ version, home, findings, repairs, copies }: Report): object {
  const told = findings.map(({ repair, ...finding }) => ({ ...finding, repairable: repair !== undefined }));
  return { version, home, findings: told, ...(repairs ? { repairs, copies } : {}), summary: summaryOf(findings) };
}
