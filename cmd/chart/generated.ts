/** What the chart holds a second time: Helm reads nothing outside of the chart's folder, and people read tables. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { valuesTable } from './values-table.ts'

const root = join(import.meta.dirname, '..', '..')
const chart = join(root, 'charts', 'penstock')
const BEGIN = '<!-- made by npm run chart from values.yaml -->\n'
const END = '<!-- end -->\n'

export interface GeneratedFile {
  readonly path: string
  readonly content: string
}

export function generated(): GeneratedFile[] {
  return [readme(), ...definitions()]
}

function readme(): GeneratedFile {
  const path = join(chart, 'README.md')
  const text = readFileSync(path, 'utf8')
  const [before, after] = [text.split(BEGIN)[0], text.split(END)[1]]
  if (before === undefined || after === undefined) throw new Error(`${path} has no place for the table`)
  const table = valuesTable(readFileSync(join(chart, 'values.yaml'), 'utf8'))
  return { path, content: `${before}${BEGIN}${table}${END}${after}` }
}

function definitions(): GeneratedFile[] {
  const crds = join(root, 'crds')
  const files = readdirSync(crds).filter((name) => name.endsWith('.yaml'))
  return files.map((name) => ({
    path: join(chart, 'files', 'crds', name),
    content: readFileSync(join(crds, name), 'utf8'),
  }))
}
