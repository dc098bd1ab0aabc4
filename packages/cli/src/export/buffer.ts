// Made by npm run crd from operator/export/buffer.ts. Change that one.
/** A buffer as the admin API answers it, as far as its resource is made of it. */
export interface ExportedBuffer {
  readonly bufferId: string
  readonly projectId: string
  readonly name: string
  readonly enabled: boolean
  /** Why the service itself has disabled it; absent: it has not. */
  readonly pausedReason?: string
  readonly delivery: {
    readonly headers?: Readonly<Record<string, string>>
    readonly signing?: { readonly secret?: string }
  }
  readonly sourceVerification?: { readonly signingSecret?: string; readonly previousSecret?: string }
}

/** What goes into each resource beside its buffer. */
export interface ExportOptions {
  /** Where the resources are to be; absent: wherever they are applied. */
  readonly namespace?: string
  /** The Secret with the API key, under `apiKey`. */
  readonly credentialsSecret: string
  /** Headers of deliveries whose values are printed, in any case. */
  readonly plainHeaders: readonly string[]
}

/** Something is asked that must not or cannot be done; the message is for people. */
export class ExportError extends Error {
  override readonly name = 'ExportError'
}
