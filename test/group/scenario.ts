/**
 * Scripts for one group machine. A script is blocks of commands, each followed by `----` and what came out:
 *
 *     1000 item a 10            time, input, arguments; an item is `name bytes`, its own time `at=…`
 *     1200 sealed #1 7          batches are #1, #2 … in the order in which they appeared
 *     ----
 *     deliver #1 v7 attempt 1
 *
 * The first command is `group key=value …`, over the defaults of a buffer, or `group unknown`: its policy comes later,
 * over the same defaults.
 */
import { step } from '../../internal/group/machine.ts'
import {
  type AttemptOutcome,
  type Batch,
  type GroupPolicy,
  type Input,
  UNKNOWN,
} from '../../internal/group/model.ts'
import { createGroup, type GroupState } from '../../internal/group/state.ts'
import { defaultPolicy, effectText, type NamedItem } from './notation.ts'

export class Script {
  #policy: GroupPolicy = defaultPolicy
  #state: GroupState<NamedItem> = createGroup(defaultPolicy, 0)
  readonly #items = new Map<string, NamedItem>()
  readonly #batches: Batch<NamedItem>[] = []

  /** Effects of one command, a line each; a throw is the line `error: …`. */
  run(command: string): string[] {
    const [time = '', kind = '', ...words] = command.split(/\s+/)
    if (time === 'group') return this.#open([kind, ...words])
    try {
      const { state, effects } = step(this.#state, this.#input(Number(time), kind, words))
      this.#state = state
      this.#learn()
      return effects.map((effect) =>
        effectText(effect, (batch) => `#${this.#batches.indexOf(batch as never) + 1}`),
      )
    } catch (error) {
      return [`error: ${(error as Error).message}`]
    }
  }

  #open(words: string[]): string[] {
    const [only] = words
    this.#policy = only === 'unknown' ? defaultPolicy : changed(defaultPolicy, words)
    this.#state = createGroup(only === 'unknown' ? UNKNOWN : this.#policy, 0)
    return []
  }

  #input(at: number, kind: string, words: string[]): Input<NamedItem> {
    const [first = '', second = ''] = words
    switch (kind) {
      case 'item':
        return {
          kind,
          at,
          item: this.#item(first, Number(second), Number(words[2]?.slice('at='.length) ?? at)),
        }
      case 'tick':
        return { kind, at }
      case 'sealed':
        return { kind, at, batch: this.#batch(first), version: Number(second) }
      case 'result':
        return { kind, at, batch: this.#batch(first), result: second as AttemptOutcome }
      case 'withdrawn':
        return { kind, at, batch: this.#batch(first), notBefore: Number(second) }
      case 'unsealed':
      case 'attempt-recorded':
      case 'settled':
        return { kind, at, batch: this.#batch(first) }
      case 'dropped':
        return { kind, at, item: this.#items.get(first)! }
      case 'policy':
        this.#policy = changed(this.#policy, words)
        return { kind, at, policy: this.#policy }
      case 'restored':
        return this.#restored(at, words)
      default:
        throw new Error(`no input is called ${kind}`)
    }
  }

  /** `restored <version> <attempt> <next attempt at> <segment> [running] <item names>`; 10 bytes each, of time 0. */
  #restored(at: number, [version, attempt, nextAttemptAt, segment, ...rest]: string[]): Input<NamedItem> {
    const running = rest[0] === 'running'
    const items = rest.slice(running ? 1 : 0).map((name) => this.#item(name, 10, 0))
    const numbers = {
      version: Number(version),
      attempt: Number(attempt),
      nextAttemptAt: Number(nextAttemptAt),
    }
    return { kind: 'restored', at, items, ...numbers, segment: Number(segment), running }
  }

  #item(name: string, bytes: number, at: number): NamedItem {
    const item = { name, bytes, at }
    this.#items.set(name, item)
    return item
  }

  #batch(label: string): Batch<NamedItem> {
    const batch = this.#batches[Number(label.slice(1)) - 1]
    if (!batch) throw new Error(`no batch ${label} yet`)
    return batch
  }

  #learn(): void {
    for (const batch of this.#state.batches ?? [])
      if (!this.#batches.includes(batch)) this.#batches.push(batch)
  }
}

function changed(policy: GroupPolicy, words: string[]): GroupPolicy {
  const next = { ...policy, backoff: { ...policy.backoff } }
  for (const word of words) {
    const [key = '', value = ''] = word.split('=')
    const target: Record<string, unknown> =
      key in next.backoff ? next.backoff : (next as Record<string, unknown>)
    if (!(key in target)) throw new Error(`no policy field is called ${key}`)
    target[key] = key === 'state' ? value : Number(value)
  }
  return next
}
