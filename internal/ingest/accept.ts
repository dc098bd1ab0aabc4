import { randomUUID } from 'node:crypto'
import { creditsForBytes, isPadded, serializedBytes } from '../domain/credits.ts'
import { insufficientCredits } from '../domain/errors.ts'
import { extractGroupKey, extractMessageId, withoutCredentials } from '../domain/extract.ts'
import { readJson } from '../domain/json.ts'
import type { ApiKeyRecord, BufferRecord, GroupKeyConfig } from '../domain/model.ts'
import { verifySignature } from '../domain/signature.ts'
import { judgeSignature, type SignatureVerdict, type SignedWebhook } from '../domain/signatures/verify.ts'
import type { Clock } from '../runtime/clock.ts'
import { accepted, answers, duplicate, type IngestAnswer, refusal } from './answer.ts'
import {
  type BufferDirectory,
  type Charge,
  type Inbox,
  InboxUnavailableError,
  type IngestTelemetry,
  type KeyDirectory,
  type Ledger,
  LedgerUnavailableError,
  type NewItem,
  type Receipt,
  type Shares,
  type Stored,
} from './ports.ts'
import type { IngestHead, IngestRequest } from './request.ts'

/**
 * Acceptance of one webhook (docs/architecture/protocol.md, "Ingest checks").
 *
 * Invariants: 202 is answered only for an item that the broker has stored, or whose duplicate is buffered; every
 * charge is settled or refunded exactly once; a refused request has neither charged nor stored anything.
 */

export interface IngestPorts {
  buffers: BufferDirectory
  keys: KeyDirectory
  ledger: Ledger
  inbox: Inbox
  shares: Shares
  telemetry: IngestTelemetry
  clock: Clock
}

/** A request that passed every check but the payment. */
interface Paying {
  item: NewItem
  charge: Charge
}

export class Ingest {
  readonly #ports: IngestPorts

  constructor(ports: IngestPorts) {
    this.#ports = ports
  }

  /** The buffer, or what the head alone refuses: buffer, project, key, state. At once where memory tells. */
  judgeHead(head: IngestHead): BufferRecord | IngestAnswer | Promise<BufferRecord | IngestAnswer> {
    const judged = this.#judge(head)
    if (judged === undefined) return this.#judgeUncached(head).then((late) => this.#told(late, head))
    return this.#told(judged, head)
  }

