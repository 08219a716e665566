/**
 * The pictures of the page for the documentation: a program, run by `npm run screenshots`.
 *
 *   tsx test/screenshots/screenshots.ts [--out FOLDER] [--all]
 *
 * Writes PNG files into docs/images, or FOLDER; with `--all` also those that only a developer wants to look at.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { CHROMIUM_ARGS, findBrowser } from '../support/chromium.ts';
import { ARABIC, BREAD, MIGRATION, QUERY } from './content.ts';
import { buildStage, type Stage } from './stage.ts';

const DESKTOP = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const NARROW = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };
const DARK = { colorScheme: 'dark' } as const;

interface Shot {
  name: string;
  options: BrowserContextOptions;
  /** The conversation that is open, by its title; none for a new one. */
  title?: string;
  isBare?: boolean;
  isForDevelopers?: boolean;
  /** What a person does before the picture is taken. */
  act?(page: Page): Promise<unknown>;
}

const settings = (page: Page) => page.keyboard.press(',');
const sheet = (page: Page) => page.keyboard.press('?');
const commands = (page: Page) => page.getByLabel('Message', { exact: true }).fill('/');
const models = (page: Page) => page.locator('.picker-model').click();
const folders = async (page: Page) => {
  await page.locator('.picker-folder').click();
  await page.locator('.popup:visible .option-head', { hasText: 'In ' }).waitFor();
};
const intoFolder = async (page: Page) => {
  await folders(page);
  await page.locator('.popup:visible .option', { hasText: 'Up' }).click();
  await page.locator('.popup:visible .option-label', { hasText: 'Use this folder' }).waitFor();
};
const noFolder = async (page: Page) => {
  await folders(page);
  await page.keyboard.type('/no/such');
  await page.locator('.popup:visible [role="status"]', { hasText: 'no such' }).waitFor();
};
const found = async (page: Page) => {
  await page.getByLabel('Search conversations').fill('customers');
  await page.locator('.hit mark').first().waitFor();
};
const menu = (page: Page) => page.getByRole('button', { name: 'Conversations' }).click();
const blur = (page: Page) => page.locator('#message').blur();
const after =
  (...acts: ((page: Page) => Promise<unknown>)[]) =>
  async (page: Page) => {
    for (const act of acts) await act(page);
  };

const SHOTS: Shot[] = [
  { name: 'desktop-light', options: DESKTOP, title: QUERY.title },
  { name: 'desktop-dark', options: { ...DESKTOP, ...DARK }, title: BREAD.title },
  { name: 'approval', options: DESKTOP, title: MIGRATION.title },
  { name: 'first-run', options: DESKTOP, isBare: true },
  { name: 'phone-light', options: PHONE, title: BREAD.title },
  { name: 'phone-dark', options: { ...PHONE, ...DARK }, title: MIGRATION.title },
  { name: 'phone-list', options: PHONE, title: BREAD.title, act: menu },
  { name: 'settings', options: DESKTOP, title: BREAD.title, act: after(blur, settings) },
  { name: 'right-to-left', options: DESKTOP, title: ARABIC.title, isForDevelopers: true },
  { name: 'keys', options: DESKTOP, title: BREAD.title, act: after(blur, sheet), isForDevelopers: true },
  { name: 'keys-narrow', options: NARROW, title: BREAD.title, act: sheet, isForDevelopers: true },
  { name: 'settings-narrow', options: { ...NARROW, ...DARK }, act: settings, isForDevelopers: true },
  { name: 'commands', options: DESKTOP, title: BREAD.title, act: commands, isForDevelopers: true },
  { name: 'commands-narrow', options: NARROW, title: BREAD.title, act: commands, isForDevelopers: true },
  { name: 'models', options: { ...DESKTOP, ...DARK }, title: BREAD.title, act: models, isForDevelopers: true },
  { name: 'models-phone', options: PHONE, title: BREAD.title, act: models, isForDevelopers: true },
  { name: 'folders', options: DESKTOP, title: BREAD.title, act: folders, isForDevelopers: true },
  {
    name: 'folders-into',
    options: { ...DESKTOP, ...DARK },
    title: BREAD.title,
    act: intoFolder,
    isForDevelopers: true,
  },
  { name: 'folders-phone', options: PHONE, title: BREAD.title, act: folders, isForDevelopers: true },
  { name: 'folders-none-phone', options: { ...PHONE, ...DARK }, act: noFolder, isForDevelopers: true },
  { name: 'found', options: DESKTOP, title: QUERY.title, act: found, isForDevelopers: true },
  { name: 'found-phone', options: { ...PHONE, ...DARK }, act: after(menu, found), isForDevelopers: true },
  { name: 'narrow', options: NARROW, title: QUERY.title, isForDevelopers: true },
  { name: 'narrow-approval', options: NARROW, title: MIGRATION.title, isForDevelopers: true },
  { name: 'first-run-phone', options: { ...PHONE, ...DARK }, isBare: true, isForDevelopers: true },
];

async function take(browser: Browser, stage: Stage, shot: Shot, folder: string): Promise<void> {
  const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB', ...shot.options });
  const page = await context.newPage();
  const id = shot.title === undefined ? undefined : stage.ids.get(shot.title);
  await page.goto(`${shot.isBare ? stage.bareUrl : stage.url}/${id ? `#/s/${id}` : ''}`);
  await page.locator('.connection[data-state="live"]').waitFor();
  await page
    .locator(id ? '.turn' : '.welcome')
    .first()
    .waitFor();
  await shot.act?.(page);
  // What was changed is painted.
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  await page.screenshot({ path: path.join(folder, `${shot.name}.png`) });
  await context.close();
}

const { values } = parseArgs({ options: { out: { type: 'string' }, all: { type: 'boolean', default: false } } });
const folder = path.resolve(values.out ?? path.join(import.meta.dirname, '../../docs/images'));
if (findBrowser() === null) throw new Error('There is no Chromium on this machine: set CHROMIUM to its path.');
await mkdir(folder, { recursive: true });
const stage = await buildStage();
const browser = await chromium.launch({ executablePath: findBrowser()!, args: CHROMIUM_ARGS });
try {
  for (const shot of SHOTS) {
    if (values.all || !shot.isForDevelopers) await take(browser, stage, shot, folder);
  }
} finally {
  await browser.close();
  await stage.close();
}
