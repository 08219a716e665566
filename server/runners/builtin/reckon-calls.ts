/** The tools that only reckon: the calculator and the clock. */
import { calculate } from './calculator.ts';
import type { Call } from './call.ts';
import { refused, succeeded } from './call.ts';
import { answerDate } from './date-answers.ts';
import type { DateQuestion } from './date-questions.ts';
import { codeSpan } from './markdown.ts';
import type { BuiltinServices } from './services.ts';

/** Works an expression out. */
export function calculateCall(expression: string): Call {
  return {
    name: 'calculate',
    args: { expression },
    preview: expression,
    async run() {
      const calculation = calculate(expression);
      if (!calculation.ok) {
        return refused(
          calculation.problem,
          `I cannot calculate ${codeSpan(expression.slice(0, 200))}: ${calculation.problem}`,
        );
      }
      return succeeded(calculation.text, `${codeSpan(expression)} = **${calculation.text}**`);
    },
  };
}

/** Answers a question about time by the server's clock. */
export function clockCall(text: string, question: DateQuestion, services: BuiltinServices): Call {
  return {
    name: 'clock',
    args: { question: text },
    preview: text,
    async run() {
      const answer = answerDate(question, services.now(), services.timeZone);
      return answer.ok ? succeeded(answer.text.replaceAll('**', ''), answer.text) : refused(answer.problem);
    },
  };
}
