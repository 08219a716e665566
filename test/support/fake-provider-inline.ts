/**
 * The script that a prompt may carry, for tests that drive another process and cannot hand over steps.
 *
 *   script:chunks=40,delay=5,id=abc       forty chunks `[abc:0] [abc:1] …`, five milliseconds apart
 *   script:reasoning=3,chunks=2           three chunks of reasoning first
 *   script:tool=read_file,args={"path":"a.txt"}   a tool call; the arguments are last and may hold anything
 *   script:status=500 · script:hang=1 · script:cut=1 · script:error=overloaded · script:empty=1
 *
 * Several in one prompt are played one for each request of the turn: the second after the results of the first. After
 * the last of them, and without any, the answer is `You said: <prompt>`, or what a tool said.
 */
import type { Step } from './fake-provider-steps.ts';
import type { ChatBody, ChatMessage } from './fake-provider-strict.ts';

/** The steps of a request by what its conversation says. */
export function inlineSteps(body: ChatBody): Step[] {
  const messages = body.messages ?? [];
  const at = messages.findLastIndex((message) => message.role === 'user');
  // A prompt that follows one without an answer is sent together with it; the last paragraph is the last prompt.
  const prompt = textOf(messages[at]).split('\n\n').at(-1) ?? '';
  const since = messages.slice(at + 1);
  const scripts = readScripts(prompt);
  const round = since.filter((message) => message.tool_calls).length;
  const script = scripts[round];
  // Agents keep the ids of a provider, so no call of a conversation may have that of another.
  if (script) return stepsOf(script, `call_${messages.length}`);
  const results = since.filter((message) => message.role === 'tool');
  const answer =
    results.length > 0 ? `The tool said: ${results.map(textOf).join(' | ').slice(0, 400)}` : `You said: ${prompt}`;
  return [{ text: words(answer) }];
}

function textOf(message: ChatMessage | undefined): string {
  const content = message?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('');
}

/** A text in chunks of one word. */
export const words = (text: string): string[] => text.match(/\s*\S+\s*$|\s*\S+/g) ?? [text];

function readScripts(prompt: string): Map<string, string>[] {
  return prompt
    .split(/(?:^|\s)script:/)
    .slice(1)
    .map((source) => {
      const script = new Map<string, string>();
      const argsAt = source.indexOf('args=');
      const plain = argsAt < 0 ? source : source.slice(0, argsAt);
      for (const pair of (plain.split(/\s/)[0] ?? '').split(',')) {
        const [key, value] = pair.split('=');
        if (key) script.set(key, value ?? '');
      }
      if (argsAt >= 0) script.set('args', source.slice(argsAt + 'args='.length).trim());
      return script;
    });
}

function stepsOf(script: Map<string, string>, callId: string): Step[] {
  const number = (key: string): number => Number(script.get(key) ?? 0);
  const id = script.get('id') ?? 'x';
  const delay = number('delay');
  const steps: Step[] = [];
  const paced = (step: Step): void => {
    steps.push(step);
    if (delay > 0) steps.push({ delay });
  };
  if (script.has('status')) {
    return [{ status: number('status'), body: { error: { message: 'scripted failure', type: 'server_error' } } }];
  }
  for (let n = 0; n < number('reasoning'); n += 1) paced({ reasoning: `(${id}:${n}) ` });
  for (let n = 0; n < number('chunks'); n += 1) paced({ text: `[${id}:${n}] ` });
  if (script.has('tool')) {
    steps.push({ tool_calls: [{ id: callId, name: script.get('tool') ?? '', args: script.get('args') ?? '{}' }] });
  }
  if (script.has('error')) steps.push({ error: { message: script.get('error') ?? '', type: 'server_error' } });
  if (script.has('hang')) steps.push({ hang: true });
  if (script.has('cut')) steps.push({ cut: 'mid-chunk' });
  return steps;
}
