/**
 * An event of the log as a person reads it on a terminal (docs/guide/local.md, "Watch it"): one line, whatever is in it.
 * The level and the time stand before it.
 */

type Event = Readonly<Record<string, unknown>>

/** What stands elsewhere in the line, or is the same in all of them. */
const HIDDEN = new Set(['level', 'time', 'role', 'msg', 'pid', 'hostname', 'shard', 'sampled'])

const WRITERS: Readonly<Record<string, (event: Event) => string>> = {
  delivery: deliveryLine,
  dead: deadLine,
  retry: retryLine,
}

export function terminalLine(event: Event): string {
  const { msg } = event
  const write = WRITERS[String(msg)]
  if (write) return write(event)
  const members = Object.entries(event).filter(([name, value]) => !HIDDEN.has(name) && value !== undefined)
  return [msg, ...members.map(([name, value]) => `${name}=${shown(value)}`)].filter(Boolean).join(' ')
}

function deliveryLine(event: Event): string {
  const { bufferId, groupId, outcome, attempt, statusCode, durationMs, error } = event
  const what = `${itemsOf(event)} of ${bufferId} (group ${groupId})`
  const end = `status ${statusCode}, ${durationMs} ms`
  if (outcome === 'delivered') return `delivered ${what}: ${end}`
  const next = outcome === 'retry' ? 'it is tried again' : 'it is not tried again'
  return `attempt ${attempt} of ${what} failed: ${shown(error)}, ${end}; ${next}`
}

function deadLine(event: Event): string {
  const { bufferId, dlqId, reason, groupId } = event
  return `dead letter ${dlqId}: ${itemsOf(event)} of ${bufferId} (group ${groupId}), ${reason}`
}

function retryLine(event: Event): string {
  const { dlqId, bufferId, delivered, error, statusCode, durationMs } = event
  const what = `dead letter ${dlqId}: ${itemsOf(event)} of ${bufferId}`
  const end = `status ${statusCode}, ${durationMs} ms`
  return delivered ? `retried ${what}: ${end}` : `retry of ${what} failed: ${shown(error)}, ${end}`
}

function itemsOf({ items }: Event): string {
  return items === 1 ? '1 item' : `${items} items`
}

function shown(value: unknown): string {
  if (typeof value === 'string') return oneLine(value)
  if (isError(value)) return oneLine(value.message)
  return JSON.stringify(value)
}

/** As pino writes an error. */
function isError(value: unknown): value is { message: string; stack: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && 'message' in value
}

/** A text of others must not look like a line of ours, nor steer the terminal. */
function oneLine(text: string): string {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
    ? JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, '?')
    : text
}
