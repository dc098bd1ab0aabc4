/** `npm run pin-base`: the digest that it writes is that of what a registry answers, and of nothing else. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { runCommand } from '../support/command.ts'
import { tempFolder } from '../support/temp-folders.ts'

const TAG = 'node:26.12.1-trixie-slim'
const MANIFEST = '{"schemaVersion":2,"manifests":[]}'
const DIGEST = `sha256:${createHash('sha256').update(MANIFEST).digest('hex')}`
const PATH = '/v2/library/node/manifests/26.12.1-trixie-slim'

describe('npm run pin-base', () => {
  let server: Server
  let registry: string
  let file: string
  /** Of the manifest. */
  let headers: Record<string, string>

  beforeEach(async () => {
    headers = { 'docker-content-digest': DIGEST }
    server = createServer(answer)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    file = join(tempFolder('pin-base'), 'Dockerfile')
    writeFileSync(file, `FROM ${TAG} AS first\nRUN true\nFROM ${TAG}\n`)
  })
  afterEach(() => {
    server.close().closeAllConnections()
  })

  /** As Docker Hub: a token for everybody, and no manifest without. */
  function answer({ url, headers: asked }: IncomingMessage, response: ServerResponse): void {
    if (url === '/token?service=images&scope=pull') response.end(JSON.stringify({ token: 'for everybody' }))
    else if (url !== PATH) response.writeHead(404).end()
    else if (asked.authorization === 'Bearer for everybody' && asked.accept?.includes('image.index')) {
      response.writeHead(200, headers).end(MANIFEST)
    } else {
      const challenge = `Bearer realm="${registry}/token",service="images",scope="pull"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    }
  }

  const run = (...args: string[]) => runCommand('cmd/pin-base/main.ts', ['--file', file, ...args], {})
  const text = () => readFileSync(file, 'utf8')

  it('writes the digest of the tag into every stage, in place of a former one', async () => {
    const pinned = `FROM ${TAG}@${DIGEST} AS first\nRUN true\nFROM ${TAG}@${DIGEST}\n`
    const end = await run('--registry', registry)
    expect(end).to.deep.equal({ code: 0, stdout: `${TAG}@${DIGEST}\n`, stderr: '' })
    expect(text()).to.equal(pinned)
    writeFileSync(file, pinned.replaceAll(DIGEST, `sha256:${'0'.repeat(64)}`))
    await run('--registry', registry)
    expect(text()).to.equal(pinned)
  })

  it('refuses a manifest that is not what the registry says, and changes nothing', async () => {
    const before = text()
    headers = { 'docker-content-digest': `sha256:${'0'.repeat(64)}` }
    const { code, stderr } = await run('--registry', registry)
    expect(code).to.equal(1)
    expect(stderr).to.match(/ says sha256:0+ and answers sha256:\w+\n$/)
    expect(text()).to.equal(before)
  })

  it('says in one line that a registry has no such tag, or cannot be asked', async () => {
    writeFileSync(file, 'FROM node:0\n')
    expect(await run('--registry', registry)).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: `${registry}/v2/library/node/manifests/0 answered 404\n`,
    })
    server.close().closeAllConnections()
    await once(server, 'close')
    const away = await run('--registry', registry)
    expect(away.code).to.equal(1)
    expect(away.stderr).to.match(/^http:\S+ cannot be asked: .+\n$/)
  })

  it('refuses a release whose base has no digest, or none that can be one', async () => {
    expect(await run('--check')).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: `${file}: ${TAG}: no digest; npm run pin-base writes it\n`,
    })
    for (const digest of ['sha256:1234', `md5:${'0'.repeat(32)}`, '']) {
      writeFileSync(file, `FROM ${TAG}@${digest}\n`)
      expect((await run('--check')).code, digest).to.equal(1)
    }
    writeFileSync(file, `FROM ${TAG}@${DIGEST}\nFROM ${TAG}\n`)
    expect((await run('--check')).code, 'one of two stages').to.equal(1)
    writeFileSync(file, `FROM ${TAG}@${DIGEST}\n`)
    expect(await run('--check')).to.deep.equal({ code: 0, stdout: '', stderr: '' })
  })
})
