/** What a user of the packages writes: a receiver and a sender in one program. It prints what came to the receiver. */
import { createServer } from 'node:http'
import { createPenstock, must, RefusedError } from '@penstock-local/client'
import { createHandler } from '@penstock-local/receiver'

const { P: url, KEY: apiKey, NAME: name } = process.env
const secret = 's3cret'

const arrived = Promise.withResolvers?.() ?? withResolvers()
const handler = createHandler({ secrets: [secret], onBatch: (batch) => arrived.resolve(batch) })
const server = createServer(handler.node)
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

const penstock = createPenstock({ url, apiKey })
const place = { projectId: name, bufferId: name }
must('project', await penstock.api.POST('/v1/admin/projects', { body: { projectId: name, name } }))
const buffer = {
  ...place,
  name,
  groupKey: { mode: 'jsonpath', path: '$.customer' },
  batch: { maxItems: 2 },
  delivery: { url: `http://127.0.0.1:${server.address().port}/`, signing: { secret } },
}
must('buffer', await penstock.api.POST('/v1/admin/buffers', { body: buffer }))
const refused = await penstock.ingest(place, { nobody: true }).catch((error) => error)
if (!(refused instanceof RefusedError)) throw new Error('a webhook without a group key was taken')
for (const order of [1, 2]) await penstock.ingest(place, { customer: 'ada', order })

const { svc, items } = await arrived.promise
const orders = items.map((item) => item.payload.order)
const told = { version: process.version, group: svc.groupKey, orders }
process.stdout.write(`${JSON.stringify(told)}\n`)
server.close()
server.closeAllConnections()

/** Node 20 has none. */
function withResolvers() {
  let resolve
  const promise = new Promise((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
