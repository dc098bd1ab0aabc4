/** Measured parts of the comparison, each with its day, code and machine: parts can be measured anew one by one. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keep } from '../results.ts'
import { tableOfGoals } from './goals.ts'
import type { Part } from './part.ts'
import { reportedByOthers } from './reported.ts'

const MEASURED = join(import.meta.dirname, 'measured.json')
/** Its place in docs/performance/results.md. */
export const SECTION = 'peers'

export type Kept = Record<string, Part & { where: string }>

export function readKept(): Kept {
  try {
    return JSON.parse(readFileSync(MEASURED, 'utf8')) as Kept
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

/** Into measured.json and docs/performance/results.md. `names`: of all parts, in their order. */
export function keepPart(name: string, part: Part, where: string, names: readonly string[]): void {
  const kept: Kept = { ...readKept(), [name]: { ...part, where } }
  writeFileSync(MEASURED, `${JSON.stringify(kept, null, 2)}\n`)
  keep(SECTION, sectionOf(kept, names))
}

/** Markdown: every figure that has a goal, then all tables. */
export function sectionOf(kept: Kept, names: readonly string[]): string {
  const goals = names.flatMap((name) => kept[name]?.goals ?? [])
  const texts = names.map((name) => {
    const part = kept[name]
    return part ? `${part.text}\n\n${part.where}` : `**${name}**: not measured`
  })
  return [tableOfGoals(goals), ...texts, reportedByOthers()].join('\n\n')
}
