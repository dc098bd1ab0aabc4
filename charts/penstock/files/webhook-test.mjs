// What `helm test` runs: a webhook goes in at the ingress, and the batch that it became is read at the management API.
// Its destination is a name that nobody can have, so the batch ends as a dead letter: that needs no receiver, and every
// part had its turn, from the inbox to Postgres.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

/** In all, ms. */
const DEADLINE = performance.now() + 120_000
const { INGRESS_URL, ADMIN_URL, OWNER_KEYS } = process.env
const [, customerId, key] = /^([^=,]+)=([^,]+)/.exec(OWNER_KEYS.trim())
const id = `helm-test-${randomUUID()}`
const webhook = { customer: 'ada', order: id }

await eventually('the management API', () =>
  call('POST', '/v1/admin/projects', { projectId: id, name: 'helm test' }),
)
try {
  await call('POST', '/v1/admin/buffers', {
    ...{ bufferId: id, projectId: id, name: 'helm test' },
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    batch: { idleTimeoutMs: 100 },
    throughput: { maxAttempts: 1 },
    delivery: { url: 'https://helm-test.invalid/' },
  })
  await eventually('the ingress', () => send(INGRESS_URL, 'POST', `/v1/ingest/${id}/${id}`, webhook))
  const letter = await eventually('the dead letter', async () => {
    const [found] = await call('GET', `/v1/dlq?customerId=${customerId}&bufferId=${id}`)
    return found ?? Promise.reject(new Error('it is not there'))
  })
  const batch = await call('GET', `/v1/dlq/${letter.dlqId}/batch?customerId=${customerId}`)
  const payload = JSON.stringify(batch.items[0].payload)
  if (payload !== JSON.stringify(webhook)) throw new Error(`the batch holds ${payload}`)
  await call('DELETE', `/v1/dlq/${letter.dlqId}?customerId=${customerId}`)
  process.stdout.write('A webhook went in, and its batch was read.\n')
} finally {
  await call('DELETE', `/v1/admin/buffers/${id}`).catch(() => {})
  await call('DELETE', `/v1/admin/projects/${id}`)
}

function call(method, path, body) {
  return send(ADMIN_URL, method, path, body, { 'X-API-Key': key })
}

async function send(url, method, path, body, headers = {}) {
  const answer = await fetch(url + path, {
    ...{
      method,
      headers: { ...headers, 'Content-Type': 'application/json' },
      signal: AbortSignal.timeout(10_000),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (answer.ok) return text && JSON.parse(text)
  if (answer.status === 429)
    throw Object.assign(new Error(`customer ${customerId} has no credits: see config.initialCredits`), {
      refused: true,
    })
  const refused = answer.status < 500
  throw Object.assign(new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`), { refused })
}

/** A refusal is final; what is not there yet may come. */
async function eventually(what, attempt) {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error.refused || performance.now() > DEADLINE) throw new Error(what, { cause: error })
      await delay(500)
    }
  }
}
