/** The images of a request, in either protocol, and what the pickiest provider refuses of them. */

export interface SentImage {
  mediaType: string;
  bytes: Buffer;
}

interface Found {
  /** Media type and base64. */
  image: [type: string, data: string] | null;
}

/** All images of a request as it came. */
function found(raw: unknown): Found[] {
  const messages = (raw as { messages?: { content?: unknown }[] }).messages ?? [];
  return messages.flatMap(({ content }) => (Array.isArray(content) ? content.flatMap(ofPart) : []));
}

function ofPart(part: {
  type?: string;
  image_url?: { url?: string };
  source?: { type?: string; media_type?: string; data?: string };
}): Found[] {
  if (part.type === 'image_url') {
    const [, type, data] = /^data:([^;,]*);base64,(.*)$/s.exec(part.image_url?.url ?? '') ?? [];
    return [{ image: type !== undefined && data !== undefined ? [type, data] : null }];
  }
  if (part.type === 'image') {
    const { type, media_type = '', data = '' } = part.source ?? {};
    return [{ image: type === 'base64' ? [media_type, data] : null }];
  }
  return [];
}

/** The images of a request that can be read. */
export const imagesOf = (raw: unknown): SentImage[] =>
  found(raw).flatMap(({ image }) => (image ? [{ mediaType: image[0], bytes: Buffer.from(image[1], 'base64') }] : []));

const MAGIC: Record<string, (bytes: Buffer) => boolean> = {
  'image/png': (bytes) => bytes.subarray(1, 4).toString('latin1') === 'PNG' && bytes.length > 33,
  'image/jpeg': (bytes) => bytes.readUInt16BE(0) === 0xffd8,
  'image/gif': (bytes) => bytes.subarray(0, 3).toString('latin1') === 'GIF',
  'image/webp': (bytes) => bytes.subarray(8, 12).toString('latin1') === 'WEBP',
};

/** The faults of a request's images, in words. */
export function imageFaults(raw: unknown): string[] {
  const images = found(raw);
  const faults = images.length > 20 ? [`${images.length} images`] : [];
  for (const { image } of images) {
    if (!image) {
      faults.push('an image without its bytes');
      continue;
    }
    const [type, data] = image;
    const bytes = Buffer.from(data, 'base64');
    if (bytes.toString('base64') !== data) faults.push('an image that is not base64');
    else if (bytes.length < 4) faults.push('an empty image');
    else if (!MAGIC[type]?.(bytes)) faults.push(`an image that is no ${type}`);
    else if (bytes.length > 5_242_880) faults.push('an image of more than 5 MB');
  }
  return faults;
}
