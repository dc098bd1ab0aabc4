import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import type { Role } from '../../../internal/domain/model.ts'
import { documentedTable } from '../../../internal/http/openapi/document.ts'
import type { Route } from '../../../internal/http/routes/route.ts'
import { covers } from '../../support/traffic.ts'
import type { Answer } from '../caller.ts'
import { type Rule, rules } from './rules.ts'
import { type Ids, MARK, projectOf, type Reach, reaches, World } from './world.ts'

/**
 * Every endpoint x role x reach, from the route table. What is out of reach must look exactly like what does
 * not exist, unless the rule names the passage that says otherwise, and nothing of it changes.
 */

const table = documentedTable()

/** From the least to the most powerful. */
const ROLES: readonly Role[] = ['viewer', 'member', 'admin', 'owner']

function may(role: Role, { least }: Rule): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}

/** What is on sale is everybody's. */
const SHARED = ['packId', 'planId']

/** The same ids, but none of them names anything. */
function ghosts(ids: Ids): Ids {
  return Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [
      name,
      SHARED.includes(name) ? id : `ghost-${crypto.randomUUID()}`,
    ]),
  )
}

/** Endpoints that have a `customerId` in their body, where it says whose the request is. */
function namesCustomerInBody({ operationId, method, body }: Route): boolean {
  // In a creation of a customer it is the new one; in a PATCH a field that cannot be changed.
  if (operationId === 'createCustomer' || method === 'PATCH') return false
  return Object.hasOwn((body?.properties as object | undefined) ?? {}, 'customerId')
}

describe('tenancy', () => {
  let world: World

  before(async () => {
    world = await World.open()
  })
  afterEach(() => expect(world.failed).to.deep.equal([]))
  after(() => world.close())

  function ask(
    row: Route,
    rule: Rule,
    ids: Ids,
    caller: { customerId: string; key: string },
  ): Promise<Answer> {
    const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name]!)
    const query = new URLSearchParams(rule.query?.(ids, caller.customerId)).toString()
    return world.ask(caller, row.method, query === '' ? path : `${path}?${query}`, rule.body?.(ids))
  }

  it('has one rule for every endpoint', () => {
    expect(Object.keys(rules)).to.have.members(table.map(({ operationId }) => operationId))
  })

  for (const row of table) {
    const rule = rules[row.operationId]
    if (rule === undefined) continue
    describe(row.operationId, () => {
      for (const [index, reach] of reaches.entries()) {
        const status = rule.answers[index]
        if (status === null || status === undefined) continue
        it(`${reach}: ${status}, or 403 without the role`, () => judge(row, rule, reach, status))
      }
    })
  }

  async function judge(row: Route, rule: Rule, reach: Reach, status: number): Promise<void> {
    for (const role of ROLES) {
      const ids = await rule.target(world, projectOf(reach), reach)
      const caller = world.caller(reach, role)
      const before = await world.everything()
      const answer = await ask(row, rule, ids, caller)
      if (!may(role, rule)) {
        const allowed = `Requires one of the following roles: ${ROLES.slice(ROLES.indexOf(rule.least)).join(', ')}`
        expect(answer.status, `${role} ${answer.text}`).to.equal(403)
        expect(answer.json).to.have.property('message', allowed)
      } else {
        expect(answer.status, `${role} ${answer.text}`).to.equal(status)
      }
      if (reach === 'own') {
        covers(`${row.operationId} for ${role}: ${may(role, rule) ? 'yes' : 'no'}`)
      }
      const hidden = reach === 'outside' || reach === 'foreign'
      if (hidden || answer.status === 403) {
        expect(await world.everything(), `${role} changed something`).to.equal(before)
      }
      if (hidden) {
        const mark = reach === 'outside' ? `${MARK}shop` : MARK
        expect(answer.text, `${role} sees what is out of reach`).not.to.include(mark)
        if (rule.tells?.[reach] === undefined) await looksLikeNothing(row, rule, ids, caller, answer)
      }
    }
  }

  async function looksLikeNothing(
    row: Route,
    rule: Rule,
    ids: Ids,
    caller: { customerId: string; key: string },
    answer: Answer,
  ): Promise<void> {
    const ghost = await ask(row, rule, ghosts(ids), caller)
    expect([answer.status, withoutTimes(answer.json)]).to.deep.equal([ghost.status, withoutTimes(ghost.json)])
  }

  describe('ingest with a key', () => {
    const statuses: Record<Reach, number> = { own: 202, inside: 202, outside: 403, foreign: 403 }
    for (const reach of reaches) {
      it(`${reach}: ${statuses[reach]} for every role`, async () => {
        const { projectId, bufferId } = await world.buffer(projectOf(reach))
        for (const role of ROLES) {
          const caller = world.caller(reach, role)
          const path = `/v1/ingest/${projectId}/${bufferId}`
          const { status, text } = await world.ask(caller, 'POST', path, { customer: 'ada' })
          expect(status, `${role} ${text}`).to.equal(statuses[reach])
          if (status === 403) expect(text).to.include('API key does not have access to this buffer')
        }
      })
    }
  })

  describe('a customerId of somebody else', () => {
    for (const row of table.filter((each) => each.customerId !== undefined)) {
      it(`${row.operationId}: 403 in the query, whether it exists or not`, async () => {
        const rule = rules[row.operationId]!
        const ids = await rule.target(world, 'lab', 'foreign')
        for (const customerId of ['acme', 'nobody']) {
          const answer = await ask(
            row,
            { ...rule, query: (its) => ({ ...rule.query?.(its, ''), customerId }) },
            ids,
            {
              ...world.caller('foreign', 'owner'),
            },
          )
          expect([answer.status, answer.json]).to.deep.equal([
            403,
            { error: 'customerId differs from the authenticated customer' },
          ])
        }
      })
    }

    for (const row of table.filter(namesCustomerInBody)) {
      it(`${row.operationId}: 403 in the body, whether it exists or not`, async () => {
        const rule = rules[row.operationId]!
        const ids = await rule.target(world, 'lab', 'own')
        const before = await world.everything()
        for (const customerId of ['acme', 'nobody']) {
          const body = (its: Ids) => ({ ...(rule.body?.(its) as object), customerId })
          const answer = await ask(row, { ...rule, body }, ids, world.caller('foreign', 'owner'))
          expect([answer.status, answer.json], customerId).to.deep.equal([
            403,
            { error: 'customerId differs from the authenticated customer' },
          ])
        }
        expect(await world.everything()).to.equal(before)
      })
    }
  })
})

/** `lastUsedAt` of the caller's own key moves on from one request to the next. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null, (name, member) => (name === 'lastUsedAt' ? null : member)))
}
