/**
 * `"error": null` in a chunk: some servers send the field with every chunk, and the SDK takes its presence for a failure.
 * Here the field gets another name on the wire, before the SDK sees it.
 *
 * The bytes `"error"`, a colon and `null` are a key and its value wherever they stand in JSON: inside a string the quotes
 * would be escaped. Other bytes pass as they are; only the beginning of such a field at the end of a packet is held until
 * the next one.
 */

const NULL_ERROR = /"error"(\s*:\s*null)/g;
/** What may become such a field with the bytes that follow. */
const BEGINNING = /"(?:e(?:r(?:r(?:o(?:r(?:"(?:\s*(?::\s*(?:n(?:u(?:l)?)?)?)?)?)?)?)?)?)?)?$/;
/** Of the end of a packet only so much is looked at: the field with some blanks in it. */
const LONGEST = 64;
const MARK = Buffer.from('"err');
const QUOTE = 0x22;

export interface NullErrors {
  push(bytes: Uint8Array): Uint8Array;
  /** What is still held. */
  end(): Uint8Array;
}

/** Starts the filter of one answer. */
export function createNullErrors(): NullErrors {
  let held = Buffer.alloc(0);
  return {
    push(packet) {
      const packetBytes = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength);
      const bytes = held.length > 0 ? Buffer.concat([held, packetBytes]) : packetBytes;
      held = Buffer.alloc(0);
      // The usual packet ends with a frame and holds no error: two looks, no copy.
      const tail = bytes.subarray(-LONGEST);
      const at = tail.includes(QUOTE) ? tail.toString('latin1').search(BEGINNING) : -1;
      let whole = bytes;
      if (at >= 0) {
        const cut = bytes.length - tail.length + at;
        held = Buffer.from(bytes.subarray(cut));
        whole = bytes.subarray(0, cut);
      }
      if (!whole.includes(MARK)) return whole;
      return Buffer.from(whole.toString('latin1').replace(NULL_ERROR, '"no_error"$1'), 'latin1');
    },
    end() {
      const rest = held;
      held = Buffer.alloc(0);
      return rest;
    },
  };
}
