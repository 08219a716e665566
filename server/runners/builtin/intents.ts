/**
 * What a prompt asks of the built-in agent, by rules over its words. Pure: a text becomes an intent, and everything
 * that no rule knows is `unknown`. The rules are tried in their order here; the first that matches decides.
 */
import { looksLikeArithmetic } from './calculator.ts';
import type { DateQuestion } from './date-questions.ts';
import { parseDateQuestion } from './date-questions.ts';

export type Intent =
  | { kind: 'command'; name: string; rest: string }
  | { kind: 'note_add'; text: string }
  | { kind: 'note_list' }
  | { kind: 'note_remove'; number: number | 'all' }
  | { kind: 'date'; question: DateQuestion; text: string }
  | { kind: 'calculate'; expression: string }
  | { kind: 'summarise_text'; text: string }
  | { kind: 'summarise_chat' /** Null: this one. */; chat: string | null }
  | { kind: 'list_files'; path: string }
  | { kind: 'read_file'; path: string; offset: number }
  | { kind: 'search_files'; query: string }
  | { kind: 'search_chats'; query: string }
  | { kind: 'help' }
  | { kind: 'help_model' }
  | { kind: 'list_models' }
  | { kind: 'server' }
  | { kind: 'identity' }
  | { kind: 'greeting' }
  | { kind: 'thanks' }
  | { kind: 'unknown' };

export type IntentKind = Intent['kind'];

/** Only the rules for notes and pasted texts look at longer prompts. */
const MAX_SHORT = 1000;

type Rule = (text: string) => Intent | null;

/** Understands a prompt. */
export function recognise(prompt: string): Intent {
  const text = prompt.trim();
  for (const rule of LONG_RULES) {
    const intent = rule(text);
    if (intent) return intent;
  }
  if (text.length > MAX_SHORT) return { kind: 'unknown' };
  const asked = bare(text);
  for (const rule of SHORT_RULES) {
    const intent = rule(asked);
    if (intent) return intent;
  }
  return { kind: 'unknown' };
}

/** Without the politeness around a question, and on one line. */
function bare(text: string): string {
  return text
    .replaceAll('’', "'")
    .replace(/\s+/g, ' ')
    .replace(/^(?:hey|ok|okay|so|please)[, ]+/i, '')
    .replace(/^(?:can|could|would|will) you (?:please )?/i, '')
    .replace(/^(?:please|tell me|i want to know|do you know)[, ]+(?=.)/i, '')
    .replace(/[?!.,; ]+$/, '')
    .replace(/,? please$/i, '');
}

/** Without the quotation marks around a name. */
function unquoted(text: string): string {
  return text.trim().replace(/^(?:"([^"]*)"|'([^']*)'|`([^`]*)`|“([^”]*)”)$/, '$1$2$3$4');
}

