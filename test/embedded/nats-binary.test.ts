import { execFile } from 'node:child_process'
import { appendFileSync, chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { findNatsServer, installNatsServer, verifyNatsServer } from '../../internal/embedded/nats-binary.ts'
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { natsBinary } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const log = { info: () => {}, warn: () => {}, error: () => {} }

describe('finding nats-server', () => {
  it('takes NATS_SERVER_BIN first', async () => {
    const chosen = pretend(tempFolder(), '2.11.4')
    const path = onlyFolder('2.12.0')
    expect(await find({ natsServerBin: chosen, path })).to.equal(chosen)
  })

  it('refuses a NATS_SERVER_BIN that is too old, or none, in one line that names it', async () => {
    const old = await find({ natsServerBin: pretend(tempFolder(), '2.11.3') }).catch((error) => error)
    const none = await find({ natsServerBin: '/nowhere/nats-server' }).catch((error) => error)
    expect(old).to.be.instanceOf(EmbeddedStartError)
    expect(old.message).to.equal('NATS_SERVER_BIN: version 2.11.3 is older than 2.11.4')
    expect(none.message).to.include('NATS_SERVER_BIN: /nowhere/nats-server')
  })

  it('takes the first on PATH that is new enough', async () => {
    const [old, good] = [onlyFolder('2.10.29'), onlyFolder('2.11.10')]
    expect(await find({ path: `${old}:${good}` })).to.equal(join(good, 'nats-server'))
  })

  it('runs no packaged binary that was changed', async () => {
    const changed = join(tempFolder(), 'nats-server')
    copyFileSync(await natsBinary(), changed)
    appendFileSync(changed, ' ')
    const refusal = await verifyNatsServer(changed).catch((error) => error)
    expect(refusal).to.be.instanceOf(EmbeddedStartError)
    expect(refusal.message).to.include(changed).and.include('NATS_SERVER_BIN')
  })

  it('stands inside of node_modules, once for every data folder', async function () {
    if (process.platform !== 'linux' || process.arch !== 'x64') return this.skip()
    const binary = await findNatsServer({ natsServerBin: undefined, path: '', log })
    expect(binary).to.match(/\/node_modules\/(\.cache\/penstock\/|@eplightning\/)/)
    expect(await findNatsServer({ natsServerBin: undefined, path: '', log })).to.equal(binary)
  })

  it('is installed by `npm ci`: its last step finds it, and the next run has nothing to say', async () => {
    await natsBinary()
    const program = join(import.meta.dirname, '..', '..', 'cmd', 'nats-server', 'main.ts')
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program])
    expect(stdout + stderr).to.equal('')
    const { scripts } = JSON.parse(readFileSync(join(program, '..', '..', '..', 'package.json'), 'utf8'))
    expect(scripts.prepare).to.equal('node cmd/nats-server/main.ts')
  })

  it('says what to do when npm cannot install it, and leaves nothing behind', async () => {
    const installDir = join(tempFolder(), 'nats-server')
    const refusal = await installNatsServer(installDir, { command: 'false', args: [] }).catch(
      (error) => error,
    )
    expect(refusal).to.be.instanceOf(EmbeddedStartError)
    expect(refusal.message).to.match(/^[^\n]*NATS_SERVER_BIN[^\n]*$/)
    expect(existsSync(join(installDir, 'node_modules'))).to.equal(false)
  })
})

function find(options: { natsServerBin?: string; path?: string }): Promise<string> {
  const { natsServerBin, path = '' } = options
  return findNatsServer({ natsServerBin, path, installDir: tempFolder(), log })
}

function onlyFolder(version: string): string {
  const folder = tempFolder()
  pretend(folder, version)
  return folder
}

function pretend(folder: string, version: string): string {
  const binary = join(folder, 'nats-server')
  writeFileSync(binary, `#!/bin/sh\necho "nats-server: v${version}"\n`)
  chmodSync(binary, 0o755)
  return binary
}
