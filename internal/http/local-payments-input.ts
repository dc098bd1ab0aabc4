/**
 * What a person sends to the local payment provider: JSON, or a form of its own pages. `curl -d` calls JSON a form, so what
 * begins as an object is JSON whatever it is called.
 */

import { Ajv, type ValidateFunction } from 'ajv'
import { readJson } from '../domain/json.ts'
import { accept, type Parsed, refuse } from '../domain/parsed.ts'
import { describeFaults } from '../domain/schema-fault.ts'
import {
  type ChangeOutcome,
  type CheckoutOutcome,
  changeOutcomes,
  type DisputeOutcome,
  disputeOutcomes,
  outcomes,
  type SubscriptionAction,
  subscriptionActions,
} from '../payments/local/ports.ts'

/** Largest body, bytes. */
export const BODY_BYTES = 16 * 1024

/** More than any price of a catalogue. */
const MAX_CENTS = 1_000_000_000
const MAX_DAYS = 400

export interface Input {
  readonly body: Parsed<unknown>
  /** A form of a page: it is answered with a page. */
  readonly isForm: boolean
}

/** `type`: the `Content-Type` header. An empty body is an empty object. */
export function readInput(bytes: Uint8Array, type: string | undefined): Input {
  const text = Buffer.from(bytes).toString('utf8').trim()
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(type ?? '') && !/^[{[]/.test(text)
  if (isForm) return { body: readForm(text), isForm }
  if (text === '') return { body: accept({}), isForm }
  const read = readJson(bytes)
  return { body: read.ok ? accept(read.value) : refuse('Request body is not valid JSON'), isForm }
}

/** Fields that hold whole numbers. */
const NUMBERS: readonly string[] = ['amountInCents', 'days']

/** A field that is empty is not there. */
function readForm(text: string): Parsed<unknown> {
  const fields = new Map<string, string | number>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (fields.has(name)) return refuse(`${name} stands there twice`)
    const isNumber = NUMBERS.includes(name) && /^\d{1,15}$/.test(value)
    if (value !== '') fields.set(name, isNumber ? Number(value) : value)
  }
  return accept(Object.fromEntries(fields))
}

export interface ChoiceInput {
  outcome: CheckoutOutcome
  amountInCents?: number
}

export interface ActionInput {
  action: SubscriptionAction
  planId?: string
  outcome?: ChangeOutcome
}

const ajv = new Ajv({ strict: true, ownProperties: true, verbose: true, allErrors: true })

const choice = ajv.compile<ChoiceInput>(
  closed(
    {
      outcome: { type: 'string', enum: outcomes },
      amountInCents: { type: 'integer', minimum: 0, maximum: MAX_CENTS },
    },
    ['outcome'],
  ),
)
const advance = ajv.compile<{ days: number }>(
  closed({ days: { type: 'integer', minimum: 1, maximum: MAX_DAYS } }, ['days']),
)
const action = ajv.compile<ActionInput>(
  closed(
    {
      action: { type: 'string', enum: subscriptionActions },
      planId: { type: 'string', minLength: 1, maxLength: 128 },
      outcome: { type: 'string', enum: changeOutcomes },
    },
    ['action'],
  ),
)
const refund = ajv.compile<{ amountInCents?: number }>(
  closed({ amountInCents: { type: 'integer', minimum: 1, maximum: MAX_CENTS } }, []),
)
const dispute = ajv.compile<{ outcome: DisputeOutcome }>(
  closed({ outcome: { type: 'string', enum: disputeOutcomes } }, ['outcome']),
)
const nothing = ajv.compile<Record<string, never>>(closed({}, []))

export const parseChoice = (input: Input) => parse(choice, input)
export const parseAdvance = (input: Input) => parse(advance, input)
export const parseRefund = (input: Input) => parse(refund, input)
export const parseDispute = (input: Input) => parse(dispute, input)
export const parseNothing = (input: Input) => parse(nothing, input)

export function parseAction(input: Input): Parsed<ActionInput> {
  const parsed = parse(action, input)
  if (!parsed.ok) return parsed
  const { action: named, planId, outcome } = parsed.value
  if (named === 'change-plan') return planId === undefined ? refuse('planId is required') : parsed
  if (planId !== undefined) return refuse('planId is only for the action change-plan')
  return outcome === undefined ? parsed : refuse('outcome is only for the action change-plan')
}

function parse<T>(validate: ValidateFunction<T>, { body }: Input): Parsed<T> {
  if (!body.ok) return body
  const { value } = body
  return validate(value) ? accept(value) : refuse(describeFaults(validate.errors))
}

function closed(properties: Record<string, unknown>, required: string[]) {
  return { type: 'object', properties, required, additionalProperties: false }
}
