/** Everything that one pass decides on: the resource, its Secrets, the buffer at the service, what this process remembers. */
import type { Buffer } from '../../internal/domain/model.ts'
import type { BufferResource, SecretVersion } from '../resource.ts'
import type { DesiredBuffer, DesiredBufferProblem } from './desired-buffer.ts'
import type { AdminError, BufferState } from './ports.ts'
import type { SecretValue } from './secret-values.ts'

/** Another resource that names the same buffer, and comes first. */
export interface Rival {
  /** `namespace/name`. */
  readonly name: string
  /** It was shown the buffer as its own; false: it may come to nothing. */
  readonly isOwner: boolean
}

export interface Observed {
  readonly resource: BufferResource
  readonly bufferId: string
  /** Another resource that already stands for the same buffer, or tries to. */
  readonly rival: Rival | undefined
  readonly key: SecretValue
  /** Keys that may reach the buffer when the Secret's does not: the one that last did, the one last read. */
  readonly lastKeys: readonly string[]
  /** The deleted resource may be let go without its buffer: its Secret is gone, or it is gone itself. */
  readonly mayStrand: boolean
  /** For how long this process has found it so, ms. */
  readonly strandedMs: number
  readonly desired: DesiredBuffer | DesiredBufferProblem
  readonly secretVersions: readonly SecretVersion[]
  /**
   * This process noted the intent when nothing was there, and all that it sent to create the buffer since was refused: what is
   * there now is another's. An intent of which that is not known may have made the buffer.
   */
  readonly claimed: boolean
  /** How the service last told that the buffer stands. */
  readonly told: BufferState | undefined
  /** How long what was last found still counts, ms; 0: look again. */
  readonly restMs: number
  /** Unix epoch ms. */
  readonly now: number
  /** Of the service, once this pass asked; 'absent': the key reaches none. */
  readonly remote?: Buffer | 'absent'
  /** In this pass the service took a change. */
  readonly changed?: true
  /** In this pass the creation was answered 409. */
  readonly taken?: true
  /** In this pass the buffer was deleted. */
  readonly removed?: true
  /** In this pass a key that would reach the buffer found none to delete. */
  readonly missing?: true
  /** In this pass a key found none, and why it would not. */
  readonly outOfReach?: string
  /** In this pass the service refused a key, or gave it no answer for long enough. */
  readonly refused?: AdminError
  /** Keys that could not delete the buffer in this pass. */
  readonly tried?: readonly string[]
}

/** Characters that count of an annotation any new value of which asks for something. */
export const RESUME_MAX_LENGTH = 256
