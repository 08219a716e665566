/**
 * A command as it may be shown: what looks like a secret is hidden, and what would make the text look other than it is
 * (control characters, letters of another direction) is spelled out (AP5). Pure.
 *
 * An agent that was talked into something writes these words, too. So nothing is hidden by its looks that could be a
 * command or a path: a hidden value has no gap and no sign of the shell, does not begin like a path, and stands where
 * nothing is run; a token is known by more than its first letters, which a program may have in its name as well.
 */
import { SHORTEST_SECRET } from './secret-names.ts';

const HIDDEN = '[hidden]';

// The counts are bounded, so that no text makes them slow.
const WORD = 'key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?';
const NAME = `[\\w.-]{0,40}(?:${WORD}|auth(?!or(?!i[sz]))|cookie|signature)[\\w.-]{0,40}`;
/** An option with a value behind it: one that only has such a word in its name may have none, and a command behind it. */
const OPTION = `--(?!no-|without-)[\\w.-]{0,40}(?:${WORD})[ \\t]{1,8}`;
/** One word that is no path, in quotes or bare. */
const VALUE = `(["']?)(?![/~.-])([^\\s"'\`$;&|<>(){}\\\\]{1,4096})`;
/** Letters of a token, one of them a digit; not the name of a file. */
const TOKEN = '(?=[\\w-]{0,255}\\d)[\\w-]{12,1024}(?![\\w-]|[./]\\w)';

/** NAME=value, ?name=value */
const ASSIGNMENT = new RegExp(`(${NAME})=${VALUE}\\2`, 'gi');
/** A value that may be the name of a program, or the path of one. */
const COULD_RUN = /\/|^[a-z][a-z_.+-]*\d{0,2}$/;

const RULES: [pattern: RegExp, shown: string][] = [
  // Headers, which stand in quotes.
  [
    /(["'](?:proxy-authorization|authorization|cookie|x-api-key|x-auth-token)):[ \t]*(?:[\w-]{1,40}[ \t]+)?(?![/~.-])[\w~+/=.:%-]{3,4096}/gi,
    `$1: ${HIDDEN}`,
  ],
  [/(?<=["':][ \t]{0,4})(bearer|basic)[ \t]+(?![/~.-])[\w.~+/=-]{6,4096}/gi, `$1 ${HIDDEN}`],
  // scheme://user:password@host
  [/\b([a-z][a-z0-9+.-]{1,30}:\/\/)[^\s/@"'`$;&|<>(){}\\?#]{1,1024}@/gi, `$1${HIDDEN}@`],
  // "name": "value", --name value
  [new RegExp(`(["']${NAME}["'][ \\t]{0,8}:[ \\t]{0,8})${VALUE}\\2`, 'gi'), `$1$2${HIDDEN}$2`],
  [new RegExp(`(${OPTION})${VALUE}\\2`, 'gi'), `$1$2${HIDDEN}$2`],
  // -u user:password, and no user and group.
  [/([ \t](?:-u|--user)[ \t=]?)(?!(?:\d+|root):(?:\d+|root)\b)[\w.@-]{1,256}:[\w.~+=!#%^@,-]{1,1024}/g, `$1${HIDDEN}`],
  // Tokens that are known by how they begin.
  [new RegExp(`(?<![\\w/.-])(?:sk|rk|pk|gsk|xai|nvapi|csk|glpat|xox[abeprs])[-_]${TOKEN}`, 'g'), HIDDEN],
  [new RegExp(`(?<![\\w/.-])(?:npm|hf|gh[pousr]|github_pat)_${TOKEN}`, 'g'), HIDDEN],
  [/\b(?:(?:AKIA|ASIA)[A-Z0-9]{12,64}|AIza[\w-]{20,128}|eyJ[\w-]{8,4096}\.[\w-]{1,4096}(?:\.[\w-]{0,1024})?)/g, HIDDEN],
];

/** Characters that cannot be seen, or that change where others are seen. */
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Hides the secrets of a command or of other words that a person is asked about.
 * @param secrets what is known to be secret: the keys and the credential of the configuration
 */
export function redactCommand(text: string, secrets: readonly string[]): string {
  let shown = text;
  // The longest first: one may be the beginning of another.
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) {
    if (secret.length < SHORTEST_SECRET) continue;
    for (const form of new Set([secret, encodeURIComponent(secret)])) shown = shown.replaceAll(form, HIDDEN);
  }
  shown = redactAssignments(shown);
  for (const [pattern, replacement] of RULES) shown = shown.replace(pattern, replacement);
  return shown.replace(UNSEEN, (sign) => `\\u{${sign.codePointAt(0)!.toString(16)}}`);
}

/** Hides what is given to a name; not where it may be run by that name in the same text. */
function redactAssignments(text: string): string {
  const used = new Set([...text.matchAll(/\$\{?(\w{1,100})/g)].map(([, name]) => name));
  const isUsedAnyhow = /\balias\b|\$\{!/.test(text);
  return text.replace(ASSIGNMENT, (whole, name: string, quote: string, value: string) => {
    const isUsed = isUsedAnyhow || used.has(/\w*$/.exec(name)![0]);
    return isUsed && COULD_RUN.test(value) ? whole : `${name}=${quote}${HIDDEN}${quote}`;
  });
}
