/** What somebody can make large without a word to the operator: Secrets of many keys, and the metadata of any resource. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { Cache } from '../../../operator/controller/cache.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { Reflector } from '../../../operator/kubernetes/reflector.ts'
import { SecretReader } from '../../../operator/kubernetes/secret-reader.ts'
import type { SecretMetadata } from '../../../operator/reconcile/ports.ts'
import { eventually } from '../../support/eventually.ts'

const { signal } = new AbortController()
const MANY = 60_000

let server: Server
let api: ApiServer
/** What the API server answers, and the paths that it was asked for. */
let answer: (url: URL, request: IncomingMessage, response: ServerResponse) => unknown
let asked: URL[]

beforeEach(async () => {
  asked = []
  server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://api')
    asked.push(url)
    const body = answer(url, request, response)
    if (body !== undefined) response.end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const connection = { server: `http://127.0.0.1:${port}`, headers: {}, options: { type: 'none' as const } }
  api = new ApiServer({ namespace: undefined, connection: async () => connection }, { answerMs: 3_000 })
})

afterEach(() => {
  api.close()
  server.closeAllConnections()
  server.close()
})

const known = (name: string, more: object = {}): SecretMetadata => ({
  metadata: { namespace: 'shop', name, uid: `uid-of-${name}`, resourceVersion: '7', ...more },
})

function manyKeys(value: unknown): Record<string, unknown> {
  return Object.fromEntries(Array.from({ length: MANY }, (_, index) => [`key-${index}`, value]))
}

describe('a Secret of many keys', () => {
  let reader: SecretReader
  const read = (secret: SecretMetadata, ...keys: string[]) => reader.read(secret, new Set(keys), signal)

  beforeEach(() => {
    reader = new SecretReader(api, systemClock())
  })

  it('is read and kept for the keys that are asked for', async () => {
    answer = () => ({ ...known('many'), data: { ...manyKeys(''), apiKey: 'a2V5' } })
    const secret = await read(known('many'), 'apiKey', 'missing')
    expect(secret).to.deep.equal({ ...known('many'), data: { apiKey: 'a2V5' } })
    expect(reader.size).to.be.within(1, 1_500)
    await read(known('many'), 'missing')
    expect(asked, 'that it lacks a key is known').to.have.length(1)
  })

  it('is read once more for other keys, and then for all of them together', async () => {
    answer = () => ({ ...known('many'), data: manyKeys('YQ==') })
    await read(known('many'), 'key-1')
    expect((await read(known('many'), 'key-2'))?.data).to.deep.equal({ 'key-1': 'YQ==', 'key-2': 'YQ==' })
    await read(known('many'), 'key-1')
    expect(asked).to.have.length(2)
    answer = () => ({ ...known('many', { resourceVersion: '8' }), data: manyKeys('Yg==') })
    await read(known('many', { resourceVersion: '8' }), 'key-1')
    await read(known('many', { resourceVersion: '8' }), 'key-2')
    expect(asked, 'a change is read once').to.have.length(3)
  })

  it('counts by its names where its values are empty', async () => {
    const keys = Array.from({ length: 54 }, (_, index) => `${'k'.repeat(240)}-${index}`)
    answer = ({ pathname }) => ({
      ...known(pathname.split('/').at(-1)!),
      data: Object.fromEntries(keys.map((key) => [key, ''])),
    })
    for (let secret = 0; secret < 100; secret++) await read(known(`many-${secret}`), ...keys)
    expect(reader.size).to.be.within(1_900_000, 2_000_000)
    asked = []
    await read(known('many-99'), ...keys)
    expect(asked, 'the last one is kept').to.have.length(0)
    await read(known('many-0'), ...keys)
    expect(asked, 'the first one made room').to.have.length(1)
  })

  it('leaves nothing of itself when it is made anew under its name', async () => {
    const anew = (index: number) => known('many', { uid: `uid-${index}` })
    const sizes = new Set<number>()
    for (let index = 0; index < 10; index++) {
      answer = () => ({ ...anew(index), data: { apiKey: 'a2V5' } })
      await read(anew(index), 'apiKey')
      sizes.add(reader.size)
    }
    expect(sizes.size).to.equal(1)
  })
})

describe('metadata of others', () => {
  const reflect = (metadataOnly: boolean) => {
    const replica = new Cache<SecretMetadata>({ onFault: (error) => expect.fail(String(error)) })
    const reflector = new Reflector<SecretMetadata>({
      api,
      replica,
      metadataOnly,
      collection: { root: '/api/v1', plural: 'secrets' },
      clock: systemClock(),
      randomness: { fraction: () => 0 },
      log: { debug: () => {}, warn: () => {} },
    })
    const stop = new AbortController()
    const ended = reflector.run(stop.signal)
    const end = async () => {
      stop.abort()
      await ended
    }
    return { replica, reflector, end }
  }

  it('never comes into memory, of lists and of events', async () => {
    const managedFields = [{ manager: 'x', fieldsV1: { 'f:data': manyKeys({}) } }]
    const large = (name: string) => {
      const { metadata } = known(name)
      return { metadata: { managedFields, ...metadata, labels: manyKeys('x'), finalizers: ['x/y'] } }
    }
    answer = (url, _request, response) => {
      if (url.searchParams.get('watch') === null)
        return { metadata: { resourceVersion: '7' }, items: [large('a')] }
      response.write(`${JSON.stringify({ type: 'ADDED', object: large('b') })}\n`)
    }
    const { replica, reflector, end } = reflect(true)
    await reflector.synced
    await eventually(() => replica.size === 2, { timeoutMs: 30_000 })
    expect(replica.list()).to.deep.equal([known('a'), known('b')])
    await end()
  })

  it('that takes an API server too long is listed in smaller pages', async function () {
    this.timeout(60_000)
    answer = (url) => {
      if (url.searchParams.get('watch') !== null || Number(url.searchParams.get('limit')) > 25)
        return undefined
      return { metadata: { resourceVersion: '7' }, items: [known('a')] }
    }
    const { replica, reflector, end } = reflect(true)
    await reflector.synced
    expect(replica.list()).to.deep.equal([known('a')])
    const limits = asked
      .map(({ searchParams }) => searchParams.get('limit'))
      .filter((limit) => limit !== null)
    expect(limits.slice(0, 3)).to.deep.equal(['100', '50', '25'])
    await end()
  })
})
