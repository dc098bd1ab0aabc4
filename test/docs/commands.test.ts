/** The commands of the README and of all guides, as they are written; other tests run them. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { shellSections } from '../support/shell-commands.ts'

/** Guides that tell and show nothing to paste. */
const TELLING = ['docs/guide/compare.md']
const ROOT = join(import.meta.dirname, '..', '..')

describe('the commands of the guides', () => {
  const pages = ['README.md', ...globSync('docs/guide/*.md', { cwd: ROOT }).sort()]

  for (const page of pages) {
    it(`have no comments, which an interactive zsh takes for arguments: ${page}`, () => {
      const sections = shellSections(page)
      expect(sections.size > 0).to.equal(!TELLING.includes(page))
      for (const [heading, commands] of sections) expect(commands, heading).not.to.match(/(?:^|\s)#/m)
    })
  }
})
