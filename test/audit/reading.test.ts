import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createAuditReading } from '../../internal/audit/reading.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { Principal } from '../../internal/domain/principal.ts'

const principal: Principal = { customerId: 'acme', role: 'admin', via: 'key', keyId: 'k1' }

async function refusalOf(work: Promise<unknown>): Promise<unknown> {
  const error = await work.catch((reason) => reason)
  if (!(error instanceof ServiceError)) throw new Error(`not refused: ${error}`)
  return { status: error.status, error: error.body.error }
}

describe('reading the audit', () => {
  /** What the store is asked for; it has nothing. */
  function asked() {
    const pages: unknown[] = []
    const reading = createAuditReading({
      store: {
        async list(customerId, page) {
          pages.push({ customerId, ...page })
          return []
        },
      },
    })
    return { reading, pages }
  }

  const UUID = '0190d7a0-0000-7000-8000-00000000000a'

  it('begins at the end of the range, or behind the cursor where that is older', async () => {
    const { reading, pages } = asked()
    await reading.list(principal, { limit: 50 })
    await reading.list(principal, { limit: 50, since: 10, until: 20 })
    await reading.list(principal, { limit: 50, until: 20, cursor: `15_${UUID}` })
    await reading.list(principal, { limit: 50, until: 20, cursor: `20_${UUID}` })
    const first = '00000000-0000-0000-0000-000000000000'
    const all = { customerId: 'acme', since: 0, limit: 51 }
    expect(pages).to.deep.equal([
      { ...all, before: { createdAt: Number.MAX_SAFE_INTEGER, auditId: first } },
      { ...all, since: 10, before: { createdAt: 20, auditId: first } },
      { ...all, before: { createdAt: 15, auditId: UUID } },
      { ...all, before: { createdAt: 20, auditId: first } },
    ])
  })

  it('refuses a cursor that no page has', async () => {
    const { reading, pages } = asked()
    for (const cursor of ['x', `_${UUID}`, `15_${UUID.slice(1)}`, `15_${UUID.toUpperCase()}`, `-1_${UUID}`])
      expect(await refusalOf(reading.list(principal, { limit: 1, cursor })), cursor).to.deep.equal({
        status: 400,
        error: 'cursor must be the nextCursor of a page',
      })
    expect(pages).to.deep.equal([])
  })

  it('is refused to a key that is limited to projects', async () => {
    const { reading, pages } = asked()
    const scoped = { ...principal, projectIds: ['shop'] }
    expect(await refusalOf(reading.list(scoped, { limit: 1 }))).to.deep.equal({
      status: 403,
      error: 'A project-scoped key cannot read the audit',
    })
    expect(pages).to.deep.equal([])
  })
})
