/**
 * A command as it may be shown: what looks like a secret is hidden, and what would make the text look other than it is
 * (control characters, letters of another direction) is spelled out (AP5). Pure.
 *
 * An agent that was talked into something writes these words, too. So nothing is hidden by its looks that could be a
 * command or a path: a hidden value has no gap and no sign of the shell.
 */

const HIDDEN = '[hidden]';
/** A shorter secret is no secret, and would tear holes into other words. */
const SHORTEST_SECRET = 6;

// The counts are bounded, so that no text makes them slow.
const NAME =
  '[\\w.-]{0,40}(?:key|token|secret|passw(?:or)?d|passphrase|pwd|credential|auth|cookie|signature)[\\w.-]{0,40}';
/** One word that is no path, in quotes or bare. */
const VALUE = `(["']?)(?![/~.-])[^\\s"'\`$;&|<>(){}\\\\]{1,4096}`;

const RULES: [pattern: RegExp, shown: string][] = [
  [
    /\b(authorization|cookie|x-api-key|x-auth-token):[ \t]*(?:[\w-]{1,40}[ \t]+)?[\w~+/=.:%-]{3,4096}/gi,
    `$1: ${HIDDEN}`,
  ],
  [/\b(bearer|basic)[ \t]+[\w.~+/=-]{6,4096}/gi, `$1 ${HIDDEN}`],
  // scheme://user:password@host
  [/\b([a-z][a-z0-9+.-]{1,30}:\/\/)[^\s/@"'`$;&|<>(){}\\?#]{1,1024}@/gi, `$1${HIDDEN}@`],
  // NAME=value, ?name=value, "name": "value", --name value
  [new RegExp(`(${NAME})=${VALUE}\\2`, 'gi'), `$1=$2${HIDDEN}$2`],
  [new RegExp(`(["']${NAME}["'][ \\t]{0,8}:[ \\t]{0,8})${VALUE}\\2`, 'gi'), `$1$2${HIDDEN}$2`],
  [new RegExp(`(--${NAME}[ \\t]{1,8})${VALUE}\\2`, 'gi'), `$1$2${HIDDEN}$2`],
  [/([ \t](?:-u|--user)[ \t=]?)[\w.@-]{1,256}:[\w.~+=!#%^@,-]{1,1024}/g, `$1${HIDDEN}`],
  // Tokens that are known by how they begin.
  [/\b(?:sk|rk|pk|gsk|xai|hf|nvapi|csk|glpat|npm|gh[pousr]|github_pat|xox[abeprs])[-_][\w-]{8,1024}/g, HIDDEN],
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
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET) continue;
    for (const form of new Set([secret, encodeURIComponent(secret)])) shown = shown.replaceAll(form, HIDDEN);
  }
  for (const [pattern, replacement] of RULES) shown = shown.replace(pattern, replacement);
  return shown.replace(UNSEEN, (sign) => `\\u{${sign.codePointAt(0)!.toString(16)}}`);
}
