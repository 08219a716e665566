// What the set-up tells a person: whole lines on stderr, for stdout belongs to the server.

/** Writes one line of the set-up to stderr. */
export function say(text) {
  process.stderr.write(`turnkeep: ${text}\n`);
}
