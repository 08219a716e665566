/** The tools for notes. They store nothing: the call itself, once in the transcript, is the note (notes.ts). */
import type { Message } from '../../core/terms.ts';
import type { Call } from './call.ts';
import { refused, succeeded } from './call.ts';
import { countOf } from './dates.ts';
import { plainText } from './markdown.ts';
import { foldNotes, MAX_NOTE, NOTES_ADD, NOTES_REMOVE } from './notes.ts';

type History = readonly Message[];

/** Keeps a note. */
export function addNoteCall(text: string, history: History): Call {
  return {
    name: NOTES_ADD,
    args: { text },
    preview: text,
    async run() {
      if (text.length > MAX_NOTE) {
        return refused(`The note is longer than ${MAX_NOTE} characters.`);
      }
      const { next } = foldNotes(history);
      return succeeded(`Note ${next}: ${text}`, `Noted as number **${next}**: ${plainText(text)}`);
    },
  };
}

/** Shows the notes. */
export function listNotesCall(history: History): Call {
  return {
    name: 'notes_list',
    args: {},
    preview: '',
    async run() {
      const { notes } = foldNotes(history);
      if (notes.length === 0) {
        return succeeded('There are no notes.', 'There are no notes in this chat. Say `note: buy milk` to keep one.');
      }
      const lines = notes.map(({ number, text }) => `${number}. ${text}`);
      const said = notes.map(({ number, text }) => `- **${number}**: ${plainText(text)}`);
      return succeeded(lines.join('\n'), `${countOf(notes.length, 'note')} in this chat:\n\n${said.join('\n')}`);
    },
  };
}

/** Forgets one note, or all. */
export function removeNoteCall(which: number | 'all', history: History): Call {
  return {
    name: NOTES_REMOVE,
    args: which === 'all' ? { all: true } : { number: which },
    preview: which === 'all' ? 'all notes' : `note ${which}`,
    async run() {
      const { notes } = foldNotes(history);
      if (which === 'all') {
        if (notes.length === 0) return refused('There are no notes to forget.');
        return succeeded(`Forgot ${countOf(notes.length, 'note')}.`);
      }
      const note = notes.find(({ number }) => number === which);
      if (!note) return refused(`There is no note ${which}. Say \`my notes\` to see them.`);
      return succeeded(`Forgot note ${which}: ${note.text}`, `Forgot note **${which}**: ${plainText(note.text)}`);
    },
  };
}
