import { createHash, randomUUID } from 'node:crypto'
import type { Role } from '../../../internal/domain/model.ts'
import { roles } from '../../../internal/domain/roles.ts'
import type { Database } from '../../../internal/postgres/connection.ts'
import { insertInvoice, insertPack, insertPlan, insertSubscription } from '../../support/billing-rows.ts'
import { RecordingProvider } from '../../support/recording-provider.ts'
import { type Answer, bufferBody, call } from '../caller.ts'
import { startService, type TestService, type TestServiceOptions } from '../service.ts'

/**
 * Who asks, seen from what is asked for, which always belongs to the customer `acme`: a key for all its
 * projects, a key for this project, a key for another project, a key of another customer.
 */
export const reaches = ['own', 'inside', 'outside', 'foreign'] as const
export type Reach = (typeof reaches)[number]

/** Project of what is asked for; a scoped key is for `lab`. */
export function projectOf(reach: Reach): string {
  return reach === 'outside' ? 'shop' : 'lab'
}

/** A new text that tells, wherever it turns up, that it came from this project. */
function secretOf(projectId: string): string {
  return `${MARK}${projectId}-${randomUUID()}`
}

/** What the texts of everything that is asked for begin with; the project follows. */
export const MARK = 'hush-'

/** Identifiers that a request names: path parameters by their names, and what else its rule wants. */
export type Ids = Readonly<Record<string, string>>

interface Caller {
  customerId: string
  key: string
}

const TABLES = ['customers', 'projects', 'buffers', 'api_keys', 'dlq_items', 'subscriptions', 'invoices']

/** `acme` with the projects `lab` and `shop`, the customer `rival`, and keys of every role and reach. */
export class World {
  readonly #service: TestService
  readonly #callers: ReadonlyMap<string, Caller>

  private constructor(service: TestService, callers: ReadonlyMap<string, Caller>) {
    this.#service = service
    this.#callers = callers
  }

