/**
 * Twelve prompts that the built-in agent knows, with the kind of their answer. The help shows them and a test holds
 * the rules to them, so that the help cannot promise what is not there.
 */
import type { IntentKind } from './intents.ts';

export interface Example {
  prompt: string;
  kind: IntentKind;
  /** What comes back, for the help. */
  gives: string;
}

export const EXAMPLES: readonly Example[] = [
  { prompt: 'what is 15% of 80', kind: 'calculate', gives: 'arithmetic' },
  { prompt: 'what time is it', kind: 'date', gives: 'the time here and in UTC' },
  { prompt: 'what day is 2026-12-24', kind: 'date', gives: 'the weekday of a date' },
  { prompt: 'days until 2027-01-01', kind: 'date', gives: 'a count of days' },
  { prompt: 'note: buy milk', kind: 'note_add', gives: 'a note kept in this chat' },
  { prompt: 'my notes', kind: 'note_list', gives: "this chat's notes" },
  { prompt: 'search my chats for invoices', kind: 'search_chats', gives: 'earlier messages with these words' },
  { prompt: 'summarise this chat', kind: 'summarise_chat', gives: 'its main sentences, word for word' },
  { prompt: 'list files', kind: 'list_files', gives: 'what the workspace holds' },
  { prompt: 'read README.md', kind: 'read_file', gives: 'a text file of the workspace' },
  { prompt: 'search files for TODO', kind: 'search_files', gives: 'lines of files with this text' },
  { prompt: 'how do I connect a model?', kind: 'help_model', gives: 'how to talk to a language model here' },
];
