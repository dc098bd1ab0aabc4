/** The pages of the local payment provider: plain HTML without scripts, in which every text is escaped. */

import type { CheckoutView, PaymentView, SubscriptionView } from '../payments/local/ports.ts'

/** A text that is HTML already. */
class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = string | number | Html | readonly Html[]

/**
 * Headers of every page. No other page may show it in itself, so that nobody is led to press a button of it unseen. The
 * referrer is sent to itself: without one, browsers hide the origin of a form as well.
 */
export const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
} as const

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .5rem;border-bottom:1px solid #ccc}
form{display:inline}button{margin:.1rem}input{width:8rem}.note{color:#666}`

/** `path`: where its form goes. */
export function checkoutPage(view: CheckoutView, path: string): string {
  const { kind, planId, packId, customerId, amountInCents, currency, state } = view
  const about = html`<p>${kind === 'plan' ? 'Plan' : 'Credit pack'} <b>${planId ?? packId ?? ''}</b>
    for customer <b>${customerId}</b></p>`
  if (state !== 'open') {
    return page('Checkout', [
      about,
      html`<p>${money(amountInCents, currency)}, <b>${state}</b></p>`,
      state === 'pending' ? html`<p>The money comes when the clock goes on.</p>` : html``,
      link(`${CUSTOMERS}${customerId}`, 'What this customer has bought'),
    ])
  }
  return page('Checkout', [
    about,
    html`<p><b>${money(amountInCents, currency)}</b></p>`,
    html`<form method="post" action="${path}">
      <p><label>Amount in cents, with a coupon <input name="amountInCents" type="number" min="0"
        value="${amountInCents}"></label></p>
      <p>${Object.entries(OUTCOMES).map(([outcome, text]) => button('outcome', outcome, text))}</p>
    </form>`,
  ])
}

const OUTCOMES = {
  pays: 'Pay',
  'pays-late': 'Pay late, as by a bank slip',
  fails: 'Pay with a card that fails',
  abandons: 'Leave',
} as const

export const LOCAL_PAYMENTS_PREFIX = '/local/payments'
const CUSTOMERS = `${LOCAL_PAYMENTS_PREFIX}/customers/`

/** What a customer has bought, with buttons for what can be done about it. */
export function customerPage(
  customerId: string,
  { payments, subscriptions }: { payments: PaymentView[]; subscriptions: SubscriptionView[] },
): string {
  return page(`Customer ${customerId}`, [
    html`<h2>Subscriptions</h2>`,
    subscriptions.length === 0 ? html`<p class="note">None.</p>` : html``,
    html`<table>${subscriptions.map(subscriptionRow)}</table>`,
    html`<h2>Payments</h2>`,
    payments.length === 0 ? html`<p class="note">None.</p>` : html``,
    html`<table>${payments.map(paymentRow)}</table>`,
    html`<h2>Clock</h2>
    <form method="post" action="${LOCAL_PAYMENTS_PREFIX}/advance?customerId=${customerId}">
      <label>Days <input name="days" type="number" min="1" max="400" value="31"></label>
      <button>Move the clock on</button></form>`,
  ])
}

export function errorPage(status: number, error: string): string {
  return page(`Error ${status}`, [html`<p>${error}</p>`])
}

/** After a form that belongs to no page of its own. */
export function donePage(text: string): string {
  return page('Done', [html`<p>${text}</p>`])
}

function subscriptionRow({ subscriptionId, state }: SubscriptionView): Html {
  const path = `${LOCAL_PAYMENTS_PREFIX}/subscriptions/${subscriptionId}`
  const actions = state === 'CANCELLED' ? [] : Object.entries(ACTIONS)
  const changePlan = html`<form method="post" action="${path}"><input type="hidden" name="action"
    value="change-plan"><input name="planId" placeholder="plan" required><button>Change plan</button></form>`
  return html`<tr><td>${subscriptionId}</td><td>${state}</td><td><form method="post" action="${path}">
    ${actions.map(([action, text]) => button('action', action, text))}</form>
    ${state === 'CANCELLED' ? html`` : changePlan}</td></tr>`
}

const ACTIONS = {
  cancel: 'Cancel',
  'cancel-now': 'Cancel now',
  resume: 'Resume',
  'fail-payment': 'Fail the next payment',
} as const

function paymentRow({ paymentId, kind, amountInCents, refundedInCents, state }: PaymentView): Html {
  const path = `${LOCAL_PAYMENTS_PREFIX}/${paymentId}`
  const back = html`<form method="post" action="${path}/refund"><input name="amountInCents" type="number" min="1"
    placeholder="all"><button>Refund</button></form> <form method="post" action="${path}/dispute">
    ${button('outcome', 'lost', 'Dispute, lost')}${button('outcome', 'won', 'Dispute, won')}</form>`
  return html`<tr><td>${paymentId}</td><td>${kind}</td><td>${cents(amountInCents)}</td>
    <td>${refundedInCents === 0 ? '' : `${cents(refundedInCents)} refunded`}</td><td>${state}</td>
    <td>${state === 'paid' ? back : html``}</td></tr>`
}

function button(name: string, value: string, text: string): Html {
  return html`<button name="${name}" value="${value}">${text}</button>`
}

function link(href: string, text: string): Html {
  return html`<p><a href="${href}">${text}</a></p>`
}

function page(title: string, parts: readonly Html[]): string {
  const whole = html`<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width"><style>${new Html(STYLE)}</style></head>
<body><h1>${title}</h1>${parts}
<p class="note">The payment provider of the local instance. No money moves.</p></body></html>`
  return `<!doctype html>\n${whole.text}\n`
}

function money(amountInCents: number, currency: string): string {
  return `${cents(amountInCents)} ${currency}`
}

function cents(amount: number): string {
  return `${Math.floor(amount / 100)}.${String(amount % 100).padStart(2, '0')}`
}

/** Everything that is put in is escaped, unless it is HTML already. */
function html(literals: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: literals }, ...parts.map(textOf)))
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part))
  return part.map((each) => each.text).join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!)
}
