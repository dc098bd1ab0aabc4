/** What credits need of Postgres (design, section 7). Every call rejects while it is away. */

/** Specification, `GET /v1/admin/credits`. Credits are integers; `lastResetAt` in Unix ms. */
export interface CreditAccount {
  customerId: string
  credits: number
  creditLimit: number
  /** Since the start of the current UTC month. */
  creditsUsedThisMonth: number
  lastResetAt: number
}

export interface CreditAccounts {
  read(customerId: string): Promise<CreditAccount | undefined>
  /** Adds credits as one `grant` transaction and answers the new balance; undefined: no such customer. */
  grant(customerId: string, credits: number, description: string): Promise<number | undefined>
}

/**
 * One group commit of a node for a customer. Statements of one node and customer are numbered from 1, the
 * next one is sent after the answer of the last. Columns are parallel arrays.
 */
export interface CreditStatement {
  readonly customerId: string
  readonly number: number
  /** Distinct buffer uids; the rest names them by index from 1. */
  readonly buffers: readonly string[]
  /** Charges in the order of their arrival, equal neighbours as one run. */
  readonly runs: { readonly buffer: number[]; readonly credits: number[]; readonly count: number[] }
  /** Parallel to `buffers`: what is credited back, and for how many items. */
  readonly refunds: { readonly credits: number[]; readonly items: number[] }
  /** Credits of charges whose items are stored for good. */
  readonly settled: number
}

export interface CreditAnswer {
  /** false: the node was closed and its credits refunded; it must not go on. */
  open: boolean
  /** How many charges were paid, from the first. */
  granted: number
  /** Afterwards. */
  balance: number
}

export interface CreditStatements {
  /** Registers the node; repeatable. */
  open(boot: string): Promise<void>
  /**
   * Applies the statement, or answers as the first time when its number was applied before: it may be
   * repeated until it is answered. A repetition may leave the charges out, not the rest: `granted` then
   * says whether the first one had paid them. Rejects within seconds when the outcome is unknown.
   */
  apply(boot: string, statement: CreditStatement): Promise<CreditAnswer>
  /** Closes the node and refunds what it has not settled; repeatable. */
  close(boot: string): Promise<void>
}
