import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodePack, type PackItem, readItems, readPackHeader } from '../../../internal/domain/pack.ts'
import { buildBody } from '../../../internal/shard/batches/body.ts'
import type { LiveItem } from '../../../internal/shard/held/live.ts'

describe('the body of a batch', () => {
  const OWNER = { customerId: 'c', projectId: 'p', bufferId: 'b' }
  const GROUP = 'AAAAAAAAAAAAAAAAAAAAAA'

  function bodyOf(receivedAt: readonly number[]) {
    const items = receivedAt.map(
      (at, n): PackItem => ({
        itemId: `22222222-2222-4222-8222-${String(n).padStart(12, '0')}`,
        bufferUid: '11111111-1111-4111-8111-111111111111',
        groupToken: GROUP,
        groupKey: 'k',
        messageId: `m${n}`,
        explicit: true,
        credits: 1,
        receivedAt: at,
        payload: Buffer.from(`{"n":${n}}`),
      }),
    )
    const pack = Buffer.from(encodePack(Buffer.alloc(12), null, items))
    const live: LiveItem[] = []
    readItems(pack, readPackHeader(pack), ({ offset }) => live.push({ offset } as LiveItem))
    return buildBody(OWNER, GROUP, 0, live, () => pack)
  }

  it('has the first and the last time of its items, in whatever order they stand', () => {
    const { firstItemAt, lastActivityAt, body } = bodyOf([400, 500, 300, 450])
    expect([firstItemAt, lastActivityAt]).to.deep.equal([300, 500])
    expect(JSON.parse(body.toString()).window).to.deep.equal({
      firstItemAt: 300,
      lastActivityAt: 500,
      itemsCount: 4,
    })
  })
})
