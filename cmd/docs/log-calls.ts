/**
 * Finds in the sources what the programs write to their logs: the names of events, and the texts by which shards and
 * leases tell a problem. Reads text, not syntax: a call is `log.<level>(…)` with the name as its last argument.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')
const FOLDERS = ['cmd', 'internal', 'operator']
const CALL = /\blog(?:\.(debug|info|warn|error|fatal)|\[level\])\(/g

export interface LogCall {
  readonly event: string
  readonly levels: readonly string[]
}

export interface Source {
  readonly path: string
  readonly text: string
}

export function programSources(): Source[] {
  const paths = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: ROOT })).sort()
  const sources = paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  // What describes the calls is none of them.
  return sources.filter(({ path }) => !path.startsWith('cmd/docs/'))
}

/** Events with a name of their own, each once. A call whose text is made when it happens has none. */
export function logCalls(sources: readonly Source[]): LogCall[] {
  const levels = new Map<string, Set<string>>()
  for (const { text } of sources) {
    for (const match of text.matchAll(CALL)) {
      const event = lastText(argumentsAt(text, match.index + match[0].length))
      if (event === undefined) continue
      const known = levels.get(event) ?? new Set()
      for (const level of match[1] ? [match[1]] : chosenLevels(text)) known.add(level)
      levels.set(event, known)
    }
  }
  return [...levels].map(([event, known]) => ({ event, levels: [...known] }))
}

/** Texts that name a problem: the first text that whatever tells one is given, or the member `what` of it. */
export function problemTexts(sources: readonly Source[]): string[] {
  const tellings = [/roblem\(\s*(?:\w+, )?'([^']+)'/g, /\bwhat(?:: | = )'([^']+)'/g]
  const named = sources.flatMap(({ text }) => tellings.flatMap((telling) => [...text.matchAll(telling)]))
  const chosen = sources.flatMap(({ text }) => [...text.matchAll(/function what\w+\(.*?\n}/gs)])
  const returned = chosen.flatMap(([body]) => [...body.matchAll(/return '([^']+)'/g)])
  return [...new Set([...named, ...returned].map(([, text = '']) => text))]
}

/** From behind an opening parenthesis to its closing one. */
function argumentsAt(text: string, start: number): string {
  let depth = 1
  for (let at = start; at < text.length; at++) {
    if (text[at] === "'") at = text.indexOf("'", at + 1)
    else if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return text.slice(start, at)
  }
  throw new Error('a call of the log has no end')
}

function lastText(args: string): string | undefined {
  return /(?:^|,)\s*'([^']+)',?\s*$/.exec(args)?.[1]
}

/** Of a level that is chosen when the event happens. */
function chosenLevels(text: string): string[] {
  const [, first, second] = /const level = .*?\? '(\w+)' : '(\w+)'/s.exec(text) ?? []
  if (first === undefined || second === undefined) throw new Error('a level of the log is not understood')
  return [first, second]
}
