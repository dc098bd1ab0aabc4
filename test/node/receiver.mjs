// The destination in a pod: takes every batch, and tells on GET what it has taken.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

const batches = []

createServer(async (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify(batches))
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  batches.push({
    key: request.headers['x-idempotency-key'],
    bodyHash: createHash('sha256').update(body).digest('hex'),
    messageIds: JSON.parse(body).items.map(({ messageId }) => messageId),
  })
  response.end()
}).listen(8080)

process.once('SIGTERM', () => process.exit())
