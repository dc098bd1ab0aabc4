/** What `npm start` tells whoever started it: where it listens, and at the first start three lines to paste. */

export interface Welcome {
  url: string
  /** Where webhooks go, when that is another address. */
  ingestUrl?: string | undefined
  /** The owner key as a shell word: the key itself, or a command that reads it. */
  key: string
  /** Where the key was left, when it is not shown. */
  keyFile: string | undefined
}

/** Address lines, for every start. */
export function addressLines(url: string, opsUrl: string): string {
  return `\n  Penstock listens on ${url}\n  ops (live, ready, metrics) on ${opsUrl}\n\n`
}

/** Create a project and a buffer; send a webhook; see the batch that was delivered. */
export function welcomeLines({ url, ingestUrl = url, key, keyFile }: Welcome): string {
  const auth = `-H "X-API-Key: ${key}" -H 'Content-Type: application/json'`
  const project = JSON.stringify({ projectId: 'demo', name: 'Demo' })
  const buffer = JSON.stringify({
    bufferId: 'orders',
    projectId: 'demo',
    name: 'Orders',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    batch: { idleTimeoutMs: 1000 },
    delivery: { url: `${url}/local/receiver/orders` },
  })
  const create = `curl -s ${auth} ${url}/v1/admin/projects -d '${project}' && curl -s ${auth} ${url}/v1/admin/buffers -d '${buffer}'`
  const ingest = `curl -s ${ingestUrl}/v1/ingest/demo/orders -d '{"customer":"ada","order":1}'`
  const see = `sleep 2; curl -s ${url}/local/receiver/orders`
  const where = keyFile ? `is in ${keyFile}` : `(shown only now): ${key}`
  return [
    `  Owner key of customer "local" ${where}`,
    '',
    '  Try it:',
    '',
    create,
    '',
    ingest,
    '',
    see,
    '',
    '',
  ].join('\n')
}
