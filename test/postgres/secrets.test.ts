import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createSecretBox, parseSecretKeys } from '../../internal/postgres/secrets.ts'
import { type AccountsNode, accountsNode, bufferBody, principal } from '../support/accounts.ts'

const base64 = (fill: number) => Buffer.alloc(32, fill).toString('base64')
const place = ['uid', 'delivery', 'signing', 'secret']

describe('secrets at rest', () => {
  it('open to what was sealed, and never look the same twice', () => {
    const box = createSecretBox([{ id: 'a', key: randomBytes(32) }])
    for (const plain of ['', 'x', 'ü€😀', 'a:b:c', 'x'.repeat(10_000)]) {
      const sealed = box.seal(plain, place)
      expect(box.open(sealed, place)).to.equal(plain)
      expect(box.seal(plain, place)).not.to.equal(sealed)
    }
  })

  it('do not open elsewhere, with another key, changed, cut short or unsealed', () => {
    const box = createSecretBox([{ id: 'a', key: randomBytes(32) }])
    const sealed = box.seal('secret', place)
    // Opened before: what is remembered of it opens nothing else.
    expect(box.open(sealed, place)).to.equal('secret')
    const [prefix, body] = [sealed.slice(0, 7), Buffer.from(sealed.slice(7), 'base64url')]
    const flipped = (index: number) => {
      const copy = Buffer.from(body)
      copy[index]! ^= 1
      return prefix + copy.toString('base64url')
    }
    const damaged = [
      ...Array.from({ length: body.length }, (_, index) => flipped(index)),
      prefix + body.subarray(0, body.length - 1).toString('base64url'),
      prefix + body.subarray(0, 20).toString('base64url'),
      prefix,
      'secret',
      '',
    ]
    for (const text of damaged) expect(() => box.open(text, place), text).to.throw(/delivery.signing.secret/)
    expect(() => box.open(sealed, ['other', ...place.slice(1)])).to.throw('another place')
    expect(() => box.open(sealed, ['uid', 'delivery', 'signing.secret'])).to.throw('another place')
    const other = createSecretBox([{ id: 'a', key: randomBytes(32) }])
    expect(() => other.open(sealed, place)).to.throw('another key')
  })

  it('rotate: the first key seals, all of them open', () => {
    const [old, fresh] = [
      { id: 'old', key: randomBytes(32) },
      { id: 'new', key: randomBytes(32) },
    ]
    const before = createSecretBox([old]).seal('kept', place)
    const both = createSecretBox([fresh, old])
    expect(both.open(before, place)).to.equal('kept')
    expect(both.seal('x', place)).to.match(/^enc1:new:/)
    expect(() => createSecretBox([fresh]).open(before, place)).to.throw('its key old is not configured')
  })

  it('read their keys from the variable, and never repeat one in an error', () => {
    expect(parseSecretKeys(base64(1))).to.deep.equal({
      ok: true,
      value: [{ id: 'default', key: Buffer.alloc(32, 1) }],
    })
    const pairs = parseSecretKeys(`b:${base64(2)}, a:${base64(1)}`)
    expect(pairs.ok && pairs.value.map(({ id }) => id)).to.deep.equal(['b', 'a'])
    const short = Buffer.alloc(31, 7).toString('base64')
    for (const bad of [
      '',
      short,
      `a:${short}`,
      `a:${base64(1)},a:${base64(2)}`,
      `b d:${base64(1)}`,
      `:${base64(1)}`,
    ]) {
      const parsed = parseSecretKeys(bad)
      expect(parsed.ok, bad).to.equal(false)
      if (!parsed.ok && bad !== '') expect(parsed.error).not.to.contain(short).and.not.to.contain(base64(1))
    }
  })
})

describe('the database', () => {
  let node: AccountsNode
  const acme = principal('acme')
  before(async () => {
    node = await accountsNode()
    await node.customers.ensure('acme')
    await node.projects.create(acme, { projectId: 'p', name: 'x' })
  })
  after(() => node.close())

  /** Every row of every table as text, and as the hexadecimal form in which bytea would show it. */
  async function dump(): Promise<string> {
    const tables =
      await node.db`SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'`
    const rows = await Promise.all(
      tables.map(({ name }) => node.db.unsafe(`SELECT t::text AS row FROM ${name} t`)),
    )
    return rows.flatMap((table) => table.map(({ row }) => row)).join('\n')
  }

  it('holds no secret in the clear, neither after a creation nor after a change', async () => {
    const secrets = Array.from({ length: 8 }, () => `clear-${randomBytes(12).toString('hex')}`)
    const [signing, source, header, newSigning, newSource, newHeader, previous, newPrevious] = secrets
    const config = (sign?: string, verify?: string, value?: string, before?: string) => ({
      delivery: {
        url: 'https://example.com/hook',
        signing: { type: 'hmac-sha256', secret: sign, header: 'x-sig' },
        headers: { authorization: value, 'x-second': value },
      },
      sourceVerification: { enabled: true, signingSecret: verify, previousSecret: before },
    })
    await node.buffers.create(acme, bufferBody('b', 'p', config(signing, source, header, previous)))
    const created = await dump()
    await node.buffers.update(acme, 'b', config(newSigning, newSource, newHeader, newPrevious))
    const text = created + (await dump())
    expect(text).to.contain('x-second')
    for (const secret of secrets) {
      for (const form of ['utf8', 'hex', 'base64', 'base64url'] as const) {
        expect(text).not.to.contain(Buffer.from(secret).toString(form))
      }
    }
    const { sourceVerification } = await node.buffers.read(acme, 'b')
    expect(sourceVerification).to.include({ signingSecret: newSource, previousSecret: newPrevious })
  })

  it('gives no other buffer the secret whose ciphertext was copied into it', async () => {
    for (const id of ['from', 'to']) {
      const signing = { type: 'hmac-sha256', secret: `secret of ${id}` }
      await node.buffers.create(
        acme,
        bufferBody(id, 'p', { delivery: { url: 'https://example.com', signing } }),
      )
    }
    await node.db`
      UPDATE buffers SET config = (SELECT config FROM buffers WHERE buffer_id = 'from') WHERE buffer_id = 'to'`
    expect((await node.buffers.read(acme, 'to')).delivery.signing?.secret).to.equal('[unreadable]')
    const other = await accountsNode(node.url)
    const [lost, good] = await Promise.all(['to', 'from'].map((id) => other.bufferCache.loadById(id)))
    expect(lost?.unreadable?.why).to.match(
      /cannot be read: it was sealed with another key or for another place/,
    )
    expect(good?.buffer.delivery.signing?.secret).to.equal('secret of from')
    await other.close()
  })
})
