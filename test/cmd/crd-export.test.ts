/** How `npm run crd -- export` refuses; what it prints: test/operator/reconcile/export.test.ts. */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { createKey } from '../../cmd/account/create-key.ts'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import { crdExport } from '../support/crd-export.ts'
import { freshDatabase } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('npm run crd -- export', () => {
  let env: Record<string, string>
  before(async () => {
    env = { PENSTOCK_DATABASE_URL: await freshDatabase(), PENSTOCK_DATA_DIR: tempFolder('data') }
    const db = connect(env.PENSTOCK_DATABASE_URL!, { max: 1 })
    await createKey(db, { initialCredits: 0 }, 'acme')
    await storeBuffer(db)
    await db.end()
  })

  const refusal = async (args: string[], more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await crdExport(args, { ...env, ...more })
    expect(stdout).to.equal('')
    return { code, line: stderr.trimEnd() }
  }
  const service = { PENSTOCK_URL: 'http://127.0.0.1:9', PENSTOCK_API_KEY: 'k' }

  it('reads a database without the key of its secrets', async () => {
    const { code, stdout, stderr } = await crdExport(['--customer', 'acme'], env)
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '1 Buffer\n' })
    expect(stdout).to.match(/^---\n# Make the Secret orders-secrets first.*\n(# .*\n)+apiVersion: buffering/)
    expect(stdout)
      .to.include('key: header-x-team')
      .and.not.to.match(/hidden|enc1:|unreadable/)
  })

  it('refuses in one line what it cannot do', async () => {
    const cases: [string[], Record<string, string>, number, string | RegExp][] = [
      [[], {}, 2, '--customer is required without PENSTOCK_URL and PENSTOCK_API_KEY'],
      [['--customer', 'no/slash'], {}, 1, /^customer must be /],
      [['--customer', 'nobody'], {}, 1, 'Customer not found'],
      [['--customer', 'acme', '--namespace', 'A'], {}, 2, /^--namespace must be /],
      [['--customer', 'acme', '--credentials-secret', ''], {}, 2, /^--credentials-secret must be /],
      [['--customer', 'acme', '--plain-header', 'X-Key'], {}, 2, /^--plain-header X-Key: /],
      [
        ['--customer', 'acme', '--plain-header', 'x-team'],
        {},
        2,
        /^buffer orders: the value of the header x-team /,
      ],
      [[], { PENSTOCK_URL: 'http://127.0.0.1:9' }, 2, /^set both /],
      [[], service, 1, /^no answer from http:\/\/127\.0\.0\.1:9: /],
      [[], { ...service, PENSTOCK_URL: 'nowhere' }, 1, 'PENSTOCK_URL must be an http or https address'],
      [[], { ...service, PENSTOCK_URL: 'ftp://a' }, 1, 'PENSTOCK_URL must be an http or https address'],
      [[], { ...service, PENSTOCK_API_KEY: 'svk_\n' }, 1, 'PENSTOCK_API_KEY is no API key'],
    ]
    for (const [args, more, code, line] of cases) {
      const refused = await refusal(args, more)
      expect(refused.code, refused.line).to.equal(code)
      if (typeof line === 'string') expect(refused.line).to.equal(line)
      else expect(refused.line).to.match(line)
    }
  })

  it('shows its usage for what is no use of it', async () => {
    for (const args of [['acme'], ['--nothing'], ['--customer']]) {
      const { code, line } = await refusal(args)
      expect(code).to.equal(2)
      expect(line).to.match(/^usage: npm run crd\n/)
    }
  })

  it('tells what a service answers, and follows it nowhere with the key', async () => {
    const server = createServer((request, response) => {
      if (request.url!.startsWith('/other/')) return response.end('<html>')
      if (request.url!.startsWith('/away/')) return response.writeHead(302, { location: '/else' }).end()
      return response.writeHead(401).end('{"error":"Invalid or revoked API key"}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const key = `svk_${randomUUID()}`
    const told = await refusal([], { PENSTOCK_URL: url, PENSTOCK_API_KEY: key })
    expect(told).to.deep.equal({ code: 1, line: 'GET /v1/admin/whoami: 401 Invalid or revoked API key' })
    const other = await refusal([], { PENSTOCK_URL: `${url}/other`, PENSTOCK_API_KEY: key })
    expect(other).to.deep.equal({ code: 1, line: 'GET /other/v1/admin/whoami: the answer is no JSON' })
    const away = await refusal([], { PENSTOCK_URL: `${url}/away`, PENSTOCK_API_KEY: key })
    expect(away.code).to.equal(1)
    expect(away.line).to.match(/^no answer from /)
    server.close()
  })
})

/** With a secret, under a key that nobody keeps. */
async function storeBuffer(db: Database): Promise<void> {
  const place = { customerId: 'acme', projectId: 'shop' }
  await createProjectStore(db).insert({ ...place, name: 'Shop' })
  const parsed = parseBufferCreate({
    bufferId: 'orders',
    projectId: 'shop',
    name: 'Orders',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    delivery: { url: 'https://shop.example/', headers: { 'x-team': 'hidden' } },
  })
  if (!parsed.ok) throw new Error(parsed.error)
  const box = createSecretBox([{ id: 'lost', key: randomBytes(32) }])
  await createBufferStore(db, box).insert({ ...parsed.value, ...place, uid: randomUUID() })
}
