// Made by scripts/vendor.mjs: what sets formulas, and the address of its style sheet.

import './katex-0.19.1/katex.min.js';

export const STYLE = new URL('./katex-0.19.1/katex.min.css', import.meta.url).href;
export const { katex } = globalThis;
