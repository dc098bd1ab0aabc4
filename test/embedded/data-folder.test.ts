import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { openDataFolder, secretFile } from '../../internal/embedded/data-folder.ts'
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { startMark } from '../../internal/embedded/process-identity.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('the data folder', () => {
  it('is refused while another process works in it, and free again afterwards', () => {
    const path = join(tempFolder(), 'data')
    const held = openDataFolder(path)
    expect(() => openDataFolder(path)).to.throw(EmbeddedStartError, `in use by process ${process.pid}`)
    held.release()
    openDataFolder(path).release()
    expect(existsSync(join(path, 'lock'))).to.equal(false)
  })

  it('is taken over from a process that is gone', async () => {
    const path = tempFolder()
    const gone = spawn('true')
    await once(gone, 'exit')
    writeFileSync(join(path, 'lock'), JSON.stringify({ pid: gone.pid, started: 'earlier' }))
    openDataFolder(path).release()
  })

  it('is taken over from a process whose id another one has by now', () => {
    const path = tempFolder()
    writeFileSync(join(path, 'lock'), JSON.stringify({ pid: process.pid, started: 'earlier' }))
    openDataFolder(path).release()
  })

  it('stays with the process that took it over', () => {
    const path = tempFolder()
    writeFileSync(join(path, 'lock'), JSON.stringify({ pid: 2 ** 22 + 1, started: 'earlier' }))
    const held = openDataFolder(path)
    expect(() => openDataFolder(path)).to.throw(EmbeddedStartError)
    held.release()
  })

  it('is refused in one line where no folder can be made', () => {
    const file = join(tempFolder('data-folder'), 'a-file')
    writeFileSync(file, '')
    for (const path of ['/proc/penstock', join(file, 'below')]) {
      expect(() => openDataFolder(path)).to.throw(EmbeddedStartError, `the folder ${path} cannot be used: `)
    }
  })

  it('keeps a generated secret for its owner alone', () => {
    const file = join(tempFolder(), 'secret')
    expect(secretFile(file, () => 'first')).to.equal('first')
    expect(secretFile(file, () => 'second')).to.equal('first')
    expect(statSync(file).mode & 0o777).to.equal(0o600)
  })
})

describe('a process', () => {
  it('has a mark of its own until it ends', async () => {
    const child = spawn('sleep', ['600'])
    const mark = startMark(child.pid!)
    expect(mark).to.be.a('string')
    expect(mark).to.equal(startMark(child.pid!))
    expect(mark).to.not.equal(startMark(process.pid))
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(startMark(child.pid!)).to.equal(undefined)
  })
})
