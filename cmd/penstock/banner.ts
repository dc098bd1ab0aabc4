/**
 * What `npm start` tells whoever started it: where it listens, and while no key was used yet, three lines to paste. It is no
 * part of the log: a program that reads standard output gets JSON lines and nothing else.
 */
import { LOCAL_CUSTOMER, type LocalOwner } from '../wiring/owners.ts'

export interface Addresses {
  readonly url: string
  readonly opsUrl: string
}

export interface Welcome {
  readonly url: string
  /** Where webhooks go, when that is another address. */
  readonly ingestUrl?: string | undefined
  /** Where the owner key is. */
  readonly keyFile: string
}

/** On standard output for a person, on standard error beside a log. */
export function greet(text: string): void {
  const stream = process.stdout.isTTY ? process.stdout : process.stderr
  stream.write(text)
}

/** As a URL has it. Where a process listens on all addresses it is asked at this machine's own, which deliveries reach. */
export function hostToAsk(listening: string): string {
  if (listening === '0.0.0.0') return '127.0.0.1'
  if (listening === '::') return '[::1]'
  return listening.includes(':') ? `[${listening}]` : listening
}

/** Address lines, for every start. */
export function addressLines({ url, opsUrl }: Addresses): string {
  return [
    '',
    `  Penstock listens on ${url}`,
    `  its API in a browser: ${url}/docs`,
    `  ops (live, ready, metrics) on ${opsUrl}`,
    '',
    '',
  ].join('\n')
}

/** Empty once a key was used: then somebody knows the way. */
export function ownerLines(url: string, { keyFile, isNew }: LocalOwner): string {
  if (!isNew) return ''
  const another = `  No key was used yet. Another owner key: npm run account -- ${LOCAL_CUSTOMER}\n`
  return keyFile === undefined ? `${another}\n` : `${another}${welcomeLines({ url, keyFile })}`
}

/** Create a project and a buffer; send a webhook; see the batch that was delivered. */
export function welcomeLines({ url, ingestUrl = url, keyFile }: Welcome): string {
  const auth = `-H "X-API-Key: $(cat '${keyFile}')" -H 'Content-Type: application/json'`
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
  return [
    `  Owner key of customer "${LOCAL_CUSTOMER}" is in ${keyFile}`,
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
