/** Sentences of the pages: none is so long that one has to read it twice. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { sentencesOf } from './markdown.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const MOST_WORDS = 45

function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

describe('the sentences of a page', () => {
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT }).sort()]

  for (const page of pages) {
    it(`have at most ${MOST_WORDS} words: ${page}`, () => {
      const sentences = sentencesOf(readFileSync(join(ROOT, page), 'utf8'))
      expect(sentences).to.have.length.above(5)
      expect(sentences.filter((sentence) => wordsOf(sentence) > MOST_WORDS)).to.deep.equal([])
    })
  }

  it('are found in paragraphs, lists and cells, without code and links', () => {
    const page =
      '# Title\n\nOne `a. b` is\nhere. Two [is](x.y) there: see.\n\n- Three\n  goes on.\n- Four\n\n| a | b |\n|---|---|\n| five. Six; seven | `x` |\n\n```sh\nno. thing\n```\n\n1. Eight?\n'
    const found = [
      'One `` is here.',
      'Two is there: see.',
      'Three goes on.',
      'Four',
      'a',
      'b',
      'five.',
      'Six',
      'seven',
    ]
    expect(sentencesOf(page)).to.deep.equal([...found, '``', 'Eight?'])
  })
})
