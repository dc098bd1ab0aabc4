const SCARCE: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']

/** Whether the system says that this process or machine has no file descriptor, or no memory for one, left. */
export function isScarcity(error: unknown): boolean {
  return error instanceof Error && 'code' in error && SCARCE.includes(error.code)
}