  #told(judged: BufferRecord | IngestAnswer, head: IngestHead): BufferRecord | IngestAnswer {
    if (isAnswer(judged)) this.#ports.telemetry.answered(judged, head)
    return judged
  }

  /**
   * Answers every request; rejects only when an invariant is broken (the caller answers 500). `judged`: what `judgeHead`
   * said in this turn of the event loop. Without it the head is judged again: a body takes its time, in which a key may be
   * revoked.
   */
  async accept(request: IngestRequest, judged?: BufferRecord): Promise<IngestAnswer> {
    const record = judged ?? this.#judge(request) ?? (await this.#judgeUncached(request))
    const paying = isAnswer(record) ? record : this.#judgeItem(record, request)
    const answer = isAnswer(paying) ? paying : await this.#pay(paying)
    this.#ports.telemetry.answered(answer, request)
    return answer
  }

  /** Without waiting: what is cached decides. undefined: something is not. */
  #judge(head: IngestHead): BufferRecord | IngestAnswer | undefined {
    const record = this.#ports.buffers.peekById(head.bufferId)
    if (record === undefined) return undefined
    const secret = head.header('x-api-key')
    const key = secret === undefined ? null : this.#ports.keys.peek(secret)
    return key === undefined ? undefined : judgeSender(head, record, key)
  }

  async #judgeUncached(head: IngestHead): Promise<BufferRecord | IngestAnswer> {
    const record = this.#ports.buffers.peekById(head.bufferId) ?? (await this.#load(head.bufferId))
    if (isAnswer(record)) return record
    const secret = head.header('x-api-key')
    if (secret === undefined) return judgeSender(head, record, null)
    if (!record.buffer.requireApiKey && !isInProject(head, record)) return answers.bufferNotInProject
    const key = await this.#authenticate(secret)
    return isAnswer(key) ? key : judgeSender(head, record, key)
  }

  /** The checks of the body in their order, and the one of the shares. */
  #judgeItem(record: BufferRecord, request: IngestRequest): Paying | IngestAnswer {
    const paying = readItem(record, request, this.#ports.clock.now())
    if (paying === answers.secretUnreadable)
      this.#ports.telemetry.unavailable('secrets', record.unreadable?.why)
    if (isAnswer(paying)) return paying
    const over = this.#ports.shares.over(record, paying.item.groupKey)
    if (over === null) return paying
    this.#ports.telemetry.overShare(over)
    return over === 'buffer' ? answers.bufferOverShare : answers.customerOverShare
  }

  async #load(bufferId: string): Promise<BufferRecord | IngestAnswer> {
    try {
      const record = await this.#ports.buffers.loadById(bufferId)
      return record === undefined || record.deleted ? answers.bufferNotFound : record
    } catch (error) {
      this.#ports.telemetry.unavailable('buffers', error)
      return answers.databaseUnavailable
    }
  }

  async #authenticate(secret: string): Promise<ApiKeyRecord | IngestAnswer> {
    try {
      return (await this.#ports.keys.authenticate(secret)) ?? answers.keyInvalid
    } catch (error) {
      this.#ports.telemetry.unavailable('keys', error)
      return answers.databaseUnavailable
    }
  }

  #pay(paying: Paying): Promise<IngestAnswer> {
    const receipt = this.#ports.ledger.charge(paying.charge)
    return receipt instanceof Promise ? this.#payLater(paying, receipt) : this.#paid(paying, receipt)
  }

  async #payLater(paying: Paying, charged: Promise<Receipt>): Promise<IngestAnswer> {
    let receipt: Receipt
    try {
      receipt = await charged
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError)) throw error
      this.#ports.telemetry.unavailable('ledger', error)
      return answers.databaseUnavailable
    }
    return this.#paid(paying, receipt)
  }

  #paid(paying: Paying, receipt: Receipt): Promise<IngestAnswer> {
    return receipt.paid ? this.#store(paying) : this.#unpaid(paying, receipt.balance)
  }

  /** A duplicate costs nothing, so it is none of the balance's business. */
  async #unpaid({ item, charge }: Paying, balance: number): Promise<IngestAnswer> {
    if (item.explicit) {
      const original = await this.#ports.inbox.findOriginal(item.bufferUid, item.groupKey, item.messageId)
      if (typeof original === 'string') return duplicate(item.messageId, original)
    }
    return refusal(insufficientCredits(balance, charge.credits))
  }

  async #store({ item, charge }: Paying): Promise<IngestAnswer> {
    let stored: Stored
    try {
      stored = await this.#ports.inbox.append(item)
    } catch (error) {
      this.#ports.ledger.refund(charge)
      if (!(error instanceof InboxUnavailableError)) throw error
      this.#ports.telemetry.unavailable('inbox', error)
      return answers.storageUnavailable
    }
    if (stored.duplicateOf !== null) {
      this.#ports.ledger.refund(charge)
      return duplicate(item.messageId, stored.duplicateOf)
    }
    if (stored.late === undefined) this.#ports.ledger.settle(charge)
    else this.#settleLate(stored.late, charge)
    return accepted(item.messageId, item.itemId)
  }

  /** What stays unknown is refunded: a customer may gain a credit by our failure, never lose one. */
  #settleLate(late: NonNullable<Stored['late']>, charge: Charge): void {
    const settle = (outcome: Awaited<typeof late>): void => {
      if (outcome === 'new') this.#ports.ledger.settle(charge)
      else this.#ports.ledger.refund(charge)
      this.#ports.telemetry.lateVerdict(outcome)
    }
    late.then(settle, () => settle('unknown'))
  }
}

export function isAnswer(value: object): value is IngestAnswer {
  return 'status' in value
}

