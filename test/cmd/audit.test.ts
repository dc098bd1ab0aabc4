/** `npm run audit`, with the real npm and a registry of our own: a finding fails, and silence is no pass. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { askRegistry } from '../../cmd/audit/advisories.ts'
import { tempFolder } from '../support/temp-folders.ts'

const ADVISORIES = '/-/npm/v1/security/advisories/bulk'

describe('npm run audit', function () {
  this.timeout(60_000)
  let server: Server
  let folder: string
  let advisories = 0
  let answer: (response: ServerResponse) => void

  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === ADVISORIES) answer(response)
      else response.writeHead(404).end('{}')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    folder = tempFolder('audit')
    const dependencies = { 'left-pad': '1.3.0' }
    const devDependencies = { 'right-pad': '1.0.0' }
    const packages = {
      '': { name: 'audited', version: '1.0.0', dependencies, devDependencies },
      'node_modules/left-pad': { version: '1.3.0', resolved: `${registry}left-pad.tgz` },
      'node_modules/right-pad': {
        version: '1.0.0',
        resolved: `${registry}right-pad.tgz`,
        dev: true,
        dependencies,
      },
    }
    const lock = { name: 'audited', version: '1.0.0', lockfileVersion: 3, requires: true, packages }
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'audited', version: '1.0.0', dependencies, devDependencies }),
    )
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
    writeFileSync(join(folder, '.npmrc'), `registry=${registry}\ncache=${join(folder, 'cache')}\n`)
  })
  afterEach(() => {
    server.close().closeAllConnections()
  })

  const advisory = (severity: string) => ({
    // npm remembers what it once knew of an advisory.
    id: ++advisories,
    url: 'https://example.org/GHSA-1',
    title: 'Pads too far',
    severity,
    vulnerable_versions: '<2.0.0',
    cwe: [],
    cvss: { score: 0, vectorString: null },
  })
  const tells = (known: Record<string, object[]>) => (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(known))
  }

  it('fails on a known fault of a package of the image, and names it', async () => {
    for (const severity of ['moderate', 'high', 'critical']) {
      answer = tells({ 'left-pad': [advisory(severity)] })
      expect(await askRegistry(folder), severity).to.deep.equal({
        outcome: 'failed',
        lines: [`${severity}: left-pad <2.0.0: Pads too far (https://example.org/GHSA-1)`],
      })
    }
  })

  it('passes without one, and shows a low one', async () => {
    answer = tells({})
    expect(await askRegistry(folder)).to.deep.include({ outcome: 'passed' })
    answer = tells({ 'left-pad': [advisory('low')] })
    const { outcome, lines } = await askRegistry(folder)
    expect({ outcome, lines: lines.length }).to.deep.equal({ outcome: 'passed', lines: 1 })
  })

  it('leaves packages of development alone, which the image has not', async () => {
    answer = tells({ 'right-pad': [advisory('critical')] })
    expect(await askRegistry(folder)).to.deep.include({ outcome: 'passed' })
  })

  it('is skipped, and says why, where the registry tells nothing or is silent', async () => {
    answer = (response) => response.writeHead(405).end()
    const refused = await askRegistry(folder)
    expect(refused.outcome).to.equal('skipped')
    expect(refused.lines.join()).to.match(/^SKIPPED: npm audit: the registry tells no advisories: 405 /)
    answer = () => {}
    const silent = await askRegistry(folder, 4_000)
    expect(silent.outcome).to.equal('skipped')
    expect(silent.lines.join()).to.include('no answer within 4 s')
    answer = (response) => response.destroy()
    expect((await askRegistry(folder)).outcome).to.equal('skipped')
  })
})
