/** Sends webhooks and records them: what is sent, and what was answered. */
import { Agent, request } from 'undici'

import { creditsFor } from '../../internal/domain/credits.ts'
import { takeDown, UndocumentedAnswerError } from '../support/answers.ts'
import { type History, hashOf, type SentItem } from './history.ts'
import { webhookText } from './webhook-text.ts'

/** Longer than any answer takes: an ingress gives up after 10 s. */
const TIMEOUT_MS = 25_000

export interface Webhook {
  readonly bufferId: string
  readonly groupKey: string
  readonly messageId?: string | null
  /** Bytes of filling. */
  readonly bytes?: number
}

export class Sender {
  readonly #history: History
  readonly #urlOf: (bufferId: string) => string
  readonly #nodeAt: (url: string) => string | undefined
  readonly #agent = new Agent({ connections: 64, pipelining: 1, connect: { timeout: 2_000 } })
  #next = 1

  /** `nodeAt`: the name of the node that listens there, when there are several. */
  constructor(
    history: History,
    urlOf: (bufferId: string) => string,
    nodeAt: (url: string) => string | undefined = () => undefined,
  ) {
    this.#history = history
    this.#urlOf = urlOf
    this.#nodeAt = nodeAt
  }

  /** One request. Resolves with its record; undefined when the service was not reached at all. Never rejects. */
  async send(webhook: Webhook): Promise<SentItem | undefined> {
    const { bufferId, groupKey, messageId = null, bytes = 0 } = webhook
    const n = this.#next++
    const text = webhookText({ n, groupKey, messageId, bytes })
    const url = this.#urlOf(bufferId)
    const via = this.#nodeAt(url)
    const item: SentItem = {
      n,
      bufferId,
      groupKey,
      messageId,
      payloadHash: hashOf(text),
      payloadBytes: Buffer.byteLength(text),
      credits: creditsFor(JSON.parse(text)),
      sentAt: Date.now(),
      ...(via !== undefined && { via }),
      answer: null,
    }
    try {
      item.answer = await this.#post(url, text)
    } catch (error) {
      if (error instanceof UndocumentedAnswerError) throw error
      if (wasRefused(error)) return undefined
    }
    this.#history.sent.push(item)
    return item
  }

  async #post(url: string, body: string): Promise<SentItem['answer']> {
    const answer = await request(url, {
      method: 'POST',
      body,
      dispatcher: this.#agent,
      headers: { 'content-type': 'application/json' },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    })
    const text = await answer.body.text()
    const at = Date.now()
    const contentType = String(answer.headers['content-type'])
    takeDown({ method: 'POST', url, status: answer.statusCode, contentType, text })
    if (answer.statusCode !== 202) return { at, status: answer.statusCode }
    const { itemId, duplicate = false } = JSON.parse(text) as { itemId: string; duplicate?: boolean }
    return { at, status: 202, itemId, duplicate }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** Nobody listened: certainly not received. */
function wasRefused(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ECONNREFUSED' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
