/**
 * A batch is named by its group and the sequence of its sealing commit together (docs/architecture/protocol.md,
 * "Seals and versions").
 */
export interface BatchName {
  readonly groupId: string
  readonly version: number
}

export function batchKey({ groupId, version }: BatchName): string {
  return `${groupId}:${version}`
}
