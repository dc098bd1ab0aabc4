/**
 * `/local/payments`: the payment provider of the local instance, as a person uses it (docs/architecture/billing.md, "The local
 * provider"). It asks for no credential. So it answers what is meant for this machine only, as the receiver does, and changes
 * nothing for a page of anybody else: neither by its forms nor shown inside of it.
 */

import type { Context, Middleware } from 'koa'
import { isIdentifier, parseIdentifier } from '../domain/identifiers.ts'
import type { Parsed } from '../domain/parsed.ts'
import { type LocalPayments, LocalRefusal } from '../payments/local/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import { readBody } from './body.ts'
import { answerEarly } from './early-answer.ts'
import {
  BODY_BYTES,
  type Input,
  parseAction,
  parseAdvance,
  parseChoice,
  parseDispute,
  parseNothing,
  parseRefund,
  readInput,
} from './local-payments-input.ts'
import {
  checkoutPage,
  customerPage,
  donePage,
  errorPage,
  LOCAL_PAYMENTS_PREFIX,
  pageHeaders,
} from './local-payments-page.ts'
import { isOwnHost } from './own-requests.ts'

export interface LocalPaymentRoutesOptions {
  readonly provider: LocalPayments
  readonly clock: Clock
  /** Where this process listens, as configured. */
  readonly host: string
}

/** An answer, as JSON and as a page. `page`: absent of what no form and no browser asks for. */
interface Answer {
  readonly json: unknown
  readonly page?: () => string | Promise<string>
}

type Handle = (provider: LocalPayments, id: string, ctx: Context, input: Input) => Promise<Answer>

interface Route {
  readonly method: 'GET' | 'POST'
  /** The first group is the id. */
  readonly path: RegExp
  readonly handle: Handle
  /** A page, unless JSON is asked for. Without it JSON, but what a form sends is answered with a page. */
  readonly isPage?: boolean
}

const FOREIGN_TARGET = 'The target of a request to the payment provider must be a path'
const FOREIGN_HOST = 'The payment provider is reached by an IP address or as localhost, and by no other name'
const FOREIGN_ORIGIN = 'A page of another origin changes nothing at the payment provider'

/** Koa middleware; passes on what is not below `/local/payments`. */
export function localPaymentRoutes({ provider, clock, host }: LocalPaymentRoutesOptions): Middleware {
  return async (ctx, next) => {
    const { path } = ctx
    if (path !== LOCAL_PAYMENTS_PREFIX && !path.startsWith(`${LOCAL_PAYMENTS_PREFIX}/`)) return next()
    ctx.set('Cross-Origin-Resource-Policy', 'same-origin')
    const refusal = refusalOf(ctx, host)
    if (refusal !== undefined) return answerError(ctx, ...refusal)
    const rest = path.slice(LOCAL_PAYMENTS_PREFIX.length)
    const matching = routes.filter((each) => each.path.test(rest))
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
    const route = matching.find((each) => each.method === method)
    if (route !== undefined) return answer(provider, clock, route, rest, ctx)
    if (matching.length === 0) return answerError(ctx, 404, 'Not found')
    ctx.set('Allow', matching.map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method)).join(', '))
    answerError(ctx, 405, 'Method not allowed')
  }
}

/** Requests that are not meant for here, or that a page of another origin makes. */
function refusalOf(ctx: Context, host: string): [status: number, error: string] | undefined {
  if (!ctx.req.url?.startsWith('/')) return [400, FOREIGN_TARGET]
  if (!isOwnHost(ctx.headers.host, host)) return [400, FOREIGN_HOST]
  return ctx.method === 'POST' && !isOwnOrigin(ctx) ? [403, FOREIGN_ORIGIN] : undefined
}

/** Every browser names the origin of a POST; who names none is no browser. */
function isOwnOrigin({ headers }: Context): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  const { origin } = headers
  return origin === undefined || origin.toLowerCase() === `http://${headers.host}`.toLowerCase()
}

const ID = '([^/]+)'

const routes: readonly Route[] = [
  { method: 'GET', path: /^$/, handle: list },
  { method: 'GET', path: /^\/events$/, handle: events },
  { method: 'POST', path: new RegExp(`^/events/${ID}/repeat$`), handle: repeat },
  { method: 'POST', path: /^\/advance$/, handle: advance },
  { method: 'GET', path: new RegExp(`^/checkouts/${ID}$`), handle: checkout, isPage: true },
  { method: 'POST', path: new RegExp(`^/checkouts/${ID}$`), handle: choose },
  { method: 'GET', path: new RegExp(`^/customers/${ID}$`), handle: customer, isPage: true },
  { method: 'POST', path: new RegExp(`^/subscriptions/${ID}$`), handle: act },
  { method: 'POST', path: new RegExp(`^/${ID}/refund$`), handle: refund },
  { method: 'POST', path: new RegExp(`^/${ID}/dispute$`), handle: dispute },
]

