/** `login` and `whoami`. */
import { createPenstock, type Schemas } from '@penstock-local/client'
import type { Command } from 'commander'
import { EXIT } from '../exit.ts'
import { Failure } from '../failure.ts'
import { readKey } from '../input.ts'
import { printable } from '../output.ts'
import { writeProfile } from '../profile.ts'
import type { Session } from '../session.ts'

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

export function addAccountCommands(program: Command, session: (command: Command) => Session): void {
  program
    .command('login')
    .description('check a key, and keep it in the profile file (mode 0600)')
    .requiredOption('--url <url>', 'base address of the service')
    .addHelpText('after', LOGIN_HELP)
    .action(async ({ url }: { url: string }, command: Command) => login(session(command), url))
  program
    .command('whoami')
    .description('customer, role, projects and credits of the key')
    .addHelpText('after', '\nExample:\n  $ penstock whoami --json\n')
    .action(async (_options, command: Command) => {
      const on = session(command)
      const me = await on.penstock().whoAmI()
      on.print(me, describe(me))
    })
}

const LOGIN_HELP = `
The key comes from stdin, or from a prompt that does not show it. It is no argument: others on the
machine see arguments.

Examples:
  $ penstock login --url https://penstock.example.com
  $ penstock login --url http://127.0.0.1:8080 < .penstock/owner-key
`

/** Nothing is written before the service has taken the key. */
async function login(on: Session, url: string): Promise<void> {
  // Throws for an address that is none, before anybody types a key.
  createPenstock({ url })
  if (!isPrivate(url)) on.note(`warning: ${url} is not https, so others on the way can read the key`)
  const apiKey = await readKey(on.streams)
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new Failure(EXIT.usage, 'the key must be one line of printable characters')
  const me = await createPenstock({ url, apiKey }).whoAmI()
  writeProfile(on.profilePath, { url, apiKey })
  on.print({ ...me, profile: on.profilePath }, `${describe(me)}\nkept in ${on.profilePath}`)
}

function isPrivate(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || LOOPBACK.test(hostname)
}

function describe({ customerId, role, projects, credits }: Schemas['WhoAmI']): string {
  const reach = projects === null ? 'all projects' : `projects ${projects.join(', ')}`
  return printable(`${role} of ${customerId}, ${reach}, ${credits} credits`)
}
