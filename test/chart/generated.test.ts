import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parse } from 'yaml'
import { generated } from '../../cmd/chart/generated.ts'
import { valuesTable } from '../../cmd/chart/values-table.ts'
import packageFile from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..', '..')

describe('what the chart holds a second time', () => {
  it('is checked in as it is made; else: npm run chart', () => {
    for (const { path, content } of generated()) expect(readFileSync(path, 'utf8'), path).to.equal(content)
  })

  it('is all definitions and no other', () => {
    const names = (folder: string) => readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml'))
    expect(names('charts/penstock/files/crds')).to.deep.equal(names('crds'))
  })

  it('is the version of the service', () => {
    const { appVersion } = parse(readFileSync(join(root, 'charts/penstock/Chart.yaml'), 'utf8'))
    expect(appVersion).to.equal(packageFile.version)
  })
})

describe('the table of values', () => {
  it('has a row a value with its default as written, and one a section that says something', () => {
    const text = `# -- first
a: 1
# Section.
b:
  # no description
  c: ""
  # -- a | b
  d: { e: [1, 2], f: "" }
  g:
    h: []
  # -- said
  i:
    # no description
    # -- of a value
    j: 1
`
    expect(valuesTable(text).split('\n').slice(2)).to.deep.equal([
      '| `a` | `1` | first |',
      '| `b` |  | Section. |',
      '| `b.c` |  |  |',
      '| `b.d` | `{ e: [1, 2], f: "" }` | a \\| b |',
      '| `b.g.h` | `[]` |  |',
      '| `b.i` |  | said |',
      '| `b.i.j` | `1` | of a value |',
      '',
    ])
  })

  it('takes what stands above the first value, with an empty line after it, for no row', () => {
    expect(valuesTable('# All of it.\n\n# -- first\na: 1\n').split('\n')[2]).to.equal('| `a` | `1` | first |')
    const [row] = valuesTable('# All of it.\n\n# Section.\na:\n  b: 1\n').split('\n').slice(2)
    expect(row).to.equal('| `a` |  | Section. |')
  })

  it('says of no value what is marked as a comment, or what holds for every object', () => {
    const rows = valuesTable(readFileSync(join(root, 'charts/penstock/values.yaml'), 'utf8'))
    expect(rows).not.to.include('| -- ')
    expect(rows).not.to.include('Every object')
    expect(rows).to.include('| `image` |  | The image of all programs |')
    expect(rows).to.include('| `ingress.expose` |  | From outside')
  })

  it('refuses what has no default', () => {
    expect(() => valuesTable('a:\n  b: *c\n')).to.throw('a value has no default')
    expect(() => valuesTable('- a\n')).to.throw('values must be a map')
  })
})
