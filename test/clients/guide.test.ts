/**
 * The guide to generated clients, as it stands there, against a running service: both generators make a client without
 * a warning, both programs fit its types, and both get their batch out of the dead letters.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { pastedPage } from '../docs/pasted-page.ts'
import { type Sink, type SinkRequest, startSink } from '../support/sink.ts'
import { generatorOrSkip } from './generators.ts'
import manifest from './typescript/package.json' with { type: 'json' }

const REQUIREMENTS = join(import.meta.dirname, 'python', 'requirements.txt')
const INSTALLS_WITHIN_MS = 300_000

describe('generated clients', function () {
  this.timeout(INSTALLS_WITHIN_MS)
  let sink: Sink
  before(async () => {
    sink = await startSink()
    sink.on('/down', { status: 400 })
  })
  after(() => sink?.close())
  const page = pastedPage('docs/guide/clients.md', () => ({ DOWN: sink.url('/down'), UP: sink.url('/up') }))
  /** The reader's last line of the installation, with what is installed already in its place. */
  const installed = (heading: string, line: RegExp, instead: string) =>
    page.paste(heading, (commands) => {
      expect(commands).to.match(line)
      return commands.replace(line, instead)
    })

  it('begin with the addresses and the key of an instance', () => page.paste('Begin'))

  describe('in TypeScript', () => {
    let folder: string
    before(async function () {
      folder = await generatorOrSkip(this, 'typescript')
    })

    it('are of the versions that the page installs', async () => {
      const { dependencies, devDependencies } = manifest
      const named = Object.entries({ ...dependencies, ...devDependencies }).map(([name, v]) => `${name}@${v}`)
      const [line = ''] = /^npm install .*$/m.exec(page.sections.get('TypeScript')!) ?? []
      expect(line.split(' ').slice(2)).to.have.members(named)
      await installed(
        'TypeScript',
        /^npm install .*$/m,
        `cp ${folder}/package.json .; ln -s ${folder}/node_modules .`,
      )
    })

    it('are made without a warning', async () => {
      const output = await page.paste('Generate the types')
      const lines = output.trim().split('\n')
      expect(lines, output).to.have.length(2)
      expect(lines[0]).to.equal(`✨ openapi-typescript ${manifest.devDependencies['openapi-typescript']}`)
      expect(lines[1]).to.match(/^🚀 http:\/\/\S+\/openapi\.json → penstock\.ts \[[\d.]+m?s\]$/)
    })

    it('fit a program, which retries a dead letter', async () => {
      expectWalk(await page.paste('Use the types'), [
        'waits for 5000 ms, signs in x-svc-signature',
        'accepted order-1',
        'accepted order-2',
        "dead: non_retryable_error 400 [ 'order-1', 'order-2' ]",
        /^retry: 502 \{$/,
        /code: 'delivery_failed',/,
        'retry: delivered',
        'left: 0',
      ])
      expectRetried('typescript')
    })
  })

  describe('in Python', () => {
    let folder: string
    before(async function () {
      folder = await generatorOrSkip(this, 'python')
    })

    it('are of the versions that the page installs', async () => {
      const pinned = readFileSync(REQUIREMENTS, 'utf8').trim().split('\n')
      const [line = ''] = /^pip install .*$/m.exec(page.sections.get('Python')!) ?? []
      expect(pinned).to.include.members(line.split(' ').slice(2))
      const venv = /^python3 -m venv venv$/m
      await installed('Python', venv, `ln -s ${folder}/venv venv; pip() { test "$1" = install; }`)
    })

    it('are made without a warning', async () => {
      expect(await page.paste('Generate the package')).to.equal('Generating generated\n')
    })

    it('fit a program, which retries a dead letter', async () => {
      const all = 'python -m compileall -q generated\nmypy generated/penstock_client'
      const output = await page.paste('Use the package', (commands) => `${commands}\n${all}`)
      expect(output.match(/^Success: no issues found/gm), output).to.have.length(2)
      expectWalk(output, [
        /^Success: no issues found/,
        'waits for 5000 ms, at most 2 items',
        'accepted order-1',
        'accepted order-2',
        "dead: non_retryable_error 400 ['order-1', 'order-2']",
        'retry: 502 delivery_failed',
        'retry: delivered',
        'left: 0',
      ])
      expectRetried('python')
    })
  })

  it('are told by a page of which every command is run here', () => {
    expect([...page.sections.keys()]).to.deep.equal([
      'Begin',
      ...['TypeScript', 'Generate the types', 'Use the types'],
      ...['Python', 'Generate the package', 'Use the package'],
    ])
  })

  /** The lines are there in this order; others may stand between them. */
  function expectWalk(output: string, lines: readonly (string | RegExp)[]): void {
    const told = output.split('\n')
    const places = lines.map((line) =>
      told.findIndex((each) => (typeof line === 'string' ? each === line : line.test(each))),
    )
    expect(places, output).not.to.include(-1)
    expect(places, output).to.deep.equal(places.toSorted((a, b) => a - b))
  }

  /** The batch came refused first, by the delivery and by the early retry, and then under the same key. */
  function expectRetried(bufferId: string): void {
    const of = (path: string) => sink.requests(path).filter((request) => bufferOf(request) === bufferId)
    const [first, early, ...others] = of('/down')
    const [last, ...more] = of('/up')
    expect([others.length, more.length]).to.deep.equal([0, 0])
    expect(early!.body.equals(first!.body) && last!.body.equals(first!.body)).to.equal(true)
    const keys = [first, early, last].map((request) => request!.headers['x-idempotency-key'])
    expect(new Set(keys).size).to.equal(1)
    expect(first!.headers['x-svc-signature']).to.match(/^[0-9a-f]{64}$/)
    // The buffer signs no more: null removed it.
    expect(last!.headers).not.to.have.property('x-svc-signature')
  }
})

function bufferOf(request: SinkRequest): string {
  return (request.json() as { svc: { bufferId: string } }).svc.bufferId
}
