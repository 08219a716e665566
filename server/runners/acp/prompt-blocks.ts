/**
 * A prompt as the blocks that an agent is sent: what it has not been told, the files, the person's words last. Files have
 * the bounds and words of our own models' (AT7, AT8): text goes as text, which every agent takes, and an image only to
 * one that says it takes images.
 */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { wellFormed } from '../../core/text.ts';
import { createAttached, type UserPart } from '../model/attached.ts';
import type { Turn } from '../runner.ts';

export interface PromptParts {
  /** Whose files they are. */
  turn: Pick<Turn, 'sessionId' | 'attachment'>;
  text: string;
  /** Ids of files. */
  attachments: readonly string[];
  /** Whether the agent takes images. */
  image: boolean;
  transcript: string | null;
}

/** Never empty. */
export async function promptBlocks({
  turn,
  text,
  attachments,
  image,
  transcript,
}: PromptParts): Promise<ContentBlock[]> {
  const files = createAttached(turn, () => image);
  await files.add(attachments);
  const blocks = files.partsOf(attachments).map(blockOf);
  if (transcript !== null) blocks.unshift(textBlock(transcript));
  if (text.trim() !== '' || blocks.length === 0) blocks.push(textBlock(text));
  return blocks;
}

const textBlock = (text: string): ContentBlock => ({ type: 'text', text: wellFormed(text) });

function blockOf(part: UserPart): ContentBlock {
  if (part.type === 'text') return textBlock(part.text);
  const { data, mediaType } = part;
  if (!(data instanceof Uint8Array)) throw new Error('an attached image without its bytes');
  return { type: 'image', mimeType: mediaType, data: Buffer.from(data).toString('base64') };
}
