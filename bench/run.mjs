// @ts-check
/**
 * node bench/run.mjs --target NAME[,NAME...] [--workloads W1,W2] [--runs 3] [--out results.jsonl]
 *
 * Prints a JSON line and a table row for each measurement. See README.md.
 */
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { calibrate, forkProvider } from './lib/context.mjs';
import { waitForQuiet, watchOthers } from './lib/noise.mjs';
import { round } from './lib/stats.mjs';
import { printReport } from './report.mjs';
import { targets } from './targets/index.mjs';
import { w1, w8, w9 } from './workloads/lifecycle.mjs';
import { w5, w6, w7 } from './workloads/reads.mjs';
import { w2, w3, w4 } from './workloads/streaming.mjs';

/** @type {Record<string, (context: import('./workloads/streaming.mjs').Context) => Promise<import('./workloads/streaming.mjs').Row[]>>} */
const workloads = { W1: w1, W2: w2, W3: w3, W4: w4, W5: w5, W6: w6, W7: w7, W8: w8, W9: w9 };

const { values } = parseArgs({
  options: {
    target: { type: 'string', short: 't', default: 'floor,turnkeep' },
    workloads: { type: 'string', short: 'w', default: Object.keys(workloads).join(',') },
    runs: { type: 'string', short: 'r', default: '1' },
    out: { type: 'string', short: 'o' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  process.stdout.write(
    `node run.mjs --target ${Object.keys(targets).join('|')} --workloads ${values.workloads} --runs N --out FILE\n`,
  );
  process.exit(0);
}

/** @param {Record<string, unknown>} row */
function tableRow({ target, workload, case: label, run, at, ...metrics }) {
  const cells = Object.entries(metrics).map(([name, value]) => `${name} ${value}`);
  return `| ${target} | ${workload} ${label} | ${cells.join(' | ')} |`;
}

const provider = await forkProvider();
/** @type {Record<string, unknown>[]} */
const results = [];
try {
  for (let run = 1; run <= Number(values.runs); run += 1) {
    for (const workload of values.workloads.split(',')) {
      for (const target of values.target.split(',')) {
        await waitForQuiet();
        const calibrationMs = round(calibrate(), 1);
        const others = watchOthers();
        /** @type {import('./workloads/streaming.mjs').Row[]} */
        let rows;
        try {
          rows = await workloads[workload]({ name: target, provider });
        } catch (error) {
          rows = [{ workload, case: 'failed', error: String(/** @type {Error} */ (error).message ?? error) }];
        }
        const conditions = { run, at: new Date().toISOString(), calibrationMs, ...others() };
        for (const row of rows) {
          const result = { target, ...row, ...conditions };
          results.push(result);
          const line = JSON.stringify(result);
          process.stdout.write(`${line}\n${tableRow(result)}\n`);
          if (values.out) appendFileSync(values.out, `${line}\n`);
        }
      }
    }
  }
} finally {
  provider.child.kill();
}
printReport(results);
process.exit(0);
