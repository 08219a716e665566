/** The tools over a person's own chats: searching and summarising them. */
import type { Message } from '../../core/terms.ts';
import type { Call, Outcome, Scene } from './call.ts';
import { refused, succeeded } from './call.ts';
import { countOf, dayAt, isoDay } from './dates.ts';
import { codeSpan, plainText } from './markdown.ts';
import type { ChatHit } from './services.ts';
import type { Summary } from './summarise.ts';
import { contentWords, SUMMARISE, summariseChat, summariseText } from './summarise.ts';

const MAX_HITS = 10;
const MAX_OFFERED = 3;
const MAX_SENTENCES = 5;

/** Searches all chats. */
export function searchChatsCall(query: string, scene: Scene): Call {
  return {
    name: 'search_chats',
    args: { query },
    preview: query,
    async run() {
      const found = await scene.services.searchChats(query, MAX_HITS + 5);
      // The prompt that asks is stored already and has the words, too.
      const hits = found.filter(({ message_id }) => !message_id.startsWith(`${scene.turn.runId}.`)).slice(0, MAX_HITS);
      if (hits.length === 0) {
        return succeeded('Nothing found.', `I found nothing about ${codeSpan(query.slice(0, 200))} in your chats.`);
      }
      return hitsOutcome(hits, `Found ${countOf(hits.length, 'message')}:`, scene);
    },
  };
}

/** Searches the other chats for the words of a prompt that no rule knew; the best are those with the most words. */
export function matchChatsCall(words: string[], scene: Scene): Call {
  return {
    name: 'search_chats',
    args: { any_of: words },
    preview: words.join(' '),
    async run() {
      const best = new Map<string, { hit: ChatHit; matches: number }>();
      for (const word of words) {
        for (const hit of await scene.services.searchChats(word, MAX_HITS)) {
          if (hit.session_id === scene.turn.sessionId) continue;
          const known = best.get(hit.message_id);
          if (known) known.matches++;
          else best.set(hit.message_id, { hit, matches: 1 });
        }
      }
      const hits = [...best.values()]
        .filter(({ matches }) => matches * 2 >= words.length)
        .sort((a, b) => b.matches - a.matches || b.hit.timestamp - a.hit.timestamp)
        .slice(0, MAX_OFFERED)
        .map(({ hit }) => hit);
      if (hits.length === 0) return succeeded('Nothing found.', '');
      return hitsOutcome(hits, 'These earlier messages have some of your words:', scene);
    },
  };
}

/** The words of a prompt that are worth a search; most telling (longest) first. */
export function searchWords(prompt: string): string[] {
  const words = [...new Set(contentWords(prompt.slice(0, 500)))].filter((word) => word.length > 2);
  return words.sort((a, b) => b.length - a.length).slice(0, 4);
}

function hitsOutcome(hits: ChatHit[], lead: string, { services }: Scene): Outcome {
  const day = (hit: ChatHit) => isoDay(dayAt(hit.timestamp, services.timeZone));
  const lines = hits.map(
    (hit) => `${day(hit)} ${hit.role} in "${hit.title}" (${hit.session_id}): ${hit.snippet.replace(/\s+/g, ' ')}`,
  );
  const said = hits.map(
    (hit) =>
      `- **${plainText(hit.title) || 'Untitled'}** (${day(hit)}, ${hit.role === 'user' ? 'you' : hit.role}): ${plainText(hit.snippet)}`,
  );
  return succeeded(lines.join('\n'), `${lead}\n\n${said.join('\n')}`);
}

/** Summarises this chat (null) or the one with an id or a title. */
export function summariseChatCall(chat: string | null, scene: Scene): Call {
  return {
    name: SUMMARISE,
    args: { chat: chat ?? 'this chat' },
    preview: chat ?? 'this chat',
    async run() {
      const found = await findChat(chat, scene);
      if (!found)
        return refused(`There is no chat called "${chat}".`, `I know no chat called ${codeSpan(chat ?? '')}.`);
      const summary = summariseChat(found.messages, MAX_SENTENCES);
      if (summary.lines.length === 0) return succeeded('There is nothing to summarise yet.');
      const rows = found.messages.filter(({ role }) => role === 'user' || role === 'assistant').length;
      return summaryOutcome(
        summary,
        `${found.name} has ${countOf(rows, 'message')}. Its main sentences, word for word:`,
      );
    },
  };
}

/** Summarises a text from the prompt. */
export function summariseTextCall(text: string): Call {
  return {
    name: SUMMARISE,
    args: { characters: text.length },
    preview: text,
    async run() {
      const summary = summariseText(text, MAX_SENTENCES);
      if (summary.lines.length === 0) return refused('There are no sentences in this text.');
      return summaryOutcome(
        summary,
        `The main ${countOf(summary.lines.length, 'sentence')} of ${summary.weighed}, word for word:`,
      );
    },
  };
}

async function findChat(
  chat: string | null,
  scene: Scene,
): Promise<{ name: string; messages: readonly Message[] } | null> {
  const { turn, services } = scene;
  if (chat === null || chat === turn.sessionId) return { name: 'This chat', messages: turn.history };
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(chat)) {
    const messages = await services.transcript(chat);
    if (messages) return { name: `The chat ${codeSpan(chat)}`, messages };
  }
  const titled = await services.findSessionByTitle?.(chat);
  const messages = titled ? await services.transcript(titled.session_id) : null;
  return titled && messages ? { name: `"${plainText(titled.title)}"`, messages } : null;
}

const WHO = { user: '**You**: ', assistant: '**Agent**: ', text: '' };

function summaryOutcome({ lines, cut }: Summary, lead: string): Outcome {
  const said = lines.map(({ who, sentence }) => `- ${WHO[who]}${plainText(sentence)}`);
  const note = cut ? '\n\nThe text is long; only a part of it was weighed.' : '';
  return succeeded(
    lines.map(({ who, sentence }) => (who === 'text' ? sentence : `${who}: ${sentence}`)).join('\n'),
    `${lead}\n\n${said.join('\n')}${note}`,
  );
}