const LONG_RULES: Rule[] = [
  (text) => {
    const match = /^\/([A-Za-z][\w-]*)(?:\s+([\s\S]*))?$/.exec(text);
    return match && { kind: 'command', name: match[1]!.toLowerCase(), rest: (match[2] ?? '').trim() };
  },
  (text) => {
    const match = /^(?:please )?run:? `([^`]+)`$/i.exec(text) ?? /^(?:please )?run: ([\s\S]+)$/i.exec(text);
    return match && { kind: 'command', name: 'run', rest: match[1]!.trim() };
  },
  (text) => {
    const match = /^(?:please )?(?:write|save) "([\s\S]+)" (?:to|into|as) ("[^"\n]+"|\S+)$/i.exec(text);
    return match && { kind: 'command', name: 'write', rest: `${match[2]} ${match[1]}` };
  },
  (text) => {
    const match =
      /^(?:please )?(?:take a |add a |make a |new )?note(?: to self| that)?: ?([\s\S]+)$/i.exec(text) ??
      /^(?:please )?(?:(?:take|add|make) (?:a )?note(?: to self)?|note|remember)(?: that| to| of)? (?!\d+$|(?:when|what|how|why|where|who|if)\b)([\s\S]+)$/i.exec(
        text,
      );
    return match?.[1]?.trim() ? { kind: 'note_add', text: match[1].trim() } : null;
  },
  (text) => {
    const match = /^(?:please )?summari[sz]e(?: (?:this|the following))?(?: text)?:\s([\s\S]+)$/i.exec(text);
    return match?.[1]?.trim() ? { kind: 'summarise_text', text: match[1].trim() } : null;
  },
];

/** A rule that knows its kind by the words alone. */
const words =
  (pattern: RegExp, intent: Intent): Rule =>
  (text) =>
    pattern.test(text) ? intent : null;

const SHORT_RULES: Rule[] = [
  words(/^(?:(?:show|list|read|see|what are)(?: me)? )?(?:all )?(?:my |the )?notes$/i, { kind: 'note_list' }),
  words(/^(?:forget|remove|delete|clear) (?:all|all of|every)(?: my| the)? notes?$/i, {
    kind: 'note_remove',
    number: 'all',
  }),
  (text) => {
    const match = /^(?:forget|remove|delete|drop)(?: my| the)? note (?:number |no\.? |#)?(\d{1,6})$/i.exec(text);
    return match && { kind: 'note_remove', number: Number(match[1]) };
  },
  (text) => {
    const match = /^(?:calculate|compute|calc|evaluate|=) ?(.+)$/i.exec(text);
    return match && { kind: 'calculate', expression: match[1]!.replace(/ ?=$/, '') };
  },
  (text) => {
    const question = parseDateQuestion(text);
    return question && { kind: 'date', question, text };
  },
  (text) => {
    const expression = text.replace(/^(?:what(?: is|'s)|how much (?:is|are)) (?:the )?/i, '').replace(/ ?=$/, '');
    return looksLikeArithmetic(expression) ? { kind: 'calculate', expression } : null;
  },
  ...fileRules(),
  words(
    /^(?:summari[sz]e|sum up|give me a summary(?: of)?|summary(?: of)?|recap|tl;?dr)(?: (?:it|this|(?:this|the|our|my) (?:chat|session|conversation|thread)))?$/i,
    { kind: 'summarise_chat', chat: null },
  ),
  (text) => {
    const match =
      /^(?:summari[sz]e|sum up|(?:give me a )?summary of|recap)(?: the| my)?(?: (?:chat|session|conversation))?(?: (?:called|named|titled|about))? (.+)$/i.exec(
        text,
      );
    return match && { kind: 'summarise_chat', chat: unquoted(match[1]!) };
  },
  (text) => {
    const match =
      /^(?:search|find|look)(?: in| through)?(?: all)?(?: of)?(?: my| the| our| past| earlier| old)* (?:chats?|sessions?|conversations?|history|messages)(?: for| about| with)? (.+)$/i.exec(
        text,
      ) ??
      /^(?:search|find|look(?= for| up))(?: for| up)? (.+?)(?: in (?:my |the |our |all )*(?:chats?|sessions?|conversations?|history|messages))?$/i.exec(
        text,
      ) ??
      /^(?:what|where|when) did (?:i|we) (?:say|write|talk|ask)(?: about)? (.+)$/i.exec(text);
    return match && { kind: 'search_chats', query: unquoted(match[1]!) };
  },
  words(
    /^(?:how (?:do|can|could|should) (?:i|we|you)|how to|i want to|help me) (?:connect|add|use|set up|configure|get|change|switch)(?: to)?(?: an?| the| another| your| my| real)* (?:(?:language )?models?|llm|ollama|openai|lm studio|llama\.?cpp|ai)\b.*$/i,
    { kind: 'help_model' },
  ),
  words(/^(?:connect|set up|configure)(?: an?| the)? (?:(?:language )?model|llm|ollama|openai)$/i, {
    kind: 'help_model',
  }),
  words(/^(?:(?:which|what) models?(?: .*)?|(?:list|show)(?: me)?(?: the| all)? models|models)$/i, {
    kind: 'list_models',
  }),
  words(
    /^(?:(?:what(?: is|'s)|about|tell me about|which) (?:this|the|your) (?:server|version)(?: .*)?|(?:server|version)(?: info| status)?|what version (?:is this|are you)|about(?: this server)?)$/i,
    { kind: 'server' },
  ),
  words(
    /^(?:who|what)(?: are|'re|r) (?:you|u)$|^what(?: is|'s) your name$|^are you (?:an? |the )?(?:real )?(?:human|person|bot|robot|ai|a\.i\.|llm|(?:large )?language model|chatgpt|claude|gpt.{0,10}|real|machine)(?: or .{1,30})?$|^introduce yourself$/i,
    {
      kind: 'identity',
    },
  ),
  words(/^(?:help(?: me)?|what can (?:you|i) do(?: here)?|what do you do|examples|how does this work|commands|\?)$/i, {
    kind: 'help',
  }),
  words(
    /^(?:hi|hello|hey|hello there|hi there|good (?:morning|afternoon|evening|day)|greetings|moin|hallo|servus|bonjour|hola)(?: (?:there|again|everyone|turnkeep))?$/i,
    { kind: 'greeting' },
  ),
  words(
    /^(?:thanks?(?: you)?(?: (?:very|so) much| a lot)?|many thanks|thx|ty|cheers|great,? thanks?(?: you)?|danke|merci)$/i,
    { kind: 'thanks' },
  ),
];

function fileRules(): Rule[] {
  return [
    (text) => {
      const match =
        /^(?:search|find|look|grep)(?: in| through)?(?: all)?(?: my| the)? (?:files|workspace)(?: for| with| containing)? (.+)$/i.exec(
          text,
        ) ??
        /^(?:search|find|look|grep)(?: for)? (.+) in(?: all)?(?: my| the)? (?:files|workspace)$/i.exec(text) ??
        /^(?:which|what) files (?:have|contain|mention|are called|are named) (.+)$/i.exec(text) ??
        /^(?:find|search)(?: for)?(?: the| a)? files?(?: called| named)? (.+)$/i.exec(text) ??
        /^grep (.+)$/i.exec(text);
      return match && { kind: 'search_files', query: unquoted(match[1]!) };
    },
    (text) => {
      const match =
        /^(?:ls|dir)(?: (.+))?$/i.exec(text) ??
        /^(?:list|show)(?: me)?(?: all)?(?: the| my)? (?:files|folder|directory|workspace)(?: (?:in|of|under))?(?: (.+))?$/i.exec(
          text,
        ) ??
        /^(?:what|which) files (?:are (?:there|here)|do (?:you|i|we) have)(?: in (.+))?$/i.exec(text) ??
        /^(?:what|which) files are in (.+)$/i.exec(text) ??
        /^what(?: is|'s) in (?:the |my )?(?:workspace|folder|directory)(?: (.+))?$/i.exec(text);
      if (!match) return null;
      const path = unquoted(match[1] ?? '.').replace(/^(?:the|my) (?:workspace|folder|directory)(?: |$)/i, '');
      return { kind: 'list_files', path: path || '.' };
    },
    (text) => {
      const match =
        /^(?:read|cat|open|show|display|print)(?: me)?(?: the)?( file)? (.+?)(?: from line (\d{1,9}))?$/i.exec(text);
      if (!match) return null;
      const path = unquoted(match[2]!);
      // "read me a story" names no file; "read notes.txt", "read src/a" and "read file LICENSE" do.
      const isPath =
        match[1] || path !== match[2] || /^cat /i.test(text) || (!path.includes(' ') && /[./\\_-]|^[A-Z]+$/.test(path));
      return isPath ? { kind: 'read_file', path, offset: Number(match[3] ?? 1) || 1 } : null;
    },
  ];
}
