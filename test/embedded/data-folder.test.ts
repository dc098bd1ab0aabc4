import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { openDataFolder, secretFile } from '../../internal/embedded/data-folder.ts'
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { startMark } from '../../internal/embedded/process-identity.ts'
import { tempFolder } from '../support/temp-folders.ts'

const UNSHARE = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc']
const MODULE = join(import.meta.dirname, '..', '..', 'internal', 'embedded', 'data-folder.ts')

const NODE_ARGS = ['--expose-gc', '--input-type=module', '--eval']

/** A process that takes the folder, forgets what it got, says so, and stays. `within`: the command that runs it. */
function holderOf(path: string, within: readonly string[] = []): ChildProcess {
  const code = `const { openDataFolder } = await import(${JSON.stringify(MODULE)})
    openDataFolder(${JSON.stringify(path)})
    await new Promise(setImmediate)
    gc()
    console.log('held')
    setTimeout(() => {}, 60_000)`
  const [command, ...args] = [...within, process.execPath, ...NODE_ARGS, code]
  return spawn(command!, args, { stdio: ['ignore', 'pipe', 'pipe'] })
}

describe('the data folder', () => {
  it('is refused while another process works in it, and free again afterwards', () => {
    const path = join(tempFolder(), 'data')
    const held = openDataFolder(path)
    const refusal = `the data folder ${path} is in use by process ${process.pid} on ${hostname()}`
    expect(() => openDataFolder(path)).to.throw(EmbeddedStartError, refusal)
    held.release()
    openDataFolder(path).release()
  })

  it('is free as soon as its process is gone, however it ended', async () => {
    const path = tempFolder()
    const holder = holderOf(path)
    await once(holder.stdout!, 'data')
    expect(() => openDataFolder(path)).to.throw(EmbeddedStartError, `in use by process ${holder.pid}`)
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    openDataFolder(path).release()
  })

  it('is refused to other processes after its own process was refused', async () => {
    const path = tempFolder()
    const held = openDataFolder(path)
    expect(() => openDataFolder(path)).to.throw(EmbeddedStartError)
    const other = holderOf(path)
    const [said] = (await once(other.stderr!, 'data')) as [Buffer]
    expect(said.toString()).to.include(`is in use by process ${process.pid}`)
    held.release()
  })

  it('is refused to a process that sees no other process, as in a container', async function () {
    if (spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), 'true']).status !== 0) {
      process.stderr.write(
        `skipped: this machine lets nobody make a process namespace (${UNSHARE.join(' ')})\n`,
      )
      this.skip()
    }
    const path = tempFolder()
    const held = openDataFolder(path)
    const apart = holderOf(path, UNSHARE)
    const [said] = (await once(apart.stderr!, 'data')) as [Buffer]
    expect(said.toString()).to.include(`is in use by process ${process.pid}`)
    expect((await once(apart, 'exit'))[0]).to.equal(1)
    held.release()
  })

  it('is locked by nobody who left a file behind', () => {
    const path = tempFolder()
    writeFileSync(join(path, 'lock.holder'), `process ${process.pid} on ${hostname()}`)
    openDataFolder(path).release()
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
