import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { loadCap, type Simulated } from './placement-simulation.ts'
import { placementTable, simulateAll, writtenTable } from './placement-table.ts'

describe('the simulation of placement', () => {
  let rows: Simulated[]
  before(() => {
    rows = simulateAll()
  })

  it('gives the table that stands in docs/architecture/shard.md', () => {
    const current = writtenTable() === placementTable(rows)
    expect(current, 'stale: run `node test/shard/ownership/placement-table.ts`').to.equal(true)
  })

  it('moves at most the load cap to a joiner, and nothing among the others', () => {
    for (const { shards, nodes, join, leave } of rows) {
      const which = `${shards} shards, ${nodes} nodes`
      expect(join.own, which).to.equal(Math.floor(shards / (nodes + 1)))
      expect(join.own, which).to.be.at.most(loadCap(shards, nodes + 1))
      expect([join.others, leave?.others ?? 0], which).to.deep.equal([0, 0])
    }
  })

  it('keeps loads level and below the cap, through all changes', () => {
    for (const { shards, nodes, least, most, join, leave } of rows) {
      const which = `${shards} shards, ${nodes} nodes`
      expect([least, most], which).to.deep.equal([Math.floor(shards / nodes), Math.ceil(shards / nodes)])
      expect(join.most, which).to.be.at.most(loadCap(shards, nodes + 1))
      if (leave) expect(leave.most, which).to.be.at.most(loadCap(shards, nodes - 1))
    }
  })

  it('shows that hashing alone is neither level nor still', () => {
    const unlevel = rows.filter(({ join, hashedJoin }) => hashedJoin.most > join.most)
    const restless = rows.filter(({ hashedJoin }) => hashedJoin.others > 0)
    expect([unlevel.length > rows.length / 2, restless.length > rows.length / 2]).to.deep.equal([true, true])
  })
})
