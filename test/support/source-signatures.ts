/** Headers as providers sign their webhooks, made without the code of the service. */
import { createHmac } from 'node:crypto'
import type { SignatureScheme } from '../../internal/domain/signatures/schemes.ts'

/** A secret that every scheme can use. */
export const SOURCE_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
export const OTHER_SECRET = 'whsec_b3RoZXItc2VjcmV0LW9mLXRoZS1zZW5kZXI='

export interface Signing {
  readonly secret?: string
  /** Seconds from now. */
  readonly later?: number
  /** Of standard-webhooks. */
  readonly id?: string
}

export function signedAs(
  scheme: SignatureScheme,
  body: string,
  { secret = SOURCE_SECRET, later = 0, id = 'msg_1' }: Signing = {},
): Record<string, string> {
  const stamp = String(Math.floor(Date.now() / 1000) + later)
  const hmac = (text: string, key: string | Buffer = secret) => createHmac('sha256', key).update(text)
  switch (scheme) {
    case 'hex':
      return { 'x-webhook-signature': hmac(body).digest('hex') }
    case 'github':
      return { 'x-hub-signature-256': `sha256=${hmac(body).digest('hex')}` }
    case 'shopify':
      return { 'x-shopify-hmac-sha256': hmac(body).digest('base64') }
    case 'stripe':
      return { 'stripe-signature': `t=${stamp},v1=${hmac(`${stamp}.${body}`).digest('hex')}` }
    case 'slack':
      return {
        'x-slack-request-timestamp': stamp,
        'x-slack-signature': `v0=${hmac(`v0:${stamp}:${body}`).digest('hex')}`,
      }
    case 'standard-webhooks': {
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
      const signature = hmac(`${id}.${stamp}.${body}`, key).digest('base64')
      return { 'webhook-id': id, 'webhook-timestamp': stamp, 'webhook-signature': `v1,${signature}` }
    }
  }
}
