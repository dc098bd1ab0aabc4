/**
 * The catalogue: plans and credit packs as whoever runs the installation writes them (`PENSTOCK_CATALOG`:
 * docs/architecture/protocol.md, "Configuration"). Fields are those of the management API, and `offerId`, the offer
 * at the payment provider.
 */

import { Ajv } from 'ajv'
import { type Currency, currencies, DEFAULT_CURRENCY } from '../domain/currency.ts'
import { IDENTIFIER_MAX_LENGTH, IDENTIFIER_PATTERN, reservedIdentifiers } from '../domain/identifiers.ts'
import { readJson } from '../domain/json.ts'
import type { Plan } from '../domain/model.ts'
import { NAME_MAX_LENGTH, parseName } from '../domain/names.ts'
import { accept, type Parsed, refuse } from '../domain/parsed.ts'
import { describeFaults } from '../domain/schema-fault.ts'

export interface CataloguePlan extends Plan {
  /** null: there is nothing to buy yet. */
  offerId: string | null
}

export interface CataloguePack {
  packId: string
  credits: number
  isActive: boolean
  /** null: not yet available. */
  offerId: string | null
}

export interface Catalogue {
  plans: CataloguePlan[]
  packs: CataloguePack[]
}

/** As it is written: what may be left out is. */
interface WrittenPlan {
  planId: string
  name: string
  prices: Partial<Record<Currency, number>>
  priceInCents?: number
  currency?: Currency
  creditsPerCycle: number
  isActive?: boolean
  offerId?: string
}

interface WrittenPack {
  packId: string
  credits: number
  isActive?: boolean
  offerId?: string
}

interface WrittenCatalogue {
  plans: WrittenPlan[]
  packs: WrittenPack[]
}

const identifier = {
  type: 'string',
  minLength: 1,
  maxLength: IDENTIFIER_MAX_LENGTH,
  pattern: IDENTIFIER_PATTERN,
  not: { enum: reservedIdentifiers },
}
/** A price of 0 would give packs away: their rate is a plan's. */
const price = { type: 'integer', minimum: 1, maximum: 1_000_000_000 }
const credits = { type: 'integer', minimum: 1, maximum: 1_000_000_000_000 }
const offerId = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[!-~]+$' }

const plan = {
  type: 'object',
  properties: {
    planId: identifier,
    name: { type: 'string', minLength: 1, maxLength: NAME_MAX_LENGTH },
    prices: {
      type: 'object',
      properties: Object.fromEntries(currencies.map((currency) => [currency, price])),
      minProperties: 1,
      additionalProperties: false,
    },
    priceInCents: price,
    currency: { type: 'string', enum: currencies },
    creditsPerCycle: credits,
    isActive: { type: 'boolean' },
    offerId,
  },
  required: ['planId', 'name', 'prices', 'creditsPerCycle'],
  additionalProperties: false,
}

const pack = {
  type: 'object',
  properties: { packId: identifier, credits, isActive: { type: 'boolean' }, offerId },
  required: ['packId', 'credits'],
  additionalProperties: false,
}

/** Of a catalogue file. */
export const catalogueSchema = {
  type: 'object',
  properties: {
    plans: { type: 'array', items: plan, maxItems: 1000 },
    packs: { type: 'array', items: pack, maxItems: 1000 },
  },
  required: ['plans', 'packs'],
  additionalProperties: false,
}

/** Reads a catalogue file with all defaults filled in; the error names the field by its path. */
export function parseCatalogue(bytes: Uint8Array): Parsed<Catalogue> {
  const read = readJson(bytes)
  if (!read.ok) return refuse('is not valid JSON')
  const validate = new Ajv({
    strict: true,
    ownProperties: true,
    verbose: true,
    allErrors: true,
  }).compile<WrittenCatalogue>(catalogueSchema)
  const written: unknown = read.value
  if (!validate(written)) return refuse(describeFaults(validate.errors))
  const problem =
    repeated(written.plans, 'plans', 'planId') ??
    repeated(written.packs, 'packs', 'packId') ??
    firstProblem(written.plans)
  if (problem !== undefined) return refuse(problem)
  return accept({ plans: written.plans.map(planOf), packs: written.packs.map(packOf) })
}

function planOf(written: WrittenPlan): CataloguePlan {
  const { planId, name, prices, creditsPerCycle } = written
  const currency = legacyCurrency(written)
  const { priceInCents = prices[currency]!, isActive = true } = written
  const offerId = written.offerId ?? null
  return { planId, name, priceInCents, currency, prices, creditsPerCycle, isActive, offerId }
}

function packOf({ packId, credits, isActive = true, offerId }: WrittenPack): CataloguePack {
  return { packId, credits, isActive, offerId: offerId ?? null }
}

/** Of `priceInCents`: as written, else BRL, else the first that has a price. */
function legacyCurrency({ currency, prices }: WrittenPlan): Currency {
  const priced = currencies.filter((each) => prices[each] !== undefined)
  return currency ?? (priced.includes(DEFAULT_CURRENCY) ? DEFAULT_CURRENCY : priced[0]!)
}

function firstProblem(plans: readonly WrittenPlan[]): string | undefined {
  return plans.map((written, index) => problemOf(written, `plans.${index}`)).find((text) => text)
}

/** What the schema cannot say. */
function problemOf(written: WrittenPlan, path: string): string | undefined {
  const name = parseName(`${path}.name`, written.name)
  if (!name.ok) return name.error
  const currency = legacyCurrency(written)
  const { priceInCents, prices } = written
  if (prices[currency] === undefined) return `${path}.prices.${currency} is required: currency names it`
  if (priceInCents !== undefined && priceInCents !== prices[currency]) {
    return `${path}.priceInCents must be the price in ${currency}, ${prices[currency]}`
  }
  return undefined
}

function repeated<Field extends string>(
  items: readonly Record<Field, string>[],
  list: string,
  field: Field,
): string | undefined {
  const ids = items.map((item) => item[field])
  const index = ids.findIndex((id, at) => ids.indexOf(id) < at)
  return index < 0 ? undefined : `${list}.${index}.${field} ${ids[index]} stands there twice`
}
