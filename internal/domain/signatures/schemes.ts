/** The ways in which senders sign (docs/reference/buffers.md, "Source verification"). */

/** `hex` is the service's own, the others are those of the providers of that name. */
export type SignatureScheme = 'hex' | 'github' | 'shopify' | 'stripe' | 'slack' | 'standard-webhooks'

export const DEFAULT_SCHEME: SignatureScheme = 'hex'
export const DEFAULT_SOURCE_SIGNATURE_HEADER = 'x-webhook-signature'

/** Seconds between the time stamp of a signature and its arrival, either way. */
export const DEFAULT_TOLERANCE_SECONDS = 300

/** Where each scheme has its signature, unless the buffer names another header. */
const headers: Readonly<Record<SignatureScheme, string>> = {
  hex: DEFAULT_SOURCE_SIGNATURE_HEADER,
  github: 'x-hub-signature-256',
  shopify: 'x-shopify-hmac-sha256',
  stripe: 'stripe-signature',
  slack: 'x-slack-signature',
  'standard-webhooks': 'webhook-signature',
}

/** In lower case. */
export const schemeHeaders: readonly string[] = Object.values(headers)
export const signatureSchemes = Object.keys(headers) as readonly SignatureScheme[]

/** What decides in which header a signature is looked for. */
export interface SignaturePlace {
  readonly scheme?: SignatureScheme
  readonly signatureHeader: string
}

/**
 * The header that `wanted` means. The default of `hex` is filled in wherever none is given, so with another scheme it
 * means the header of that scheme. A header that a change leaves alone follows the scheme, if it was that of the scheme.
 */
export function signatureHeaderOf(wanted: SignaturePlace, before?: SignaturePlace): string {
  const own = headers[wanted.scheme ?? DEFAULT_SCHEME]
  const { signatureHeader } = wanted
  if (signatureHeader === DEFAULT_SOURCE_SIGNATURE_HEADER) return own
  const followed = before !== undefined && signatureHeader === before.signatureHeader
  return followed && signatureHeader === headers[before.scheme ?? DEFAULT_SCHEME] ? own : signatureHeader
}