  static async open(options: TestServiceOptions = {}): Promise<World> {
    const service = await startService({ provider: new RecordingProvider(), ...options })
    const callers = new Map<string, Caller>()
    const world = new World(service, callers)
    for (const customerId of ['acme', 'rival']) {
      await service.ownerKey(customerId)
      for (const role of roles) {
        const name = customerId === 'acme' ? `own ${role}` : `foreign ${role}`
        callers.set(name, { customerId, key: await world.#insertKey(customerId, role, null) })
      }
    }
    for (const projectId of ['lab', 'shop']) await world.project(projectId)
    for (const role of roles) {
      callers.set(`scoped ${role}`, {
        customerId: 'acme',
        key: await world.#insertKey('acme', role, ['lab']),
      })
    }
    await insertPlan(service.db, { planId: 'basic', offerId: 'offer-basic' })
    await insertPack(service.db, { packId: 'fifty', offerId: 'offer-fifty' })
    return world
  }

  close(): Promise<void> {
    return this.#service.stop()
  }

  get db(): Database {
    return this.#service.db
  }

  /** Errors that were answered with 500. */
  get failed(): unknown[] {
    return this.#service.told.failed
  }

  caller(reach: Reach, role: Role): Caller {
    const scoped = reach === 'inside' || reach === 'outside'
    return this.#callers.get(`${scoped ? 'scoped' : reach} ${role}`)!
  }

  ask(caller: Caller, method: string, path: string, body?: unknown): Promise<Answer> {
    return call(this.#service.url + path, {
      method,
      headers: { 'x-api-key': caller.key, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  /** Everything of `acme`, but for the last uses of its keys. */
  async everything(): Promise<string> {
    const { db } = this.#service
    const parts = TABLES.map(
      (
        table,
      ) => db`SELECT coalesce(jsonb_agg(to_jsonb(t) - 'last_used_at' ORDER BY to_jsonb(t)::text), '[]') AS all
        FROM ${db(table)} AS t WHERE customer_id = 'acme'`,
    )
    return JSON.stringify(await Promise.all(parts))
  }

  /** A project of `acme` that holds nothing. */
  async project(projectId: string): Promise<Ids> {
    const { db } = this.#service
    await this.noProject(projectId)
    await db`INSERT INTO projects (project_id, customer_id, name) VALUES (${projectId}, 'acme', ${secretOf(projectId)})`
    return { projectId }
  }

  /** An id that no project has. */
  async noProject(projectId: string): Promise<Ids> {
    const { db } = this.#service
    await db`DELETE FROM buffers WHERE project_id = ${projectId}`
    await db`DELETE FROM projects WHERE project_id = ${projectId}`
    return { projectId }
  }

  async buffer(projectId: string): Promise<Ids> {
    const bufferId = secretOf(projectId)
    const { status, text } = await this.ask(
      this.caller('own', 'owner'),
      'POST',
      '/v1/admin/buffers',
      bufferBody(bufferId, projectId, { name: secretOf(projectId) }),
    )
    if (status !== 201) throw new Error(text)
    return { projectId, bufferId }
  }

  async deadLetter(projectId: string): Promise<Ids> {
    const ids = await this.buffer(projectId)
    const { db } = this.#service
    const dlqId = secretOf(projectId)
    const svc = {
      customerId: 'acme',
      projectId,
      bufferId: ids.bufferId,
      groupKey: 'hush-key',
      groupHash: 'h',
      segment: 0,
    }
    const window = { firstItemAt: 1, lastActivityAt: 2, itemsCount: 1 }
    const body = Buffer.from(
      JSON.stringify({ svc, window, items: [{ messageId: 'm', receivedAt: 1, payload: 1 }] }),
    )
    await db`INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version,
        group_key, reason, last_error, last_status_code, attempt, item_count, message_ids, first_payload_preview,
        segment, first_item_at, last_activity_at, payload_bytes, body, body_sha256, created_at)
      SELECT ${dlqId}, 'acme', ${projectId}, buffer_id, uid, ${dlqId}, 1, '"hush-key"', 'max_retries_exceeded', 'HTTP 500',
        500, 2, 1, '["m"]', '"1"', 0, 1, 2, 1, ${body}, ${createHash('sha256').update(body).digest()}, 3
      FROM buffers WHERE buffer_id = ${ids.bufferId!}`
    return { ...ids, dlqId }
  }

  /** A key for one project, nobody's here. */
  async apiKey(projectId: string): Promise<Ids> {
    const keyId = secretOf(projectId)
    await this.#insertKey('acme', 'viewer', [projectId], keyId)
    return { projectId, keyId }
  }

  /** No more keys than those of the callers, so that another one can be made. */
  async fewKeys(projectId: string): Promise<Ids> {
    const { db } = this.#service
    await db`UPDATE api_keys SET revoked_at = now() WHERE key_id NOT IN (SELECT key_id FROM api_keys WHERE name = 'caller')`
    return { projectId }
  }

  /** Something to subscribe to, for a customer without a subscription. */
  async plan(): Promise<Ids> {
    await this.subscription()
    const { db } = this.#service
    await db`DELETE FROM invoices WHERE customer_id = 'acme'`
    await db`DELETE FROM subscriptions WHERE customer_id = 'acme'`
    return { planId: 'basic' }
  }

  async subscription(): Promise<Ids> {
    const { db } = this.#service
    await db`DELETE FROM invoices WHERE customer_id = 'acme'`
    await db`DELETE FROM subscriptions WHERE customer_id = 'acme'`
    const { subscriptionId } = await insertSubscription(db, { customerId: 'acme', planId: 'basic' })
    const { invoiceId } = await insertInvoice(db, {
      customerId: 'acme',
      subscriptionId,
      invoiceId: secretOf('acme'),
    })
    return { subscriptionId, invoiceId, packId: 'fifty', planId: 'basic' }
  }

  async #insertKey(
    customerId: string,
    role: Role,
    projectIds: string[] | null,
    keyId?: string,
  ): Promise<string> {
    const { db } = this.#service
    const secret = `svk_${randomUUID().replaceAll('-', '')}${'0'.repeat(16)}`
    await db`INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role, project_ids)
      VALUES (${keyId ?? randomUUID()}, ${customerId}, ${keyId === undefined ? 'caller' : 'hush'},
        ${createHash('sha256').update(secret).digest()}, ${secret.slice(0, 8)}, ${role}, ${projectIds}::text[])`
    return secret
  }
}
