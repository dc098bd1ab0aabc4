/** The commands, and how each of them ends. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addAccountCommands } from './commands/account.ts'
import { addBufferCommands } from './commands/buffers.ts'
import { addCrdCommands } from './commands/crd.ts'
import { addDeadLetterCommands } from './commands/dead-letters.ts'
import { addListenCommand } from './commands/listen.ts'
import { addSendCommand } from './commands/send.ts'
import { addTailCommand } from './commands/tail.ts'
import { EXIT } from './exit.ts'
import { exitCodeOf } from './failure.ts'
import { jsonLine, printable } from './output.ts'
import { type GlobalOptions, Session, type Streams } from './session.ts'

/** Runs one command; its exit code. It never rejects: what went wrong stands in one line on stderr. */
export async function run(args: readonly string[], streams: Streams): Promise<number> {
  const program = programOn(streams)
  try {
    await program.parseAsync(args, { from: 'user' })
    return EXIT.done
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode !== EXIT.done) tell(error as Error, exitCode, args.includes('--json'), streams)
    return exitCode
  }
}

function programOn(streams: Streams): Command {
  const program = new Command('penstock')
    .description('Send webhooks to Penstock, look after buffers and dead letters, and try a receiver.')
    .version(version())
    .option('--json', 'print JSON: one line a result, and errors as JSON on stderr')
    .option('--profile <file>', 'profile file; default: PENSTOCK_PROFILE, or ~/.config/penstock/profile.json')
    .addHelpText('after', HELP)
  // Before the commands, which inherit both. Its own errors are told by `tell`.
  program.exitOverride().configureOutput({
    writeOut: (text) => streams.stdout.write(text),
    writeErr: () => {},
  })
  const session = (command: Command) => new Session(streams, command.optsWithGlobals<GlobalOptions>())
  addAccountCommands(program, session)
  addSendCommand(program, session)
  addBufferCommands(program, session)
  addDeadLetterCommands(program, session)
  addListenCommand(program, session)
  addTailCommand(program, session)
  addCrdCommands(program, session)
  return program
}

const HELP = `
Environment:
  PENSTOCK_URL, PENSTOCK_API_KEY  the service and the key, in place of the profile
  PENSTOCK_SOURCE_SECRET          signs what send sends
  PENSTOCK_SIGNING_SECRETS        verifies what listen gets

Exit codes:
  0  done
  1  the service, or the destination of a retry, refused it; or the output cannot be written
  2  the command, an option or a file is wrong
  3  there is no key, or the key may not do this
  4  there is no such thing
  5  the service did not answer, or cannot do it now
  6  some of several failed

Example:
  $ penstock login --url http://127.0.0.1:8080 < .penstock/owner-key
`

function tell(error: Error, exitCode: number, json: boolean, { stderr }: Streams): void {
  const { status, code, requestId } = error as { status?: number; code?: unknown; requestId?: string }
  const isHelp = code === 'commander.help'
  const message = isHelp
    ? 'say what to do: penstock --help'
    : error.message.replace(/^error: /, '').split('\n')[0]!
  const told = { error: message, exitCode, status, code, requestId }
  stderr.write(json ? `${jsonLine(told)}\n` : `penstock: ${printable(message)}\n`)
}

function version(): string {
  const file = new URL('../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
