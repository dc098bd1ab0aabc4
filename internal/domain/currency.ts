/** Currencies that plans and packs are priced in (docs/reference/api.md, "Plans" and "Credit packs"). */

/** In the order in which they are offered. */
export const currencies = ['BRL', 'USD'] as const

export type Currency = (typeof currencies)[number]

/** Of a credit pack list that names none. */
export const DEFAULT_CURRENCY: Currency = 'BRL'

export function isCurrency(value: unknown): value is Currency {
  return (currencies as readonly unknown[]).includes(value)
}
