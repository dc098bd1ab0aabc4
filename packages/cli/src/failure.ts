/** How a command ends when it did not do what it was asked (docs/guide/cli.md, "Exit codes"). */
import { NoAnswerError, RefusedError } from '@penstock-local/client'
import { CommanderError } from 'commander'
import { EXIT, type ExitCode } from './exit.ts'

/** One line for people, and the exit code. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
  if (error instanceof NoAnswerError) return EXIT.unavailable
  if (error instanceof RefusedError) return codeOfStatus(error)
  // What the client throws for arguments that it cannot send.
  return error instanceof TypeError ? EXIT.usage : EXIT.refused
}

function codeOfStatus({ status, code }: RefusedError): ExitCode {
  // The service did its part: the destination refused the batch.
  if (code === 'delivery_failed') return EXIT.refused
  if (status === 401 || status === 403) return EXIT.credential
  if (status === 404) return EXIT.notFound
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.refused
}
