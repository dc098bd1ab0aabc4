import { expect } from 'chai'
import { describe, it } from 'mocha'
import { PackVerdict, Twins } from '../../internal/shard/twins.ts'

describe('the way of a verdict to its ingress', () => {
  const ways: [way: string, subject: string][] = []
  const broker = {
    publish: (subject: string) => ways.push(['over the broker', subject]),
    tell: (subject: string) => ways.push(['told', subject]),
  }
  // A verdict that is settled needs nothing else of its shard.
  const twins = new Twins({ broker, onDropped: () => {} } as unknown as ConstructorParameters<
    typeof Twins
  >[0])

  it('is the short one for new items, and over the broker for a drop', () => {
    const [clean, dropping] = [new PackVerdict('one', 'to.one'), new PackVerdict('two', 'to.two')]
    dropping.duplicates.push({ index: 0, of: '0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f' })
    dropping.pending++
    for (const verdict of [dropping, clean, dropping]) twins.settle(verdict)
    expect(ways).to.deep.equal([
      ['told', 'to.one'],
      ['over the broker', 'to.two'],
    ])
  })
})
