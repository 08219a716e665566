// @ts-check
/** Medians over runs, as a Markdown table: node bench/report.mjs results.jsonl */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { median } from './lib/stats.mjs';

const CONDITIONS = new Set([
  'target',
  'workload',
  'case',
  'run',
  'at',
  'calibrationMs',
  'otherCpuPercent',
  'stealPercent',
]);

/** @param {Record<string, any>[]} results one row for each workload, case, metric; one column for each target */
export function reportLines(results) {
  const names = [...new Set(results.map((row) => row.target))];
  /** @type {Map<string, Map<string, any[]>>} */
  const cells = new Map();
  for (const row of results) {
    for (const [metric, value] of Object.entries(row)) {
      if (CONDITIONS.has(metric)) continue;
      const key = `${row.workload} | ${row.case} | ${metric}`;
      const byTarget = cells.get(key) ?? new Map();
      byTarget.set(row.target, [...(byTarget.get(row.target) ?? []), value]);
      cells.set(key, byTarget);
    }
  }
  const lines = [
    `| workload | case | metric | ${names.join(' | ')} |`,
    `| --- | --- | --- | ${names.map(() => '---:').join(' | ')} |`,
  ];
  for (const key of [...cells.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))) {
    lines.push(`| ${key} | ${names.map((name) => summary(cells.get(key)?.get(name))).join(' | ')} |`);
  }
  return lines;
}

/** @param {any[] | undefined} values */
function summary(values) {
  if (!values?.length) return '';
  if (values.every((value) => typeof value === 'number')) {
    const middle = median(values);
    const spread = values.length > 1 ? ` (${Math.min(...values)}–${Math.max(...values)})` : '';
    return `${middle}${spread}`;
  }
  return [...new Set(values.map(String))].join(' / ');
}

/** @param {Record<string, any>[]} results */
export function printReport(results) {
  process.stdout.write(`\n${reportLines(results).join('\n')}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const lines = process.argv.slice(2).flatMap((file) => readFileSync(file, 'utf8').split('\n').filter(Boolean));
  printReport(lines.map((line) => JSON.parse(line)));
}
