/** What a start says of its Postgres. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Node, openStore } from '../../../cmd/wiring/foundation.ts'
import { Lifecycle } from '../../../internal/runtime/lifecycle.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { freshDatabase } from '../../support/servers.ts'

describe('a start on a Postgres', () => {
  /** The lines of a start with this mode, which is stopped at once. */
  async function warnings(sslmode?: string): Promise<unknown[]> {
    const lines: unknown[] = []
    const log = { info() {}, error() {}, fatal() {}, warn: (...line: unknown[]) => lines.push(line) }
    const clock = systemClock()
    const lifecycle = new Lifecycle(clock, log)
    const url = new URL(await freshDatabase())
    if (sslmode !== undefined) url.searchParams.set('sslmode', sslmode)
    const node = { log, clock, lifecycle } as unknown as Node
    await openStore(node, url.href, [{ id: 'test', key: Buffer.alloc(32) }], { unreadable() {} })
    await lifecycle.shutdown()
    return lines
  }

  it('warns of a mode of TLS that verifies no certificate', async () => {
    expect(await warnings('prefer')).to.deep.equal([
      [{ sslmode: 'prefer' }, 'the certificate of Postgres is not verified'],
    ])
  })

  it('says nothing without TLS', async () => {
    expect(await warnings()).to.deep.equal([])
  })
})
