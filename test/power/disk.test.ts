/** The disk that a power cut leaves: what was flushed always, of the rest what its cache had. */
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

import { seededFractions } from '../support/seeded.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { type Cache, PowerDisk, SECTOR_BYTES } from './disk.ts'

const SECTORS = 64

describe('a disk that loses its power', () => {
  let disk: PowerDisk
  afterEach(() => disk.close())

  async function open(cache: Cache): Promise<void> {
    const folder = tempFolder('disk')
    const image = join(folder, 'image')
    writeFileSync(image, '')
    truncateSync(image, SECTORS * SECTOR_BYTES)
    disk = await PowerDisk.open(image, join(folder, 'socket'), cache)
  }
  const fill = (letter: string, sectors = SECTORS) =>
    disk.write(0, Buffer.alloc(sectors * SECTOR_BYTES, letter))
  /** A letter a sector; a sector of two letters would be torn within, which no disk does. */
  function letters(): string {
    const bytes = disk.read(0, SECTORS * SECTOR_BYTES).toString('latin1')
    const sectors = bytes.match(new RegExp(`[^]{${SECTOR_BYTES}}`, 'g'))!
    return sectors.map((sector) => [...new Set(sector)].join('')).join('')
  }

  it('keeps all that it was given when its cache is whole', async () => {
    await open('whole')
    fill('a')
    expect(disk.cut(seededFractions(1))).to.deep.equal({ unflushed: 0, lost: 0 })
    expect(letters()).to.equal('a'.repeat(SECTORS))
  })

  it('keeps what was flushed when its cache is torn', async () => {
    await open('torn')
    fill('a')
    disk.flush()
    expect(disk.cut(seededFractions(1))).to.deep.equal({ unflushed: 0, lost: 0 })
    expect(letters()).to.equal('a'.repeat(SECTORS))
  })

  it('leaves in each sector something that stood there since the flush', async () => {
    const seen = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      await open('torn')
      fill('a')
      disk.flush()
      fill('b')
      fill('c', SECTORS / 2)
      const { unflushed, lost } = disk.cut(seededFractions(seed))
      const left = letters()
      expect(left).to.match(new RegExp(`^[abc]{${SECTORS / 2}}[ab]{${SECTORS / 2}}$`))
      const last = 'c'.repeat(SECTORS / 2) + 'b'.repeat(SECTORS / 2)
      expect(unflushed).to.equal(SECTORS)
      expect(lost).to.equal([...left].filter((letter, sector) => letter !== last[sector]).length)
      seen.add(left)
      if (seed < 19) await disk.close()
    }
    expect(seen.size, 'the seed decides').to.be.above(10)
    expect(seen.has('a'.repeat(SECTORS)), 'some lose all of it').to.equal(true)
  })

  it('reads what was written last as long as it has power', async () => {
    await open('torn')
    fill('a')
    fill('b', 3)
    expect(letters()).to.equal(`bbb${'a'.repeat(SECTORS - 3)}`)
  })
})
