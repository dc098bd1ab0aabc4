/** The bodies that a fault run sends: JSON that whoever parses and prints it anew changes. */

export interface WebhookContent {
  readonly n: number
  readonly groupKey: string
  readonly messageId: string | null
  /** Characters of filling. */
  readonly bytes: number
}

/** Numbers, orders of names, names that come twice, escapes and blanks that do not survive a parser. */
const FRAGILE = [
  '1.0',
  '{"b":1,"a":2,"2":3,"1":4}',
  '{"twice":1,"twice":2}',
  '-0',
  '12345678901234567890',
  '"\\u0061\\/\\u00e4"',
  '[ 1 ,\n\t2.50e+0 ]',
  '"äöü €"',
]

/** Of the webhook number `n`: the number says which of the fragile values it carries, and where its blanks are. */
export function webhookText({ n, groupKey, messageId, bytes }: WebhookContent): string {
  const members = [
    `"fragile":${FRAGILE[n % FRAGILE.length]}`,
    `"group":${JSON.stringify(groupKey)}`,
    `"n":${n}`,
    ...(messageId === null ? [] : [`"messageId":${JSON.stringify(messageId)}`]),
    ...(bytes > 0 ? [`"fill":"${'x'.repeat(bytes)}"`] : []),
  ]
  return n % 3 === 0 ? ` { ${members.join(' , ')}}\n` : `{${members.join(',')}}`
}
