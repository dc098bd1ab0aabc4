/** The pages about the architecture name files of the code: each of them is there. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const ROOT = join(import.meta.dirname, '..', '..')

/** Folders that the paths of a page begin in, as its introduction says. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  'overview.md': ['internal', ''],
  'protocol.md': ['internal', ''],
  'shard.md': ['internal/shard', ''],
  'repair.md': ['internal', ''],
}

/** Paths in code font: a name with one of these endings, below folders or not. */
const CITED = /`((?:\.\.\/)*(?:[\w.-]+\/)*[\w-]+(?:\.test)?\.(?:ts|sql|json))`/g

function citedFiles(page: string): string[] {
  return [...new Set([...page.matchAll(CITED)].map(([, file]) => file!))]
}

describe('the pages about the architecture', () => {
  for (const [name, folders] of Object.entries(PAGES)) {
    it(`name files that are there (${name})`, () => {
      const files = citedFiles(readFileSync(join(ROOT, 'docs', 'architecture', name), 'utf8'))
      expect(files.length, 'files that the page names').to.be.above(10)
      const missing = files.filter((file) => !folders.some((folder) => existsSync(join(ROOT, folder, file))))
      expect(missing).to.deep.equal([])
    })
  }
})
