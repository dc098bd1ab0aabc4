/** The page about shards says what the code does where the code can tell: kinds of records, limits, mutants. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { HOUSEKEEPING_LIMITS } from '../../internal/shard/housekeeping/limits.ts'
import { DROP_MEMORY_MS } from '../../internal/shard/journal/fold.ts'
import type { JournalRecord } from '../../internal/shard/journal/records.ts'
import { MUTANTS } from './simulation/mutants.ts'
import { UNIT_MUTANTS } from './unit-mutants.ts'

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'architecture', 'shard.md')

/** Every kind there is: the compiler asks for what is missing here. */
const KINDS: Record<JournalRecord['type'], string> = {
  epoch: '`epoch`',
  release: '`release`',
  seal: '`seal`',
  unseal: '`unseal`',
  attempt: '`attempt`',
  done: '`done`',
  dead: '`dead`',
  drop: '`drop`',
  discard: '`discard`',
  keep: '`keep`',
  horizon: '`horizon`',
  seen: '`seen`',
}

describe('the page about shards', () => {
  const page = readFileSync(PAGE, 'utf8')
  const section = (heading: string) =>
    page.split(/^(?=## )/m).find((part) => part.startsWith(`## ${heading}\n`)) ?? ''
  /** Without the breaks of its lines. */
  const textOf = (heading: string) => section(heading).replaceAll(/\s+/g, ' ')

  it('says of each kind of record what it is and when it is void', () => {
    const rows = section('Records')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
    const told = rows.flatMap((row) => row.split(' | ')[0]!.match(/`[a-z-]+`/g) ?? [])
    expect(told).to.have.members(Object.values(KINDS))
    for (const row of rows) expect(row.split(' | '), row).to.have.length(3)
  })

  it('gives the limits of housekeeping as they are', () => {
    const { everyMs, purgeLagMs, keepRatio, keepBytes, snapshotBytes, fullShare } = HOUSEKEEPING_LIMITS
    expect({ everyMs, purgeLagMs, keepRatio, fullShare }).to.deep.equal({
      everyMs: 1_000,
      purgeLagMs: 30_000,
      keepRatio: 1.5,
      fullShare: 0.6,
    })
    expect([keepBytes, snapshotBytes, DROP_MEMORY_MS]).to.deep.equal([32 * 1024 ** 2, 1024 ** 2, 60_000])
    for (const told of ['once a second', 'read 30 s ago', '1.5:1 and is 32 MB', '60 %', 'and by 1 MB'])
      expect(textOf('Housekeeping')).to.include(told)
    expect(textOf('Duplicates')).to.include('Drops stay in the fold for a minute')
  })

  it('names each mutant that a unit test notices, and none that is not there', () => {
    const inTable = section('Mutants of snapshots, room and losses').match(/(?<=`)[a-z-]+(?=`)/g)!
    const inOrders = textOf('Orders that must hold')
      .match(/mutants? `[a-z-]+`(?:, `[a-z-]+`)*/g)!
      .flatMap((some) => some.match(/(?<=`)[a-z-]+(?=`)/g)!)
    expect(inTable).to.include.members(UNIT_MUTANTS.map(({ name }) => name))
    const names = [...MUTANTS, ...UNIT_MUTANTS].map(({ name }) => name)
    expect(names).to.include.members([...inTable, ...inOrders])
    expect(new Set(names).size).to.equal(names.length)
  })
})
