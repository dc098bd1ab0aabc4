import { expect } from 'chai'
import { describe, it } from 'mocha'
import { layoutLines } from '../../cmd/cluster/layout.ts'
import { placesOf } from '../../cmd/cluster/places.ts'
import { startService } from '../support/service.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('the places of a cluster on one machine', () => {
  it('have any free ports unless they are given, then those that follow', () => {
    expect(placesOf({ port: 0, opsPort: 0 }).map(({ port, opsPort }) => port ?? opsPort)).to.deep.equal([
      0, 0, 0, 0, 0, 0,
    ])
    expect(placesOf({ port: 9_000, opsPort: 9_100 })).to.deep.equal([
      { name: 'admin', role: 'admin', port: 9_000, opsPort: 9_100 },
      { name: 'ingress-1', role: 'ingress', port: 9_001, opsPort: 9_101 },
      { name: 'ingress-2', role: 'ingress', port: 9_002, opsPort: 9_102 },
      { name: 'actor-1', role: 'actor', port: undefined, opsPort: 9_103 },
      { name: 'actor-2', role: 'actor', port: undefined, opsPort: 9_104 },
      { name: 'actor-3', role: 'actor', port: undefined, opsPort: 9_105 },
    ])
  })

  it('are shown as a table', () => {
    const members = [
      { name: 'nats-1', pid: 7, address: '127.0.0.1:1', opsUrl: undefined },
      { name: 'ingress-1', pid: 12345, address: 'http://127.0.0.1:2', opsUrl: 'http://127.0.0.1:3' },
    ]
    expect(layoutLines(members, '/data/nodes').split('\n').slice(1, 4)).to.deep.equal([
      '  node       pid    address             ops (live, ready, metrics)',
      '  nats-1     7      127.0.0.1:1         -',
      '  ingress-1  12345  http://127.0.0.1:2  http://127.0.0.1:3',
    ])
  })
})

describe('npm run cluster', () => {
  const refused: [string, string, string][] = [
    [
      'PENSTOCK_NATS_URL',
      'nats://127.0.0.1:4222',
      'the cluster brings its own; unset it, or run the roles themselves',
    ],
    [
      'PENSTOCK_DATABASE_URL',
      'postgres://127.0.0.1/db',
      'the cluster brings its own; unset it, or run the roles themselves',
    ],
    ['PENSTOCK_REPLICAS', '5', 'must be at most 3 here'],
    ['PENSTOCK_PROCESSES', '2', 'is for npm start'],
  ]
  for (const [name, value, why] of refused) {
    it(`refuses ${name}=${value} in one line`, async () => {
      const run = await startService({
        dataDir: tempFolder(),
        program: 'cmd/cluster/main.ts',
        env: { [name]: value },
      })
      expect(await run.exited()).to.equal(1)
      expect(run.output()).to.equal(`${name}: ${why}\n`)
    })
  }
})
