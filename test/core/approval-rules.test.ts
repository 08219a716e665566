/** The patterns of `approvals.allow`, and what is hidden of a command that a person is shown. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allows, exactPattern, readAllowPattern } from '../../server/core/approval-rules.ts';
import { redactCommand } from '../../server/core/redact-command.ts';

const isAllowed = (pattern: string, command: string | null, tool = 'terminal'): boolean => {
  const read = readAllowPattern(pattern);
  if (!read) throw new Error(`no pattern: ${pattern}`);
  return allows(read, { tool, command });
};

describe('patterns', () => {
  it.each([
    ['write_file', null, 'write_file'],
    ['terminal: npm test', 'npm test', 'terminal'],
    ['terminal: npm test *', 'npm test', 'terminal'],
    ['terminal: npm test *', 'npm test -- --watch=false a/b.ts "c d"', 'terminal'],
    ['terminal: a && b > c', 'a && b > c', 'terminal'],
    ['terminal: ls: *', 'ls: x', 'terminal'],
  ])('[AP3] %j allows %j', (pattern, command, tool) => {
    expect(isAllowed(pattern, command, tool)).toBe(true);
  });

  it.each([
    ['write_file', null, 'edit_file'],
    ['terminal: npm test', 'npm test ', 'terminal'],
    ['terminal: npm test', 'npm test x', 'terminal'],
    ['terminal: npm test', 'NPM TEST', 'terminal'],
    ['terminal: npm test *', 'npm testing', 'terminal'],
    ['terminal: npm test *', ' npm test x', 'terminal'],
    ['terminal: npm test *', 'X=1 npm test', 'terminal'],
    ['terminal: npm test', 'npm test', 'shell'],
  ])('[AP3] %j does not allow %j', (pattern, command, tool) => {
    expect(isAllowed(pattern, command, tool)).toBe(false);
  });

  it.each([
    ';',
    '&',
    '&&',
    '|',
    '||',
    '`',
    '$(',
    '${',
    '$',
    '>',
    '>>',
    '<',
    '<(',
    '(',
    ')',
    '{',
    '}',
    '\n',
    '\r',
    '\0',
    '\\',
  ])('[AP3] a star never reaches over %j; such a command is allowed as a whole or not at all', (sign) => {
    for (const command of [`npm test ${sign} rm -r x`, `npm test${sign}rm`, `npm test ${sign}`, `npm test "${sign}"`]) {
      expect(isAllowed('terminal: npm test *', command)).toBe(false);
      expect(isAllowed(`terminal: ${command}`, command)).toBe(true);
      expect(readAllowPattern(`terminal: ${command} *`)).toBeNull();
    }
  });

  it.each([
    '',
    ' ',
    '*',
    'terminal:',
    'terminal: ',
    'terminal: *',
    'terminal:  *',
    'two words',
    'terminal:npm test',
    ': ls',
    'a/b',
  ])('[AP3] %j is no pattern: none allows every command', (text) => expect(readAllowPattern(text)).toBeNull());

  it('[AP3] the name of a tool alone allows no command', () => {
    expect(isAllowed('terminal', 'ls')).toBe(false);
  });

  it('[AP3] what is kept of a call allows this call and no other', () => {
    const command = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.constantFrom('npm', 'test', ' ', '*', ' *', ';', ': ', '\n', '$(')).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(command, command, (one, other) => {
        const pattern = exactPattern({ tool: 'terminal', command: one });
        if (pattern === null) return;
        expect(isAllowed(pattern, one)).toBe(true);
        if (one !== other) expect(isAllowed(pattern, other)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it('[AP3] a command that looks like a pattern with a star is kept by none', () => {
    expect(exactPattern({ tool: 'terminal', command: 'ls *' })).toBeNull();
    expect(exactPattern({ tool: 'terminal', command: 'ls; rm *' })).toBeNull();
    expect(exactPattern({ tool: 'terminal', command: 'ls' })).toBe('terminal: ls');
    expect(exactPattern({ tool: 'write_file', command: null })).toBe('write_file');
  });
});

describe('what is shown', () => {
  const SECRETS = ['correct horse battery', 'sw0rdf1sh'];

  it.each([
    ['echo correct horse battery', 'echo [hidden]'],
    ['curl x?k=correct%20horse%20battery', 'curl x?k=[hidden]'],
    ['API_KEY=abc123 make', 'API_KEY=[hidden] make'],
    ['export GITHUB_TOKEN="abc" DB_PASSWORD=\'x y\'', 'export GITHUB_TOKEN="[hidden]" DB_PASSWORD=\'x y\''],
    [
      'curl -H "Authorization: Bearer abcdef123" https://x.example',
      'curl -H "Authorization: [hidden]" https://x.example',
    ],
    ["curl -H 'X-Api-Key: abcdef'", "curl -H 'X-Api-Key: [hidden]'"],
    ['git clone https://me:pass@host.example/a.git', 'git clone https://[hidden]@host.example/a.git'],
    ['curl "https://x.example/?a=1&access_token=zzz&b=2"', 'curl "https://x.example/?a=1&access_token=[hidden]&b=2"'],
    ['mysql --password hunter2 db', 'mysql --password [hidden] db'],
    ['mysql --password=hunter2 db', 'mysql --password=[hidden] db'],
    ['curl -u me:hunter2 x', 'curl -u [hidden] x'],
    [`curl -d '{"password": "hunter2", "a": 1}'`, `curl -d '{"password": "[hidden]", "a": 1}'`],
    ['echo ghp_abcdefghijklmnop sk-proj-abcdefghijkl AKIAABCDEFGHIJKLMNOP', 'echo [hidden] [hidden] [hidden]'],
  ])('[AP5] secrets are hidden: %s', (command, shown) => {
    expect(redactCommand(command, SECRETS)).toBe(shown);
  });

  it.each([
    'TOKEN="$(rm -r ~)" true',
    'KEY=`id` true',
    'KEY=a;rm -r x',
    "KEY='a;rm -r x' sh -c $KEY",
    'echo authorization: ; rm -r x',
    'echo "bearer\nrm -r x"',
    'x --password /home/me',
    'x --token ~/keys',
    'x --token --force',
    'cp -r key/ /backup',
    'npm run auth',
    'https://host.example/a@b',
  ])('[AP5] nothing that could be a command or a path is hidden by its looks: %j', (command) => {
    const shown = redactCommand(command, []);
    for (const word of ['rm -r', '`id`', '/home/me', '~/keys', '--force', '/backup', 'npm run auth', 'a@b', ';']) {
      if (command.includes(word)) expect(shown).toContain(word);
    }
  });

  it('[AP5] characters that cannot be seen, or that turn others around, are spelled out', () => {
    expect(redactCommand('ls \u202e\u200b\x1b[2K\tx\ny', [])).toBe('ls \\u{202e}\\u{200b}\\u{1b}[2K\tx\ny');
  });

  it('[AP5] no text makes it slow', () => {
    const long = ['key', 'key-', '"key" : ', '--key ', 'a://', 'a:b@', 'bearer ', 'eyJaaaaaaaa.', '-u a:', '"', '\\'];
    for (const part of long) {
      const text = part.repeat(Math.floor(110_000 / part.length));
      const started = performance.now();
      redactCommand(text, SECRETS);
      expect(performance.now() - started, part).toBeLessThan(3000);
    }
  });
});
