/** What a name says about its value. Pure. */

/** A shorter value is no secret, and hiding it would tear holes into other words. */
export const SHORTEST_SECRET = 6;

/** Whether a variable or header of that name is likely to hold a secret. */
export const isSecretName = (name: string): boolean =>
  /key|token|secret|passw|pwd|auth(?!or(?!i[sz]))|cookie|credential/i.test(name);
