/** What a pass may do next, and what it tells: the vocabulary of the rules in `decide.ts` and `deletion.ts`. */
import type { Buffer } from '../../internal/domain/model.ts'
import type { DesiredBuffer } from './desired-buffer.ts'
import type { Observed } from './observed.ts'
import type { JsonBody } from './ports.ts'

/** What is to be told by the conditions. */
export type ReportedState =
  | { readonly state: 'ready' | 'paused'; readonly buffer: Buffer }
  /** It will not get better by itself. `disowned`: the buffer is not this resource's. */
  | { readonly state: 'stalled'; readonly reason: string; readonly message: string; readonly disowned?: true }
  | { readonly state: 'retrying'; readonly reason: string; readonly message: string }
  /** Its annotation says that the operator is to leave it alone. */
  | { readonly state: 'held' }
  /** It is deleted, has no buffer any more, and waits for the finalizers of others. */
  | { readonly state: 'released' }

export type ChangeReason = 'Updated' | 'Corrected' | 'Resumed' | 'Paused'

export type Decision =
  /** Nothing, until a change or for `forMs`. */
  | { readonly act: 'rest'; readonly forMs?: number }
  | { readonly act: 'finalize' }
  /** Ask the service for the buffer. */
  | { readonly act: 'look'; readonly key: string }
  /** Note in the status whose the buffer is; `adopt`: it exists. */
  | { readonly act: 'claim'; readonly adopt: boolean }
  | { readonly act: 'create'; readonly key: string; readonly desired: DesiredBuffer; readonly again: boolean }
  | {
      readonly act: 'change'
      readonly key: string
      readonly patch: JsonBody
      readonly reason: ChangeReason
      readonly note: string
    }
  | { readonly act: 'remove'; readonly key: string }
  /** Let the resource go; `orphaned`: why its buffer stays; `missing`: there was none to delete. */
  | { readonly act: 'release'; readonly orphaned?: string; readonly missing?: true }
  | { readonly act: 'report'; readonly outcome: ReportedState; readonly againMs?: number }

/** What goes to the service. */
export type Asking = Extract<Decision, { key: string }>

/** One link of the chain: undefined passes the question on. */
export type Rule = (observed: Observed) => Decision | undefined
