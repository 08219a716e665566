/**
 * What a call of an MCP tool gave, as text that a model reads. Pure, and takes whatever a server may send. Bounded, and what
 * is cut or cannot be shown is said. Source: the Model Context Protocol, `CallToolResult`, revision 2025-11-25.
 */
import { isDeeperThan, isRecord, wellFormed } from '../core/text.ts';
import { failed, type ToolResult } from '../workspace/tool.ts';

/** Most characters of a result: it stays in the conversation, and goes to the model with every further step. */
const MAX_RESULT = 64 * 1024;
const MAX_ITEMS = 1_000;
const MAX_DEPTH = 100;

/** @param hide takes what is secret out of a text */
export function readCallResult(result: unknown, hide: (text: string) => string): ToolResult {
  if (isDeeperThan(result, MAX_DEPTH)) return failed('The result is nested too deep to be read.');
  const { content, structuredContent, isError } = isRecord(result) ? result : {};
  const items = Array.isArray(content) ? content : [];
  const parts = items.slice(0, MAX_ITEMS).map(describe);
  if (items.length > MAX_ITEMS) parts.push(`[${items.length - MAX_ITEMS} more parts are left out.]`);
  // A server that gives both says the same twice.
  const hasText = items.some((item) => isRecord(item) && item.type === 'text');
  if (structuredContent !== undefined && !hasText) parts.push(JSON.stringify(structuredContent, null, 2) ?? '');
  // Hidden before it is cut: at the seam a secret would not be whole.
  const whole = hide(parts.join('\n\n'));
  const text = wellFormed(whole.slice(0, MAX_RESULT));
  const rest = whole.length - MAX_RESULT;
  const shown = rest > 0 ? `${text}\n[${rest} more characters are cut here.]` : text;
  return { result: shown.trim() === '' ? '[The tool gave nothing.]' : shown, is_error: isError === true };
}

function describe(item: unknown): string {
  if (!isRecord(item)) return brief(item);
  switch (item.type) {
    case 'text':
      return typeof item.text === 'string' ? item.text : brief(item.text);
    case 'image':
    case 'audio':
      return `[${item.type} of type ${brief(item.mimeType)}, ${bytes(item.data)}; it cannot be shown here]`;
    case 'resource': {
      const resource = isRecord(item.resource) ? item.resource : {};
      const head = `[resource ${brief(resource.uri)}]`;
      if (typeof resource.text === 'string') return `${head}\n${resource.text}`;
      return `${head.slice(0, -1)}, ${brief(resource.mimeType)}, ${bytes(resource.blob)}; it cannot be shown here]`;
    }
    case 'resource_link':
      return `[resource ${brief(item.uri)}: ${brief(item.title ?? item.name)}${item.description ? `, ${brief(item.description)}` : ''}]`;
    default:
      return brief(item);
  }
}

/** How many bytes a text in Base64 stands for. */
const bytes = (data: unknown): string =>
  typeof data === 'string' ? `${Math.floor((data.replace(/=+$/, '').length * 3) / 4)} bytes` : 'without data';

const MAX_BRIEF = 2_000;

function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'unknown');
  return text.length > MAX_BRIEF ? `${text.slice(0, MAX_BRIEF)}…` : text;
}
