/** Accounts as years of use leave them, written into the service's own Postgres while it runs. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { ownSecretKey } from '../cmd/wiring/secrets.ts'
import { parseBufferCreate } from '../internal/domain/buffer.ts'
import { mapSecrets } from '../internal/domain/buffer-secrets.ts'
import { required } from '../internal/domain/errors.ts'
import { addressIn } from '../internal/embedded/postgres-server.ts'
import { connect, type Database } from '../internal/postgres/connection.ts'
import { createSecretBox, type SecretBox } from '../internal/postgres/secrets.ts'
import { type Account, bufferIdOf, deadLetterPrefixOf, projectIdOf } from './load/account.ts'

/** Days of analytics behind an account; those since `OPEN_DAYS` ago have a row a buffer. */
const DAYS = 90
const OPEN_DAYS = 3
/** Buffers of an account with traffic in the open days. */
const ACTIVE_BUFFERS = 1_000
const TRANSACTIONS = 10_000
const BODY_BYTES = 1_500
const ROWS_A_STATEMENT = 1_000

/** Fills the accounts, whose customers exist already and have nothing, and leaves Postgres no housekeeping to do. */
export async function fillAccounts(dataDir: string, accounts: readonly Account[]): Promise<void> {
  const url = addressIn(join(dataDir, 'postgres'))
  if (url === undefined) throw new Error(`${dataDir} has no Postgres`)
  const db = connect(url, { max: 1, statementTimeoutMs: 0 })
  try {
    const box = createSecretBox(ownSecretKey(dataDir))
    for (const account of accounts) {
      await insertBuffers(db, box, account)
      await insertDeadLetters(db, account)
      await insertDays(db, account)
      await insertTransactions(db, account)
    }
    await db`VACUUM ANALYZE`
    await db`CHECKPOINT`
  } finally {
    await db.end()
  }
}

async function insertBuffers(db: Database, box: SecretBox, account: Account): Promise<void> {
  const { customerId, projects, buffers } = account
  const projectIds = Array.from({ length: projects }, (_, n) => projectIdOf(account, n))
  await db`INSERT INTO projects (project_id, customer_id, name)
    SELECT id, ${customerId}, 'Bench' FROM unnest(${projectIds}::text[]) AS id`
  for (let from = 0; from < buffers; from += ROWS_A_STATEMENT) {
    const length = Math.min(ROWS_A_STATEMENT, buffers - from)
    const rows = Array.from({ length }, (_, i) => bufferRow(box, account, from + i))
    await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
      SELECT uid, id, ${customerId}, project, config
      FROM jsonb_to_recordset(${db.json(rows as never)}) AS r (uid uuid, id text, project text, config jsonb)`
  }
}

/** With a secret of each kind: reading a buffer opens them. */
function bufferRow(box: SecretBox, account: Account, n: number): object {
  const uid = randomUUID()
  const wanted = {
    bufferId: bufferIdOf(account, n),
    projectId: projectIdOf(account, n % account.projects),
    name: `Bench ${n}`,
    groupKey: { mode: 'jsonpath', path: '$.key' },
    delivery: {
      url: 'https://receiver.example.com/webhooks/orders',
      headers: { Authorization: 'Bearer 0123456789abcdef0123456789abcdef' },
      signing: { type: 'hmac-sha256', secret: '0123456789abcdef0123456789abcdef', header: 'x-svc-signature' },
    },
    sourceVerification: { enabled: true, signingSecret: 'fedcba9876543210fedcba9876543210' },
  }
  const { bufferId, projectId, config } = required(parseBufferCreate(wanted))
  const { enabled: _, ...stored } = mapSecrets(config, (value, path) => box.seal(value, [uid, ...path]))
  return { uid, id: bufferId, project: projectId, config: stored }
}

async function insertDeadLetters(db: Database, account: Account): Promise<void> {
  const prefix = deadLetterPrefixOf(account)
  const bufferIds = Array.from({ length: account.buffers }, (_, n) => bufferIdOf(account, n))
  await db`
    INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version, group_key,
      message_ids, first_payload_preview, reason, last_error, last_status_code, attempt, item_count, segment,
      first_item_at, last_activity_at, payload_bytes, body, body_sha256, created_at, recorded)
    SELECT ${prefix} || n, b.customer_id, b.project_id, b.buffer_id, b.uid, ${prefix} || n, 1, to_json('key-' || n),
      (SELECT json_agg('message-' || n || '-' || m) FROM generate_series(1, 8) m),
      to_json(repeat('{"order":12345}', 33)), 'max_retries_exceeded', 'HTTP 500', 500, 2, 8, 0,
      1700000000000, 1700000000100, ${BODY_BYTES}, convert_to(rpad('{', ${BODY_BYTES}, md5(n::text)), 'UTF8'),
      sha256('{}'), 1700000000000 + n, true
    FROM unnest(${bufferIds}::text[]) WITH ORDINALITY AS o (id, place)
    JOIN buffers b ON b.buffer_id = o.id AND b.deleted_at IS NULL,
      generate_series(place::int - 1, ${account.deadLetters - 1}::int, ${account.buffers}::int) AS n`
}

async function insertDays(db: Database, account: Account): Promise<void> {
  const { customerId, projects, buffers } = account
  const closed = (projectId: string, bufferId: string) => db`
    INSERT INTO closed_days (customer_id, project_id, buffer_id, day, ingest_count, delivered, dead, retries,
      items_delivered, items_dead, time_to_flush, delivery_duration)
    SELECT ${customerId}, ${projectId}, ${bufferId}, (now() AT TIME ZONE 'UTC')::date - ago, 1000, 100, 1, 2, 990,
      10, ${counts(12)}, ${counts(11)}
    FROM generate_series(${OPEN_DAYS}::int, ${DAYS}::int) AS ago`
  await closed('', '')
  for (let n = 0; n < projects; n++) await closed(projectIdOf(account, n), '')
  const active = Array.from({ length: Math.min(buffers, ACTIVE_BUFFERS) }, (_, n) => bufferIdOf(account, n))
  const days = db`buffers, generate_series(0, ${OPEN_DAYS - 1}::int) AS ago
    WHERE buffer_id = ANY (${active}::text[])`
  await db`INSERT INTO ingest_days (buffer_uid, day, customer_id, ingest_count)
    SELECT uid, (now() AT TIME ZONE 'UTC')::date - ago, customer_id, 1000 FROM ${days}`
  await db`INSERT INTO delivery_days (buffer_uid, customer_id, day, delivered, dead, retries, items_delivered,
      items_dead, time_to_flush, delivery_duration)
    SELECT uid, customer_id, (now() AT TIME ZONE 'UTC')::date - ago, 100, 1, 2, 990, 10, ${counts(12)}, ${counts(11)}
    FROM ${days}`
}

function counts(buckets: number): string {
  return `{${Array.from({ length: buckets }, () => 9).join(',')}}`
}

async function insertTransactions(db: Database, { customerId }: Account): Promise<void> {
  await db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, created_at)
    SELECT ${customerId}, -1, 'consumption', 'Ingest to a buffer', 0, now() - n * interval '1 minute'
    FROM generate_series(1, ${TRANSACTIONS}::int) AS n`
}
