/** Sends webhooks and records them: what is sent, and what was answered. */
import { Agent, request } from 'undici'

import { creditsFor } from '../../internal/domain/credits.ts'
import { takeDown, UndocumentedAnswerError } from '../support/answers.ts'
import { type History, hashOf, type SentItem } from './history.ts'

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
  readonly #agent = new Agent({ connections: 64, pipelining: 1, connect: { timeout: 2_000 } })
  #next = 1

  constructor(history: History, urlOf: (bufferId: string) => string) {
    this.#history = history
    this.#urlOf = urlOf
  }

  /** One request. Resolves with its record; undefined when the service was not reached at all. Never rejects. */
  async send(webhook: Webhook): Promise<SentItem | undefined> {
    const { bufferId, groupKey, messageId = null, bytes = 0 } = webhook
    const n = this.#next++
    const payload = {
      group: groupKey,
      n,
      ...(messageId !== null && { messageId }),
      ...(bytes > 0 && { fill: 'x'.repeat(bytes) }),
    }
    const text = JSON.stringify(payload)
    const item: SentItem = {
      n,
      bufferId,
      groupKey,
      messageId,
      payloadHash: hashOf(text),
      credits: creditsFor(payload),
      sentAt: Date.now(),
      answer: null,
    }
    try {
      item.answer = await this.#post(bufferId, text)
    } catch (error) {
      if (error instanceof UndocumentedAnswerError) throw error
      if (wasRefused(error)) return undefined
    }
    this.#history.sent.push(item)
    return item
  }

  async #post(bufferId: string, body: string): Promise<SentItem['answer']> {
    const answer = await request(this.#urlOf(bufferId), {
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
    takeDown({ method: 'POST', url: this.#urlOf(bufferId), status: answer.statusCode, contentType, text })
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
