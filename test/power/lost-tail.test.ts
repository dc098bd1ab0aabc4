/** What the power cuts ask for when a log of the broker got shorter. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isTold, shortened, type Tails } from './lost-tail.ts'

describe('the loss of a power cut', () => {
  const before: Tails = [
    [10, 20],
    [10, 20],
    [10, 20],
  ]

  it('is that of the log that ends below where it ended', () => {
    const after: Tails = [
      [9, 20],
      [10, 19],
      [11, 20],
    ]
    expect(shortened(before, after)).to.deep.equal({ inboxes: [0], journals: [1] })
  })

  it('is told by the owner when it is in the journal, whatever an ingress says', () => {
    const losses = { inboxes: [1], journals: [1] }
    expect(isTold(losses, [], [1])).to.equal(false)
    expect(isTold(losses, [1], [])).to.equal(true)
  })

  it('is told by the owner or an ingress when it is in the inbox alone', () => {
    const losses = { inboxes: [0, 1], journals: [] }
    expect(isTold(losses, [0], [])).to.equal(false)
    expect(isTold(losses, [0], [1])).to.equal(true)
  })
})
