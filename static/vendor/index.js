// Made by scripts/vendor.mjs: the libraries of the page under names that do not change with their versions.

import hljs from './highlightjs-11.12.0/es/core.min.js';
import bash from './highlightjs-11.12.0/es/languages/bash.min.js';
import css from './highlightjs-11.12.0/es/languages/css.min.js';
import diff from './highlightjs-11.12.0/es/languages/diff.min.js';
import go from './highlightjs-11.12.0/es/languages/go.min.js';
import java from './highlightjs-11.12.0/es/languages/java.min.js';
import javascript from './highlightjs-11.12.0/es/languages/javascript.min.js';
import json from './highlightjs-11.12.0/es/languages/json.min.js';
import markdown from './highlightjs-11.12.0/es/languages/markdown.min.js';
import python from './highlightjs-11.12.0/es/languages/python.min.js';
import rust from './highlightjs-11.12.0/es/languages/rust.min.js';
import sql from './highlightjs-11.12.0/es/languages/sql.min.js';
import typescript from './highlightjs-11.12.0/es/languages/typescript.min.js';
import xml from './highlightjs-11.12.0/es/languages/xml.min.js';
import yaml from './highlightjs-11.12.0/es/languages/yaml.min.js';

for (const [name, language] of Object.entries({ bash, css, diff, go, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml })) hljs.registerLanguage(name, language);

export { default as DOMPurify } from './dompurify-3.5.0/purify.es.mjs';
export { marked } from './marked-18.2.1/marked.esm.js';
export { hljs };
