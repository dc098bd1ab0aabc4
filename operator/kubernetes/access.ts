import type { DispatcherOptions } from '@kubernetes/client-node'

/** Where the API server is, and what tells it who asks. */
export interface ClusterAccess {
  /** The one that the operator itself lives in; undefined: nothing names one. */
  readonly namespace: string | undefined
  /** As of now: credentials are renewed while the operator runs. Rejects where they cannot be had. */
  connection(): Promise<Connection>
}

export interface Connection {
  /** `https://host:port`, perhaps with a path. */
  readonly server: string
  /** Of each request. */
  readonly headers: Readonly<Record<string, string>>
  /** The certificates, and a proxy. */
  readonly options: DispatcherOptions
}
