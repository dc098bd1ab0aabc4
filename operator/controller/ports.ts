/** The seams of the controller: who reconciles a key, and where everybody reads what the API server holds. */

/** What a resource is named by everywhere in the operator: `namespace/name`. */
export interface Named {
  readonly metadata?: {
    readonly namespace?: string
    readonly name?: string
    readonly uid?: string
    readonly resourceVersion?: string
  }
}

export interface Reconciler {
  /**
   * One pass for `namespace/name`. Level-triggered: it reads the stores and the admin API, never an event; a key that no store
   * has any more is a pass that finds nothing to do. A rejection is repeated with the key's back-off. `requeueAfterMs`: the
   * pass succeeded and wants another one so much later (`Retry-After`). `signal`: the operator stops; give up soon.
   */
  reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }>
}

/** The watched resources of one kind as last heard of the API server. What it returns must not be changed. */
export interface Store<T> {
  /** `key`: `namespace/name`. */
  get(key: string): T | undefined
  list(): readonly T[]
  /** All whose function of that index yields `value`. Throws on an index that was not declared. */
  byIndex(index: string, value: string): readonly T[]
}

/** Values of an object in each index, by the index's name. */
export type Indexers<T> = Readonly<Record<string, (object: T) => readonly string[]>>

/**
 * What a reflector tells of a kind; `before` is absent for what is new, `after` for what is gone. `last`: what is gone as the
 * API server removed it; absent where nobody saw that.
 */
export interface Change<T> {
  readonly key: string
  readonly before?: T
  readonly after?: T
  readonly last?: T
}

export function keyOf({ metadata }: Named): string {
  return `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`
}