async function answer(
  provider: LocalPayments,
  clock: Clock,
  { method, path, handle, isPage = false }: Route,
  rest: string,
  ctx: Context,
): Promise<void> {
  const input = method === 'POST' ? await inputOf(ctx, clock) : readInput(new Uint8Array(), undefined)
  if (input === undefined) return
  const asPage = isPage ? ctx.accepts('html', 'json') === 'html' : input.isForm
  try {
    const id = path.exec(rest)?.[1] ?? ''
    if (id !== '' && !isIdentifier(id)) throw new LocalRefusal('unknown', 'Not found')
    const { json, page } = await handle(provider, id, ctx, input)
    if (asPage && page) answerPage(ctx, 200, await page())
    else ctx.body = json
  } catch (error) {
    if (!(error instanceof LocalRefusal)) throw error
    answerError(ctx, STATUSES[error.kind], error.message, { code: error.code, asPage })
  }
}

const STATUSES = { invalid: 400, unknown: 404, conflict: 409 } as const

/** undefined: the request has been answered, or is gone. */
async function inputOf(ctx: Context, clock: Clock): Promise<Input | undefined> {
  const body = await readBody(ctx.req, ctx.res, BODY_BYTES)
  if (typeof body !== 'string') return readInput(body, ctx.headers['content-type'])
  ctx.respond = false
  const refuse = (status: number, error: string) =>
    answerEarly(clock, ctx.req, ctx.res, { status, body: JSON.stringify({ error }) })
  if (body === 'too-large') refuse(413, 'Request body is too large')
  if (body === 'encoded') refuse(415, 'Encoded bodies are not supported')
  return undefined
}

function answerPage(ctx: Context, status: number, page: string): void {
  ctx.status = status
  ctx.set(pageHeaders)
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = page
}

function answerError(
  ctx: Context,
  status: number,
  error: string,
  { code, asPage = false }: { code?: string | undefined; asPage?: boolean } = {},
): void {
  if (asPage) answerPage(ctx, status, errorPage(status, error))
  else {
    ctx.status = status
    ctx.body = code === undefined ? { error } : { error, code }
  }
}

async function list(provider: LocalPayments, _: string, { query }: Context): Promise<Answer> {
  const customerId = required(parseIdentifier('customerId', query.customerId))
  return { json: await provider.list(customerId) }
}

async function customer(provider: LocalPayments, customerId: string): Promise<Answer> {
  const json = await provider.list(customerId)
  return { json, page: () => customerPage(customerId, json) }
}

async function checkout(provider: LocalPayments, id: string, { path }: Context): Promise<Answer> {
  const json = await provider.checkout(id)
  return { json, page: () => checkoutPage(json, path) }
}

async function choose(provider: LocalPayments, id: string, ctx: Context, input: Input): Promise<Answer> {
  const json = await provider.choose(id, required(parseChoice(input)))
  return { json, page: () => checkoutPage(json, ctx.path) }
}

/** A form says from which customer's page it came. */
async function advance(provider: LocalPayments, _: string, ctx: Context, input: Input): Promise<Answer> {
  const { customerId } = ctx.query
  const json = await provider.advance(required(parseAdvance(input)).days)
  const done = donePage(`The clock of the provider says ${new Date(json.now).toISOString()}.`)
  return { json, page: () => (isIdentifier(customerId) ? pageOf(provider, customerId) : done) }
}

async function act(provider: LocalPayments, id: string, _: Context, input: Input): Promise<Answer> {
  const { customerId, subscription } = await provider.act(id, required(parseAction(input)))
  return { json: subscription, page: () => pageOf(provider, customerId) }
}

async function refund(provider: LocalPayments, id: string, _: Context, input: Input): Promise<Answer> {
  const { amountInCents } = required(parseRefund(input))
  const { customerId, payment } = await provider.refund(id, amountInCents)
  return { json: payment, page: () => pageOf(provider, customerId) }
}

async function dispute(provider: LocalPayments, id: string, _: Context, input: Input): Promise<Answer> {
  const { customerId, payment } = await provider.dispute(id, required(parseDispute(input)).outcome)
  return { json: payment, page: () => pageOf(provider, customerId) }
}

async function events(provider: LocalPayments): Promise<Answer> {
  return { json: await provider.events() }
}

async function repeat(provider: LocalPayments, id: string, _: Context, input: Input): Promise<Answer> {
  required(parseNothing(input))
  const json = await provider.repeat(id)
  return { json, page: () => donePage(`The event ${id} was told again.`) }
}

async function pageOf(provider: LocalPayments, customerId: string): Promise<string> {
  return customerPage(customerId, await provider.list(customerId))
}

/** The value, or a refusal that names the field. */
function required<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw new LocalRefusal('invalid', parsed.error)
  return parsed.value
}
