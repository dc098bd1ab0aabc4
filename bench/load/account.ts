/** What an account of the benchmark holds; ids follow from numbers, so that every process knows them. */

export interface Account {
  customerId: string
  projects: number
  /** Number n is in project n mod `projects`. */
  buffers: number
  /** Number n is of buffer n mod `buffers`. */
  deadLetters: number
}

export function projectIdOf({ customerId }: Account, n: number): string {
  return `${customerId}-project-${n}`
}

export function bufferIdOf({ customerId }: Account, n: number): string {
  return `${customerId}-buffer-${n}`
}

export function deadLetterIdOf(account: Account, n: number): string {
  return `${deadLetterPrefixOf(account)}${n}`
}

/** What the ids of its dead letters have in front of their numbers. */
export function deadLetterPrefixOf({ customerId }: Account): string {
  return `${customerId}-dead-`
}
