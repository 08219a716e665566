/** What an import did, for a person and for a program. */

/** What became of one conversation. */
export type Outcome =
  /** It is here now. */
  | 'imported'
  /** It was here, and what was new there was added. */
  | 'extended'
  /** It went on there and here: what is there is a session of its own now. */
  | 'parted'
  | 'unchanged'
  /** It was imported before, and deleted here since. */
  | 'deleted'
  /** Nobody ever said anything in it. */
  | 'empty'
  /** Somebody is at work in it here: another run brings what is new. */
  | 'busy'
  /** Another import that runs at the same time has it. */
  | 'brought'
  | 'unreadable';

export interface Problem {
  /** Its id there; null for what is of no conversation. */
  id: string | null;
  code: 'parted' | 'unreadable' | 'busy' | 'waiting' | 'attachment' | 'journal' | 'profile';
  message: string;
}

export interface ImportReport {
  home: string;
  from: string;
  check: boolean;
  counts: Record<Outcome, number>;
  messages: number;
  attachments: number;
  journals: number;
  problems: Problem[];
  /** Problems beyond those that are listed. */
  unlisted: number;
  /** Whether it was ended before it was through. */
  interrupted: boolean;
}

/** Most problems that are kept: a home may have one in every conversation. */
const MOST_PROBLEMS = 1_000;

export const newReport = (home: string, from: string, check: boolean): ImportReport => ({
  home,
  from,
  check,
  counts: {
    imported: 0,
    extended: 0,
    parted: 0,
    unchanged: 0,
    deleted: 0,
    empty: 0,
    busy: 0,
    brought: 0,
    unreadable: 0,
  },
  messages: 0,
  attachments: 0,
  journals: 0,
  problems: [],
  unlisted: 0,
  interrupted: false,
});

export function addProblem(report: ImportReport, problem: Problem): void {
  if (report.problems.length < MOST_PROBLEMS) report.problems.push(problem);
  else report.unlisted += 1;
}

/** Whether there was any conversation at all. */
export const isNothing = ({ counts, interrupted }: ImportReport): boolean =>
  !interrupted && Object.values(counts).every((count) => count === 0);

/** Whether a person has to look at something. */
export const hasProblems = ({ counts }: ImportReport): boolean => counts.parted + counts.busy + counts.unreadable > 0;

const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** The report as lines: what was done, then each problem. */
export function reportText(report: ImportReport): string {
  const { counts, check, problems, unlisted } = report;
  const done = check ? 'would be imported' : 'imported';
  const lines = problems.map(({ id, message }) => `${id === null ? '' : `${id}: `}${message}`);
  if (unlisted > 0) lines.push(`and ${counted(unlisted, 'more problem')}`);
  const parts = [
    `${counted(counts.imported, 'conversation')} ${done} (${counted(report.messages, 'message')})`,
    counts.extended ? `${counts.extended} extended by what was new` : '',
    counts.parted ? `${counts.parted} conflicts, each a session of its own` : '',
    `${counts.unchanged} skipped because unchanged`,
    counts.deleted ? `${counts.deleted} deleted here before (--again brings them back)` : '',
    counts.empty ? `${counts.empty} empty` : '',
    counts.busy ? `${counts.busy} in use` : '',
    counts.brought ? `${counts.brought} brought by another import meanwhile` : '',
    `${counts.unreadable} unreadable`,
  ].filter((part) => part !== '');
  lines.push(`${parts.join(', ')}.`);
  const files = [
    report.attachments ? counted(report.attachments, 'attachment') : '',
    report.journals ? counted(report.journals, 'journal') : '',
  ].filter((part) => part !== '');
  if (files.length) lines.push(`With them ${files.join(' and ')}.`);
  if (report.interrupted) lines.push('Interrupted. Run it again: it goes on where it stopped.');
  return `${lines.join('\n')}\n`;
}
