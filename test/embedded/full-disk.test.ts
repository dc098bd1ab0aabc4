/** When the embedded NATS is restarted for its disk. Needs root, for a disk of its own. */
import { appendFileSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { restartAfterFullDisk } from '../../internal/embedded/full-disk.ts'
import { eventually } from '../support/eventually.ts'
import { SmallDisk } from '../support/small-disk.ts'
import { tempFolder } from '../support/temp-folders.ts'

const DISK_MB = 48
const FULL = '[ERR] JetStream failed to store a msg: write 1.blk: no space left on device\n'

describe('the watch of the disk of an embedded NATS', () => {
  let disk: SmallDisk
  let logFile: string
  let dir: string
  let told: string[] = []
  let end = () => {}

  beforeEach(function () {
    const mounted = SmallDisk.mount(DISK_MB)
    if (mounted === undefined) return this.skip()
    disk = mounted
    told = []
    dir = join(disk.dir, 'nats')
    mkdirSync(dir)
    logFile = join(tempFolder('log'), 'nats.log')
    appendFileSync(logFile, FULL)
    const tell = (_: unknown, message: string) => void told.push(message)
    const log = { info: tell, warn: tell, error: tell }
    end = restartAfterFullDisk({ logFile, dir, log, restart: () => void told.push('restart') })
  })
  afterEach(() => {
    end()
    disk?.unmount()
  })

  const RESTARTED = ['the disk is full', 'the disk has room again: the server is restarted', 'restart']

  it('restarts the server when its log tells of a full disk', async () => {
    appendFileSync(logFile, FULL)
    await eventually(() => expect(told).to.deep.equal(RESTARTED))
  })

  it('waits while it cannot be asked for room', async () => {
    rmdirSync(dir)
    appendFileSync(logFile, FULL)
    await eventually(() => expect(told).to.deep.equal(RESTARTED.slice(0, 1)))
    mkdirSync(dir)
    await eventually(() => expect(told).to.deep.equal(RESTARTED))
  })

  it('restarts the server when the disk had no room, for the log neither', async () => {
    disk.fill(0)
    await eventually(() => expect(told).to.deep.equal(RESTARTED.slice(0, 1)))
    disk.clear()
    await eventually(() => expect(told).to.deep.equal(RESTARTED))
  })
})
