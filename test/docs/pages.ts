/** The reference pages as tests read them: their headings and the cells of their tables. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REFERENCE } from '../../cmd/docs/generated.ts'

export function pageText(name: string): string {
  return readFileSync(join(REFERENCE, name), 'utf8')
}

/** Of one level, in their order; fenced code has none. */
export function headings(text: string, level: number): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '')
  return [...prose.matchAll(new RegExp(`^#{${level}} (.*)$`, 'gm'))].map(([, heading = '']) => heading)
}

/** What stands below a heading of the second level, down to the next one. */
export function section(text: string, heading: string): string {
  const found = text.split(/^(?=## )/m).find((part) => part.startsWith(`## ${heading}\n`))
  if (found === undefined) throw new Error(`there is no section ${heading}`)
  return found
}

/** Rows of all tables with these heads, each as its cells; code loses its marks. */
export function rowsOf(text: string, ...heads: string[]): string[][] {
  const begin = `| ${heads.join(' | ')} |\n|${'---|'.repeat(heads.length)}\n`
  const tables = text.split(begin).slice(1)
  if (tables.length === 0) throw new Error(`there is no table of ${heads.join(', ')}`)
  return tables.flatMap((table) => table.split('\n\n')[0]!.trimEnd().split('\n').map(cellsOf))
}

function cellsOf(row: string): string[] {
  const cells = row.slice(2, -2).split(/ \| /)
  return cells.map((cell) => cell.replaceAll('`', '').replaceAll('\\|', '|').trim())
}
