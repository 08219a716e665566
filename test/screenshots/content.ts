/** The made-up conversations of the screenshots: what was asked, and what a model answered. */
import type { Step } from '../support/fake-provider-steps.ts';

export interface MadeUp {
  title: string;
  prompt: string;
  answers: Step[][];
  pinned?: boolean;
}

const text = (words: string): Step => ({ text: words.match(/\s*\S+/g) ?? [words] });

export const BREAD: MadeUp = {
  title: 'Sourdough at 80 % hydration',
  prompt: 'I have 500 g of flour and want 80 % hydration. Give me a plan for the weekend, please.',
  pinned: true,
  answers: [
    [
      text(`For **500 g of flour** at 80 % you need 400 g of water in all. The starter brings some of both, so it counts.

| what | grams | share |
|---|--:|--:|
| flour | 450 | 90 % |
| water | 350 | 70 % |
| starter (1:1) | 100 | 20 % |
| salt | 10 | 2 % |

### Saturday
- [x] feed the starter in the morning
- [ ] mix flour and water at 14:00, rest for an hour
- [ ] add starter and salt, fold four times until 18:00

### Sunday
Bake at **245 °C** in a closed pot for 25 minutes, then 20 minutes without the lid. The crumb is set when the middle has 97 °C.

> A wet dough wants cold hands and no extra flour.`),
      { usage: { prompt_tokens: 412, completion_tokens: 231, total_tokens: 643 } },
    ],
  ],
};

export const QUERY: MadeUp = {
  title: 'Why the orders page is slow',
  prompt: 'The orders page takes two seconds. Have a look at `orders.sql`, please.',
  answers: [
    [
      { reasoning: ['The page joins orders with customers. ', 'Let me read the query before I guess.'] },
      { tool_calls: [{ name: 'read_file', args: { path: 'orders.sql' } }] },
    ],
    [
      text(`The query compares \`lower(email)\`, so the index on \`email\` cannot be used and every row is read:

\`\`\`sql
SELECT o.id, o.total, c.email
FROM orders o JOIN customers c ON c.id = o.customer_id
WHERE lower(c.email) = lower($1)
ORDER BY o.created_at DESC
LIMIT 50;
\`\`\`

An index on the expression helps at once:

\`\`\`sql
CREATE INDEX customers_email_lower ON customers (lower(email));
\`\`\`

With 1.2 million customers this goes from **1.9 s to 3 ms** here. Shall I put it into a migration?`),
      { usage: { prompt_tokens: 1460, completion_tokens: 198, total_tokens: 1658 } },
    ],
  ],
};

export const MIGRATION: MadeUp = {
  title: 'A migration for the index',
  prompt: 'Yes. Write it as `migrations/0042_email_index.sql`.',
  answers: [
    [
      text('I write the migration, without a lock on the table.'),
      {
        tool_calls: [
          {
            name: 'write_file',
            args: {
              path: 'migrations/0042_email_index.sql',
              content:
                '-- Finds a customer by e-mail, whatever its case.\nCREATE INDEX CONCURRENTLY customers_email_lower\n  ON customers (lower(email));\n',
            },
          },
        ],
      },
    ],
    [text('Done. Run it outside of a transaction: `CONCURRENTLY` needs that.')],
  ],
};

export const ARABIC: MadeUp = {
  title: 'رحلة إلى مراكش',
  prompt: 'أريد أن أقضي ثلاثة أيام في مراكش. ماذا تقترح؟',
  answers: [
    [
      text(`ثلاثة أيام تكفي لترى أجمل ما في المدينة:

1. **اليوم الأول:** ساحة جامع الفنا والأسواق القديمة.
2. **اليوم الثاني:** حديقة ماجوريل وقصر الباهية.
3. **اليوم الثالث:** رحلة قصيرة إلى جبال الأطلس.

احجز حديقة ماجوريل مسبقًا، فالطوابير طويلة بعد الساعة 10:00.`),
    ],
  ],
};

export const OTHERS: MadeUp[] = [
  { title: 'Names for the cat', prompt: 'Names for a grey cat?', answers: [[text('Ash, Pebble, or Earl.')]] },
  { title: 'Letter to the landlord', prompt: 'The heating fails.', answers: [[text('Dear Ms Ames, …')]] },
  { title: 'Regex for dates', prompt: 'Match 2026-03-01.', answers: [[text('`\\d{4}-\\d{2}-\\d{2}`')]] },
];
