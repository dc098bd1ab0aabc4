import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { createInstallation, type Installation } from '../support/service.ts'
import { tempFolder } from '../support/temp-folders.ts'

/** The commands of README.md, exactly as they stand there, against a service of their own. */
describe('the commands of the README', () => {
  const readme = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8')
  let installation: Installation

  before(async function () {
    this.timeout(120_000)
    installation = await createInstallation({ shared: true, customers: ['local'] })
    await installation.start()
  })
  after(() => installation.stop())

  /** The shell commands under a heading. */
  function commandsOf(heading: string): string {
    const section = readme.split(/^(?=#{2,3} )/m).find((part) => part.startsWith(`${heading}\n`))
    const blocks = [...(section ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
    expect(blocks, heading).not.to.deep.equal([])
    return blocks.join('')
  }

  /** Runs them as somebody who pastes them; the first that fails ends it. */
  async function run(commands: string): Promise<{ code: number; output: string }> {
    const { customerId, key } = installation.api()
    expect(customerId).to.equal('local')
    const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
      cwd: tempFolder('readme'),
      env: { PATH: process.env.PATH, P: installation.service.url, KEY: key },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const chunks: Buffer[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code] = (await once(child, 'close')) as [number]
    return { code, output: Buffer.concat(chunks).toString('utf8') }
  }

  it('take a tour: four items come out as one signed batch', async function () {
    this.timeout(120_000)
    let commands = commandsOf('## A tour')
    // A reader's machine is not busy: on one that is, a pause would make two batches, or none in time.
    for (const [short, long] of [
      ['"idleTimeoutMs":1000', '"idleTimeoutMs":4000'],
      ['sleep 2', 'sleep 8'],
    ] as const) {
      expect(commands).to.include(short)
      commands = commands.replace(short, long)
    }
    const { code, output } = await run(commands)
    expect(code, output).to.equal(0)
    expect(output).to.include('"duplicate":true')
    const [request, ...others] = received(output)
    expect(others).to.deep.equal([])
    expect(request?.headers).to.have.property('x-svc-signature')
    expect(request?.body.items).to.have.length(4)
  })

  it('walk from a key to a retry: what failed is delivered once its destination is up', async () => {
    const { code, output } = await run(commandsOf('### From a key to a retry'))
    expect(code, output).to.equal(0)
    expect(output).to.include('"success":false')
    const [failed = '', delivered = ''] = output.split('still down')
    expect(failed).to.include('"code":"delivery_failed"')
    expect(delivered).to.include('"status":"delivered"')
    const [request, ...others] = received(delivered)
    expect(others).to.deep.equal([])
    expect(request?.body.items.map(({ payload }) => payload)).to.deep.equal([
      { customer: 'ada', order: 1 },
      { customer: 'ada', order: 2 },
    ])
    expect(request?.headers['x-idempotency-key']).to.match(/^grp:.+:v\d+$/)
    expect(output.trimEnd()).to.match(/\[\]$/)
    // The key of the walk is gone, nothing else is.
    const keys = await installation
      .api()
      .expect<{ name: string; revokedAt: string | null }[]>(...([200, 'GET', '/v1/admin/api-keys'] as const))
    expect(keys.filter(({ revokedAt }) => revokedAt !== null).map(({ name }) => name)).to.deep.equal(['walk'])
  })
})

interface Received {
  headers: Record<string, string>
  body: { items: { payload: unknown }[] }
}

/** What the receiver of the local instance showed: the list that begins with `[{"receivedAt"`. */
function received(output: string): Received[] {
  const text = output.split('\n').join(' ')
  const list = /\[\{"receivedAt".*?\}\]\}\}\]/.exec(text)?.[0]
  if (list === undefined) throw new Error(`the receiver showed nothing:\n${output}`)
  return JSON.parse(list)
}
