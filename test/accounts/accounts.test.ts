import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Principal } from '../../internal/domain/principal.ts'
import {
  type AccountsNode,
  accountsNode,
  bufferBody,
  INITIAL_CREDITS,
  principal,
  refusal,
} from '../support/accounts.ts'

describe('accounts', () => {
  let node: AccountsNode
  const acme = principal('acme')
  const other = principal('other')

  before(async () => {
    node = await accountsNode()
    await node.customers.ensure('acme')
    await node.customers.ensure('other')
  })
  after(() => node.close())

  describe('customers', () => {
    it('starts with the initial credits, granted in a transaction', async () => {
      const created = await node.customers.create(acme, { customerId: 'child', name: 'Child' })
      expect(created).to.include({ customerId: 'child', name: 'Child', enabled: true })
      expect(created).to.include({
        credits: INITIAL_CREDITS,
        creditLimit: INITIAL_CREDITS,
        creditsUsedThisMonth: 0,
      })
      expect(created.createdAt).to.be.closeTo(Date.now(), 60_000)
      const rows = await node.db`
        SELECT amount, type, balance_after FROM credit_transactions WHERE customer_id = 'child'`
      expect([...rows]).to.deep.equal([
        { amount: INITIAL_CREDITS, type: 'grant', balance_after: INITIAL_CREDITS },
      ])
    })

    it('is readable by itself and its creator, and by nobody else', async () => {
      await node.customers.create(acme, { customerId: 'daughter', name: 'Daughter' })
      for (const reader of [acme, principal('daughter')]) {
        expect(await node.customers.read(reader, 'daughter')).to.include({ customerId: 'daughter' })
      }
      expect(await refusal(node.customers.read(other, 'daughter'))).to.include({ status: 404 })
      expect(await refusal(node.customers.read(acme, 'nobody'))).to.include({ status: 404 })
      expect(await refusal(node.customers.read(principal('daughter'), 'acme'))).to.include({ status: 404 })
    })

    it('has used nothing yet in a month without a charge', async () => {
      await node.customers.create(acme, { customerId: 'monthly', name: 'Monthly' })
      await node.db`UPDATE customers SET credits_used_this_month = 7 WHERE customer_id = 'monthly'`
      expect(await node.customers.read(acme, 'monthly')).to.include({ creditsUsedThisMonth: 7 })
      await node.db`UPDATE customers SET last_reset_at = '2020-02-01T00:00:00Z' WHERE customer_id = 'monthly'`
      expect(await node.customers.read(acme, 'monthly')).to.include({ creditsUsedThisMonth: 0 })
    })

    it('refuses a taken id and grants nothing again', async () => {
      await node.customers.create(acme, { customerId: 'twice', name: 'A' })
      const attempts = await Promise.all(
        [1, 2, 3].map(() => refusal(node.customers.create(acme, { customerId: 'twice', name: 'B' }))),
      )
      expect(attempts.map(({ status }) => status)).to.deep.equal([409, 409, 409])
      await node.customers.ensure('twice', 'keep')
      const rows = await node.db`SELECT 1 FROM credit_transactions WHERE customer_id = 'twice'`
      expect(rows.length).to.equal(1)
    })

    describe('that somebody created before the installation gives them out', () => {
      const reads = async (customerId: string) =>
        await node.customers.read(acme, customerId).then(
          () => true,
          () => false,
        )

      it('are not given out before it is said what their creator may read', async () => {
        await node.customers.create(acme, { customerId: 'squatted', name: 'Mine' })
        const secret = `svk_${'5'.repeat(48)}`
        for (const attempt of [
          () => node.customers.ensure('squatted'),
          () => node.apiKeys.ensureOwnerKey('squatted', secret),
        ]) {
          const error = await attempt().catch((reason) => reason)
          expect(error?.message).to.equal(
            'acme created the customer squatted and reads its balance and use. To give it out, run `npm run account -- squatted` with --take-over, which ends that, or --keep-creator',
          )
        }
        expect(await node.keyCache.authenticate(secret)).to.equal(undefined)
        expect(await reads('squatted')).to.equal(true)
      })

      it('are read by their creator no more once they are taken over', async () => {
        await node.customers.create(acme, { customerId: 'taken-over', name: 'Mine' })
        await node.customers.ensure('taken-over', 'take-over')
        expect(await reads('taken-over')).to.equal(false)
        await node.customers.ensure('taken-over')
        expect(await node.customers.read(principal('taken-over'), 'taken-over')).to.include({
          name: 'Mine',
          credits: INITIAL_CREDITS,
        })
      })

      it('stay readable for it when that is said, and need not be asked about again', async () => {
        await node.customers.create(acme, { customerId: 'branch', name: 'Branch' })
        await node.customers.ensure('branch', 'keep')
        const secret = `svk_${'6'.repeat(48)}`
        expect((await refusalOf(node.apiKeys.ensureOwnerKey('branch', secret))).message).to.include('acme')
        await node.apiKeys.createOwnerKey('branch', 'keep')
        expect(await node.apiKeys.ensureOwnerKey('branch', secret), 'it has a key').to.equal('active')
        expect(await reads('branch')).to.equal(true)
        await node.apiKeys.createOwnerKey('branch', 'take-over')
        expect(await reads('branch')).to.equal(false)
      })

      it('are none of their own: an absent one is made, whatever is said', async () => {
        for (const creator of ['take-over', 'keep'] as const) {
          await node.customers.ensure(`absent-${creator}`, creator)
          expect(await reads(`absent-${creator}`)).to.equal(false)
          expect(await node.customers.read(principal(`absent-${creator}`), `absent-${creator}`)).to.be.an(
            'object',
          )
        }
      })
    })

    it('names the field of bad input', async () => {
      const bad = [
        [{ customerId: undefined, name: 'x' }, 'customerId'],
        [{ customerId: '..', name: 'x' }, 'customerId'],
        [{ customerId: 'a'.repeat(129), name: 'x' }, 'customerId'],
        [{ customerId: 'a', name: undefined }, 'name'],
        [{ customerId: 'a', name: '' }, 'name'],
        [{ customerId: 'a', name: 'x'.repeat(257) }, 'name'],
        [{ customerId: 'a', name: 'nul\u0000' }, 'name'],
        [{ customerId: 'a', name: '\ud800' }, 'name'],
        [{ customerId: 'a', name: 7 }, 'name'],
      ] as const
      for (const [input, field] of bad) {
        const { status, error } = await refusal(node.customers.create(acme, input))
        expect(status, JSON.stringify(input)).to.equal(400)
        expect(error).to.match(new RegExp(`^${field} `))
      }
    })

    it('is not created by a project-scoped key', async () => {
      const scoped = principal('acme', { projectIds: ['p'] })
      const refused = await refusal(node.customers.create(scoped, { customerId: 'scoped', name: 'x' }))
      expect(refused.status).to.equal(403)
    })
  })

  describe('projects', () => {
    it('creates, reads, lists newest first, changes and deletes', async () => {
      const made = principal('lister')
      await node.customers.ensure('lister')
      for (const projectId of ['list-a', 'list-b'])
        await node.projects.create(made, { projectId, name: projectId })
      expect((await node.projects.list(made)).map(({ projectId }) => projectId)).to.deep.equal([
        'list-b',
        'list-a',
      ])
      const before = await node.projects.read(made, 'list-a')
      expect(before).to.include({ customerId: 'lister', name: 'list-a', enabled: true })
      const renamed = await node.projects.update(made, 'list-a', { name: 'New' })
      expect(renamed).to.include({ name: 'New', enabled: true, createdAt: before.createdAt })
      expect(await node.projects.update(made, 'list-a', { enabled: false })).to.include({
        name: 'New',
        enabled: false,
      })
      await node.projects.remove(made, 'list-a')
      expect(await refusal(node.projects.read(made, 'list-a'))).to.include({
        status: 404,
        error: 'Project not found',
      })
      expect(await refusal(node.projects.remove(made, 'list-a'))).to.include({ status: 404 })
    })

    it('refuses a foreign customerId, an unknown customer and a taken id of whomever', async () => {
      await node.projects.create(acme, { projectId: 'taken', name: 'x' })
      const foreign = node.projects.create(acme, { projectId: 'p1', name: 'x', customerId: 'other' })
      expect(await refusal(foreign)).to.include({ status: 403 })
      const ghost = node.projects.create(principal('ghost'), { projectId: 'p2', name: 'x' })
      expect(await refusal(ghost)).to.include({ status: 400, error: 'Customer not found' })
      const twice = node.projects.create(other, { projectId: 'taken', name: 'x' })
      expect(await refusal(twice)).to.include({ status: 409 })
    })

    it('keeps the id of a deleted project for its customer', async () => {
      const create = (who: Principal) => node.projects.create(who, { projectId: 'kept', name: 'x' })
      await create(acme)
      const existing = await refusal(create(other))
      await node.projects.remove(acme, 'kept')
      expect(await refusal(create(other))).to.deep.equal(existing)
      expect(existing).to.deep.equal({ status: 409, error: 'Project already exists' })
      expect(await create(acme)).to.include({ customerId: 'acme' })
    })

    it('gives a new id to one of two customers that ask at once, for ever', async () => {
      for (let round = 0; round < 10; round++) {
        const create = (who: Principal) => node.projects.create(who, { projectId: `new-${round}`, name: 'x' })
        const outcomes = await Promise.allSettled([acme, other, acme, other].map(create))
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
        const winner =
          outcomes[0]!.status === 'fulfilled' || outcomes[2]!.status === 'fulfilled' ? acme : other
        await node.projects.remove(winner, `new-${round}`)
        expect((await refusal(create(winner === acme ? other : acme))).status).to.equal(409)
      }
    })

    it('hides the projects of others', async () => {
      await node.projects.create(acme, { projectId: 'mine', name: 'x' })
      expect(await refusal(node.projects.read(other, 'mine'))).to.include({ status: 404 })
      expect(await refusal(node.projects.update(other, 'mine', { name: 'y' }))).to.include({ status: 404 })
      expect(await refusal(node.projects.remove(other, 'mine'))).to.include({ status: 404 })
      expect((await node.projects.read(acme, 'mine')).name).to.equal('x')
      expect((await node.projects.list(other)).map(({ projectId }) => projectId)).not.to.include('mine')
    })

    it('shows a project-scoped key its own projects only', async () => {
      for (const projectId of ['in', 'out']) await node.projects.create(acme, { projectId, name: 'x' })
      const scoped = principal('acme', { projectIds: ['in'] })
      expect((await node.projects.list(scoped)).map(({ projectId }) => projectId)).to.deep.equal(['in'])
      expect(await node.projects.read(scoped, 'in')).to.include({ projectId: 'in' })
      expect(await refusal(node.projects.read(scoped, 'out'))).to.include({ status: 404 })
      expect(await refusal(node.projects.update(scoped, 'out', { name: 'y' }))).to.include({ status: 404 })
      expect(await refusal(node.projects.remove(scoped, 'out'))).to.include({ status: 404 })
      expect(await refusal(node.projects.create(scoped, { projectId: 'new', name: 'x' }))).to.include({
        status: 403,
      })
    })

    it('stays while it has buffers, and goes when they are deleted', async () => {
      await node.projects.create(acme, { projectId: 'full', name: 'x' })
      await node.buffers.create(acme, bufferBody('in-full', 'full'))
      expect(await refusal(node.projects.remove(acme, 'full'))).to.include({ status: 400 })
      await node.buffers.remove(acme, 'in-full')
      await node.projects.remove(acme, 'full')
      expect(await refusal(node.projects.read(acme, 'full'))).to.include({ status: 404 })
    })

    it('never leaves a buffer without its project, however deletion and creation race', async () => {
      for (let round = 0; round < 20; round++) {
        const projectId = `race-${round}`
        await node.projects.create(acme, { projectId, name: 'x' })
        await Promise.allSettled([
          node.buffers.create(acme, bufferBody(`race-buffer-${round}`, projectId)),
          node.projects.remove(acme, projectId),
        ])
      }
      const orphans = await node.db`
        SELECT buffer_id FROM buffers b WHERE deleted_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.project_id = b.project_id)`
      expect([...orphans]).to.deep.equal([])
    })
  })
})

const refusalOf = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('it was not refused'),
    (reason) => reason,
  )
