/** The texts of the message boxes without a page: what the server's draft and a storage make of them. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

// The page is plain JavaScript: its modules have no types to import.
// biome-ignore-start lint/suspicious/noExplicitAny: the drafts of the page are looked at as they are.
type Drafts = any;
// biome-ignore-end lint/suspicious/noExplicitAny: as above.
const moduleOf = (name: string): Promise<Drafts> => import(new URL(`../../static/${name}`, import.meta.url).href);

const ID = '20260303_130002_abcdef';

/** A server with one draft, and a tab that can be loaded anew. */
async function aTab() {
  const { createDrafts, NEW } = await moduleOf('drafts.js');
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => void kept.set(key, text),
    removeItem: (key: string) => void kept.delete(key),
  };
  const server = { draft: '', isThere: true };
  let drafts: Drafts = null;
  const tab = {
    NEW,
    server,
    drafts: (): Drafts => drafts,
    load() {
      vi.clearAllTimers();
      const saveDraft = async (_id: string, draft: string) => {
        if (!server.isThere) throw new Error('no answer');
        server.draft = draft;
      };
      drafts = createDrafts({ saveDraft, storage });
    },
    /** What the box says once the server's draft is known. */
    async offered(draft = server.draft) {
      server.draft = draft;
      drafts.offered(ID, draft);
      await vi.runAllTimersAsync();
      return drafts.box(ID).text;
    },
    async typed(text: string) {
      drafts.typed(ID, text);
      await vi.runAllTimersAsync();
    },
  };
  tab.load();
  return tab;
}

describe('drafts', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('location', { pathname: '/' });
    vi.stubGlobal('document', { addEventListener() {}, visibilityState: 'visible' });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test('[UI2] a text that came from another device and was tried here is not replaced by the next draft', async () => {
    const tab = await aTab();
    expect(await tab.offered('from the laptop')).toBe('from the laptop');
    tab.drafts().tryOf(ID, 'prompt', { text: 'from the laptop', attachments: [] });
    expect(await tab.offered('from the laptop, and more')).toBe('from the laptop');
    tab.load();
    expect(await tab.offered()).toBe('from the laptop');
    // Once it was accepted the words of the other are left alone.
    tab.drafts().accepted(ID, 'from the laptop', []);
    await vi.runAllTimersAsync();
    expect(tab.server.draft).toBe('from the laptop, and more');
  });

  test('[UI30] own words that another device wrote over stay here, also after a reload, and overwrite nothing', async () => {
    const tab = await aTab();
    await tab.offered('');
    await tab.typed('mine');
    expect(await tab.offered('theirs')).toBe('mine');
    for (let loads = 0; loads < 2; loads += 1) {
      tab.load();
      tab.drafts().reconnected();
      expect(await tab.offered()).toBe('mine');
      tab.drafts().reconnected();
      await vi.runAllTimersAsync();
      expect(tab.server.draft).toBe('theirs');
    }
    await tab.typed('');
    expect(tab.server.draft).toBe('theirs');
    tab.load();
    expect(await tab.offered()).toBe('theirs');
    await tab.typed('theirs, and mine');
    expect(tab.server.draft).toBe('theirs, and mine');
    await tab.typed('');
    expect(tab.server.draft).toBe('');
  });

  test('[UI30] what a page could not save as it went is saved by the next one only over what it was written over', async () => {
    const tab = await aTab();
    const leaveWith = async (text: string) => {
      tab.server.isThere = false;
      await tab.typed(text);
      tab.server.isThere = true;
      tab.load();
      tab.drafts().reconnected();
      await vi.runAllTimersAsync();
    };
    await tab.offered('');
    await tab.typed('one');
    await leaveWith('one, two');
    expect(await tab.offered()).toBe('one, two');
    expect(tab.server.draft).toBe('one, two');
    // The other has written meanwhile: nothing is lost on either side.
    await leaveWith('one, two, three');
    expect(await tab.offered('theirs')).toBe('one, two, three');
    expect(tab.server.draft).toBe('theirs');
    tab.load();
    expect(await tab.offered('')).toBe('one, two, three');
    // A box that a sent message has left takes what there is.
    await tab.typed('sent');
    tab.server.isThere = false;
    tab.drafts().accepted(ID, 'sent', []);
    await vi.runAllTimersAsync();
    tab.server.isThere = true;
    tab.load();
    expect(await tab.offered('theirs, later')).toBe('theirs, later');
    expect(tab.server.draft).toBe('theirs, later');
  });

  test('[UI2] what is found to have arrived leaves the box of a page that was away, and no newer draft goes with it', async () => {
    for (const [draft, left] of [
      ['asked', ''],
      ['theirs', 'theirs'],
    ] as const) {
      const tab = await aTab();
      await tab.offered('');
      await tab.typed('asked');
      tab.drafts().tryOf(ID, 'prompt', { text: 'asked', attachments: [] });
      tab.load();
      tab.drafts().accepted(ID, 'asked', []);
      await vi.runAllTimersAsync();
      expect(await tab.offered(draft)).toBe(left);
      expect(tab.server.draft).toBe(left);
    }
  });

  test('[UI30] a first message that was refused is a draft; one that was accepted is none', async () => {
    for (const isAccepted of [false, true]) {
      const tab = await aTab();
      tab.drafts().typed(tab.NEW, 'hello');
      tab.drafts().moved(ID);
      if (isAccepted) tab.drafts().accepted(ID, 'hello', []);
      await vi.runAllTimersAsync();
      expect(tab.server.draft).toBe(isAccepted ? '' : 'hello');
    }
  });
});
