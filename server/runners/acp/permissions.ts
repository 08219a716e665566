/**
 * `session/request_permission`: an agent asks before it does something itself. The person is asked as for our own tools,
 * and what they say is said to the agent as one of its own options (AC20).
 *
 * A yes is its "once" whenever it has one, also where the person allowed more: what is remembered is remembered by us, for
 * exactly what was shown. What an agent keeps as "always" may be more than that, and may outlive the conversation.
 */
import type { ClientParts } from './client-parts.ts';
import { subjectOf } from './permission-subject.ts';
import { oneLineOf, recordOf, stringOf } from './raw.ts';
import { unfit } from './refusals.ts';

export type PermissionOutcome = { outcome: { outcome: 'selected'; optionId: string } | { outcome: 'cancelled' } };

/** @param parts of one turn */
export function createPermissions(
  parts: Pick<ClientParts, 'agent' | 'workspace' | 'signal' | 'tell' | 'updates' | 'justAllowed' | 'allow'>,
): (params: unknown, cancelled: AbortSignal) => Promise<PermissionOutcome> {
  const { agent, workspace, signal, tell, updates, justAllowed, allow } = parts;
  return async (params, cancelled) => {
    const { toolCall, options: given } = recordOf(params);
    const call = recordOf(toolCall);
    const id = stringOf(call.toolCallId);
    if (id === '') throw unfit('A permission request must say its "toolCall".');
    if (!Array.isArray(given)) throw unfit('A permission request must have "options".');
    const { yes, no, note } = readOptions(given);
    tell(updates.announce(toolCall));
    if (signal.aborted) return CANCELLED;
    // Nobody is asked about what they could not allow.
    if (yes === null) return select(no);
    const known = updates.known(id);
    const subject = await subjectOf({ ...known?.fields, ...saidNow(call) }, agent, workspace);
    const about = { toolId: known?.id, description: `${subject.description}${note}` };
    const decision = await allow(subject.tool, subject.args, cancelled, about);
    updates.answered(toolCall, decision.ok ? 'yes' : decision.denied ? 'no' : 'nothing');
    if (signal.aborted || cancelled.aborted) return CANCELLED;
    if (decision.ok) justAllowed.add(subject.covers);
    return select(decision.ok ? yes : no);
  };
}

const CANCELLED: PermissionOutcome = { outcome: { outcome: 'cancelled' } };

/** Where an agent offers no way to say no, its question counts as taken back. */
const select = (optionId: string | null): PermissionOutcome =>
  optionId === null ? CANCELLED : { outcome: { outcome: 'selected', optionId } };

interface Options {
  yes: string | null;
  no: string | null;
  /** For the person, when a yes to the agent is more than a yes to this. */
  note: string;
}

/** The first of each kind counts; kinds that nobody knows are never chosen. */
function readOptions(given: readonly unknown[]): Options {
  const options = given.map(recordOf).filter((option) => typeof option.optionId === 'string');
  const find = (kind: string) => options.find((option) => option.kind === kind);
  const once = find('allow_once');
  const yes = once ?? find('allow_always');
  const no = find('reject_once') ?? find('reject_always');
  const name = oneLineOf(stringOf(yes?.name), 100);
  return {
    yes: yes ? stringOf(yes.optionId) : null,
    no: no ? stringOf(no.optionId) : null,
    note: yes && !once ? ` It takes a yes only as "${name}", and may remember it.` : '',
  };
}

/** What the request itself says of the call; fields that are null say nothing. */
const saidNow = (call: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(call).filter(([, value]) => value !== null && value !== undefined));
