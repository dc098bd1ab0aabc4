/** `npm run crd -- export`: out of the database of an installation, or over its API. */
import { parseArgs } from 'node:util'
import { ServiceError } from '../../internal/domain/errors.ts'
import { ExportError, type ExportedBuffer, type ExportOptions } from '../../operator/export/buffer.ts'
import { DEFAULT_CREDENTIALS_SECRET } from '../../operator/export/options.ts'
import { resourcesOf } from '../../operator/export/resources.ts'
import { yamlOf } from '../../operator/export/yaml.ts'
import { remoteBuffers, type Selection } from './remote-buffers.ts'
import { storedBuffers } from './stored-buffers.ts'

export const USAGE = `usage: npm run crd
       npm run --silent crd -- export --customer <id> [--project <id>] [--namespace <name>]
         [--credentials-secret <name>] [--plain-header <name>]...
With PENSTOCK_URL and PENSTOCK_API_KEY it asks the service, and needs no --customer.`

interface Wanted {
  readonly selection: Selection
  readonly options: ExportOptions
}

/** Prints them; the exit code. */
export async function exportBuffers(args: string[]): Promise<number> {
  const wanted = wantedOf(args)
  if (wanted === undefined) return refuse(USAGE, 2)
  try {
    const resources = resourcesOf(await buffersOf(wanted.selection), wanted.options)
    process.stdout.write(yamlOf(resources))
    process.stderr.write(`${resources.length} ${resources.length === 1 ? 'Buffer' : 'Buffers'}\n`)
    return 0
  } catch (error) {
    const text = error instanceof ServiceError ? error.body.error : (error as Error).message
    return refuse(text, error instanceof ExportError ? 2 : 1)
  }
}

function wantedOf(args: string[]): Wanted | undefined {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({
      args,
      options: {
        customer: text,
        project: text,
        namespace: text,
        'credentials-secret': { ...text, default: DEFAULT_CREDENTIALS_SECRET },
        'plain-header': { ...text, multiple: true, default: [] },
      },
    })
    const { namespace, customer: customerId, project: projectId } = values
    const options: ExportOptions = {
      ...(namespace !== undefined && { namespace }),
      credentialsSecret: values['credentials-secret'],
      plainHeaders: values['plain-header'],
    }
    return { selection: { customerId, projectId }, options }
  } catch {
    return undefined
  }
}

async function buffersOf(selection: Selection): Promise<ExportedBuffer[]> {
  const { PENSTOCK_URL: url, PENSTOCK_API_KEY: apiKey } = process.env
  if (url && apiKey) return remoteBuffers({ url, apiKey }, selection)
  if (url || apiKey) throw new ExportError('set both PENSTOCK_URL and PENSTOCK_API_KEY, or none of them')
  const { customerId, projectId } = selection
  if (customerId === undefined)
    throw new ExportError('--customer is required without PENSTOCK_URL and PENSTOCK_API_KEY')
  return storedBuffers(customerId, projectId)
}

function refuse(text: string, exitCode: number): number {
  process.stderr.write(`${text}\n`)
  return exitCode
}