/** `key` null: the sender has none. Without a good one nobody learns more of a buffer with `requireApiKey` than that it is there. */
function judgeSender(
  head: IngestHead,
  record: BufferRecord,
  key: ApiKeyRecord | null,
): BufferRecord | IngestAnswer {
  const isGood = key !== null && reaches(key, record)
  if (record.buffer.requireApiKey && !isGood) return answers.keyMissing
  if (!isInProject(head, record)) return answers.bufferNotInProject
  return key === null || isGood ? judgeState(record) : answers.keyForeign
}

function isInProject({ projectId }: IngestHead, { buffer }: BufferRecord): boolean {
  return buffer.projectId === projectId
}

function reaches(key: ApiKeyRecord, { buffer }: BufferRecord): boolean {
  return key.customerId === buffer.customerId && covers(key.projectIds, buffer.projectId)
}

function covers(projectIds: readonly string[] | undefined, projectId: string): boolean {
  return projectIds === undefined || projectIds.includes(projectId)
}

function judgeState(record: BufferRecord): BufferRecord | IngestAnswer {
  if (record.suspended) return answers.accountSuspended
  return record.buffer.enabled ? record : answers.bufferDisabled
}

/** The checks from the signature to the message id, none of which waits, and the item that they leave. */
function readItem(record: BufferRecord, request: IngestRequest, now: number): Paying | IngestAnswer {
  const { uid, buffer } = record
  const refused = verifySource(record, request, now)
  if (refused !== null) return refused
  const json = readJson(request.body)
  if (!json.ok) return json.reason === 'syntax' ? answers.notJson : answers.tooDeep
  const body = { value: json.value, bytes: request.body }
  const { enabled = false, signatureHeader } = buffer.sourceVerification ?? {}
  const header = withoutCredentials(request.header, enabled ? signatureHeader : undefined)
  const groupKey = extractGroupKey(buffer.groupKey, body, header)
  if (!groupKey.ok) return refusal(groupKey.error, whereKeysAre(buffer.groupKey))
  const messageId = extractMessageId(buffer.messageId, body, header)
  if (!messageId.ok) return refusal(messageId.error)
  const serialized = serializedBytes(json.value)
  if (isPadded(request.body.length, serialized)) return answers.padded
  const credits = creditsForBytes(serialized)
  const itemId = randomUUID()
  return {
    charge: { customerId: buffer.customerId, bufferUid: uid, credits },
    item: {
      itemId,
      bufferUid: uid,
      groupKey: groupKey.value,
      messageId: messageId.value ?? itemId,
      explicit: messageId.value !== null,
      credits,
      receivedAt: now,
      payload: request.body,
    },
  }
}

/** Where a group key was looked for. */
function whereKeysAre({ mode, path, fallbackHeader }: GroupKeyConfig): Record<string, unknown> {
  return { path: mode === 'jsonpath' ? path : undefined, header: fallbackHeader }
}

/** Over the raw bytes, in constant time. The service's own scheme with one secret has the shortest way. */
function verifySource(
  { buffer: { sourceVerification }, unreadable }: BufferRecord,
  request: IngestRequest,
  now: number,
): IngestAnswer | null {
  if (!sourceVerification?.enabled) return null
  if (unreadable?.source) return answers.secretUnreadable
  const { scheme, signatureHeader, signingSecret, previousSecret } = sourceVerification
  if (signingSecret === undefined) throw new Error('source verification is enabled without a secret')
  if ((scheme !== undefined && scheme !== 'hex') || previousSecret !== undefined)
    return verdictAnswers[judgeSignature({ ...sourceVerification, signingSecret }, signed(request, now))]
  const presented = request.header(signatureHeader)
  if (presented === undefined || presented === '') return answers.signatureMissing
  return verifySignature(signingSecret, request.body, presented) ? null : answers.signatureInvalid
}

function signed({ header, body }: IngestRequest, receivedAt: number): SignedWebhook {
  return { header, body, receivedAt }
}

const verdictAnswers: Readonly<Record<SignatureVerdict, IngestAnswer | null>> = {
  good: null,
  missing: answers.signatureMissing,
  invalid: answers.signatureInvalid,
  stale: answers.signatureStale,
}
