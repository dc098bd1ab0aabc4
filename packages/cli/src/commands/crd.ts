/** `crd export`. */
import type { Command } from 'commander'
import { collect } from '../collect.ts'
import { EXIT } from '../exit.ts'
import { ExportError } from '../export/buffer.ts'
import { DEFAULT_CREDENTIALS_SECRET } from '../export/options.ts'
import { type ExportedResource, resourcesOf } from '../export/resources.ts'
import { yamlOf } from '../export/yaml.ts'
import { Failure } from '../failure.ts'
import { jsonLine } from '../output.ts'
import type { Session } from '../session.ts'

interface Options {
  readonly project?: string
  readonly namespace?: string
  readonly credentialsSecret: string
  readonly plainHeader: readonly string[]
}

export function addCrdCommands(program: Command, session: (command: Command) => Session): void {
  program
    .command('crd')
    .description('buffers as Kubernetes resources')
    .addHelpText('after', HELP)
    .command('export')
    .description(
      'print the Buffer resources that take over the buffers of the account; Secrets are only named',
    )
    .option('--project <id>', 'only those of this project')
    .option('--namespace <name>', 'the namespace of the resources')
    .option('--credentials-secret <name>', 'the Secret with the API key', DEFAULT_CREDENTIALS_SECRET)
    .option('--plain-header <name>', 'print the values of this header; may be repeated', also, [])
    .action((options: Options, command: Command) => exportBuffers(session(command), options))
}

const HELP = `
Example:
  $ penstock crd export --namespace shop > buffers.yaml
`

function also(header: string, headers: readonly string[]): string[] {
  return [...headers, header]
}

async function exportBuffers(on: Session, { project, ...options }: Options): Promise<void> {
  const found = await collect(on.penstock().buffers(project === undefined ? {} : { projectId: project }))
  const resources = made(() => resourcesOf(found, { ...options, plainHeaders: options.plainHeader }))
  const { stdout } = on.streams
  stdout.write(on.json ? `${jsonLine(listOf(resources))}\n` : yamlOf(resources))
  on.note(`${resources.length} ${resources.length === 1 ? 'Buffer' : 'Buffers'}`)
}

/** What `kubectl apply` takes, too. */
function listOf(resources: readonly ExportedResource[]): object {
  return { apiVersion: 'v1', kind: 'List', items: resources.map(({ resource }) => resource) }
}

function made<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof ExportError) throw new Failure(EXIT.usage, error.message, { cause: error })
    throw error
  }
}
