/**
 * The answer of a destination without what was sent to it: some echo the headers of a request that they refuse, and whoever sees a
 * dead letter may not see secrets. Linear in the answer: a customer chooses the secrets, and its destination the answer.
 */
import { REDACTED } from './buffer-secrets.ts'
import type { DeliveryConfig } from './model.ts'

/** Characters that a text must have to be taken for a secret: `1` or `gzip` is none. */
const LEAST_SECRET = 6
/** Texts that an answer is searched for: each costs a pass, and headers may have thousands of words. */
const MOST_SECRETS = 150
/** Between the parts of a header's value, such as the scheme and its token. */
const BETWEEN = /[\s,;="]+/

/** `answer`: the first bytes of it as text; it may have been cut within a secret. */
export function withoutSecrets(answer: string, { headers, signing }: Secrets): string {
  const secrets = secretsOf(headers, signing)
  const whole = secrets.reduce((text, secret) => text.replaceAll(secret, REDACTED), answer)
  return secrets.reduce(withoutBeginning, whole)
}

type Secrets = Pick<DeliveryConfig, 'headers' | 'signing'>

/** Longest first. Whole values come before their parts: of those the shortest are left out. */
function secretsOf(headers: Secrets['headers'] = {}, signing: Secrets['signing']): string[] {
  const values = [...Object.values(headers), ...(signing ? [signing.secret] : [])]
  const escaped = values.map((value) => JSON.stringify(value).slice(1, -1))
  const parts = values.flatMap((value) => value.split(BETWEEN)).sort(byLength)
  return [...new Set([...values, ...escaped, ...parts])]
    .filter(({ length }) => length >= LEAST_SECRET)
    .slice(0, MOST_SECRETS)
    .sort(byLength)
}

function byLength(a: string, b: string): number {
  return b.length - a.length
}

/** Without the beginning of `secret` at the end of `text`. */
function withoutBeginning(text: string, secret: string): string {
  const length = overlap(text.slice(-secret.length + 1), secret)
  return length < LEAST_SECRET ? text : text.slice(0, -length) + REDACTED
}

/** How much of the end of `text` is the beginning of `secret`; in one pass over both (Knuth, Morris and Pratt). */
export function overlap(text: string, secret: string): number {
  const borders = [0]
  const next = (before: number, character: string | undefined): number => {
    let length = before
    while (length > 0 && secret[length] !== character) length = borders[length - 1]!
    return secret[length] === character ? length + 1 : length
  }
  for (let at = 1; at < secret.length; at++) borders.push(next(borders[at - 1]!, secret[at]))
  let length = 0
  for (let at = 0; at < text.length; at++) length = next(length, text[at])
  return length
}
