/** Every page of the repository: its links and anchors lead somewhere, and the files that it cites are there. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { anchorsOf, citationsOf, linksOf, pagesNamedIn, slugOf } from './markdown.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** Not ours, or not of the repository. */
const FOREIGN = ['node_modules', '.git', '.penstock', '.penstock-cluster', 'tmp']
/** What npm brings may stand below a package, too. */
const isForeign = (path: string) =>
  FOREIGN.includes(path.split('/')[0]!) || path.split('/').includes('node_modules')
/** Folders from which pages cite files, besides the root and the page's own. */
const CITED_FROM = ['internal', 'internal/shard', 'test', 'bench']
/** Where an adapter of a payment provider is to go; there is none yet. */
const PLANNED = ['internal/payments']
const README_LINES = 120

const find = (pattern: string | string[]) => globSync(pattern, { cwd: ROOT, exclude: isForeign }).sort()
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const pages = new Map(find('**/*.md').map((path) => [path, read(path)]))
const sources = find([
  '{bench,charts,cmd,crds,internal,operator,test}/**/*.{ts,mjs,sql,yaml,tpl,txt,sh}',
  'packages/*/src/**/*.ts',
  'Dockerfile',
  '.ci/run',
])
const names = new Set([...sources, ...find('**/*.{ts,sql}')].map((path) => basename(path)))
const folders = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !FOREIGN.includes(entry.name))
  .map(({ name }) => name)

/** What is wrong with a link of a page; undefined: nothing. */
function brokenLink(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#').map(decodeURIComponent)
  const target = path === '' ? page : normalize(join(dirname(page), path))
  if (target.startsWith('..')) return 'leads out of the repository'
  if (!existsSync(join(ROOT, target))) return 'there is no such file'
  if (anchor === undefined || !target.endsWith('.md')) return undefined
  return anchorsOf(pages.get(target) ?? read(target)).has(anchor) ? undefined : 'there is no such heading'
}

function isThere(page: string, citation: string): boolean {
  if (PLANNED.includes(citation)) return true
  if (!citation.includes('/')) return names.has(citation)
  return ['', dirname(page), ...CITED_FROM].some((folder) =>
    /[*{]/.test(citation)
      ? globSync(citation, { cwd: join(ROOT, folder) }).length > 0
      : existsSync(join(ROOT, folder, citation)),
  )
}

/** A failure shows all of them. */
function none(problems: readonly string[]): void {
  if (problems.length > 0) expect.fail(`\n${problems.join('\n')}`)
}

describe('the pages of the repository', () => {
  for (const [page, text] of pages) {
    it(`link to what is there: ${page}`, () => {
      const broken = linksOf(text).flatMap((link) => {
        const problem = brokenLink(page, link)
        return problem === undefined ? [] : [`${link}: ${problem}`]
      })
      none(broken)
    })

    it(`cite files that are there: ${page}`, () => {
      const missing = citationsOf(text, folders).filter((citation) => !isThere(page, citation))
      none(missing)
    })
  }

  it('are those that the sources name, with their headings', () => {
    const wrong = sources.flatMap((source) =>
      pagesNamedIn(read(source)).flatMap(({ page, heading }) => {
        if (!existsSync(join(ROOT, page))) return [`${source}: there is no ${page}`]
        const isHere = heading === undefined || anchorsOf(read(page)).has(slugOf(heading))
        return isHere ? [] : [`${source}: ${page} has no heading "${heading}"`]
      }),
    )
    none(wrong)
  })

  it(`begin with a README of at most ${README_LINES} lines`, () => {
    expect(pages.get('README.md')!.trimEnd().split('\n').length).to.be.at.most(README_LINES)
  })
})

describe('a page', () => {
  it('has the anchors that GitHub makes of its headings', () => {
    const page =
      '# A `b` & [c](d.md)\n## Über 2.5 %, again?\n## Same\n## Same\n```sh\n# none\n```\n<a id="own"></a>\n'
    expect([...anchorsOf(page)]).to.deep.equal(['a-b--c', 'über-25--again', 'same', 'same-1', 'own'])
  })

  it('has links in its text, not in its code', () => {
    const page =
      '[a](b.md#c) ![i](i.png) [u](https://u.example)\n`[x](y)`\n```\n[x](z)\n```\n[r]: ../r.md\n[m\nn](#o)\n'
    expect(linksOf(page)).to.deep.equal(['b.md#c', 'i.png', '#o', '../r.md'])
  })

  it('cites what looks like a file or folder of the repository', () => {
    const page =
      '`test/faults` `shard/a.ts` `b.test.ts` `cmd/*/main.ts` `a.b` `/v1/x.json` `application/json` `x y/z.ts` `{a,b}/c.sql`'
    const cited = ['test/faults', 'shard/a.ts', 'b.test.ts', 'cmd/*/main.ts', '{a,b}/c.sql']
    expect(citationsOf(page, ['test', 'cmd'])).to.deep.equal(cited)
  })

  it('is named by sources with or without a heading, also over the end of a line', () => {
    const [page, other] = ['docs/guide/local.md', 'docs/guide/cluster.md']
    const source = `/** See (${page}, "Start it") and\n * "Kill a node" in\n * ${other}, or ${page}. */`
    expect(pagesNamedIn(source)).to.deep.equal([
      { page, heading: 'Start it' },
      { page: other, heading: 'Kill a node' },
      { page },
    ])
  })
})
