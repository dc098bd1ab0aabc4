import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Duplicates, PackVerdict } from '../../internal/shard/held/duplicates.ts'

describe('the way of a verdict to its ingress', () => {
  const ways: [way: string, subject: string][] = []
  const broker = {
    publish: (subject: string) => ways.push(['over the broker', subject]),
    tell: (subject: string) => ways.push(['told', subject]),
  }
  // A verdict that is settled needs nothing else of its shard.
  const duplicates = new Duplicates({ broker, onDropped: () => {} } as unknown as ConstructorParameters<
    typeof Duplicates
  >[0])

  it('is the short one for new items, and over the broker for a drop', () => {
    const [clean, dropping] = [new PackVerdict('one', 'to.one'), new PackVerdict('two', 'to.two')]
    dropping.duplicates.push({ index: 0, of: '0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f' })
    dropping.pending++
    for (const verdict of [dropping, clean, dropping]) duplicates.settle(verdict)
    expect(ways).to.deep.equal([
      ['told', 'to.one'],
      ['over the broker', 'to.two'],
    ])
  })
})
