/** One way to write a thing that the language lets one write in two, where the linter has no rule for it. */
import type { Source } from './sources.ts'

const RULES: readonly { readonly what: RegExp; readonly why: string }[] = [
  { what: /^ *(?:private|protected) (?!constructor\b)[^(\n]*/gm, why: 'write #name' },
  { what: /\.\.\.\{/g, why: 'write the members themselves' },
  {
    what: /^(?:export )?const [a-z]\w*(?=(?:: [^=\n]+)? =\s*(?:-?\d|['"`]|\/[^/*]|true\b|false\b))/gm,
    why: 'a constant is UPPER_CASE',
  },
]

/** One line a breach: file, line, what stands there, and what to write instead. */
export function breachesOfStyle(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, code }) =>
    RULES.flatMap(({ what, why }) =>
      [...code.matchAll(what)].map(({ 0: text, index }) => {
        const line = code.slice(0, index).split('\n').length
        return `${path}:${line} ${text.trim()}: ${why}`
      }),
    ),
  )
}
