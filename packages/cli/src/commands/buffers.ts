/** `buffers ls|get|create|update|rm`. */
import { must, type Schemas } from '@penstock-local/client'
import type { Command } from 'commander'
import { collect } from '../collect.ts'
import { readObject } from '../input.ts'
import { jsonText, printable, table } from '../output.ts'
import type { Session } from '../session.ts'

const PATH = '/v1/admin/buffers/{bufferId}'

export function addBufferCommands(program: Command, session: (command: Command) => Session): void {
  const buffers = program
    .command('buffers')
    .description('the buffers of the account')
    .addHelpText('after', HELP)
  addReading(buffers, session)
  addWriting(buffers, session)
}

const HELP = `
Examples:
  $ penstock buffers ls --project shop
  $ penstock buffers create orders.json
  $ echo '{"enabled":true}' | penstock buffers update orders -
  $ penstock buffers rm orders
`

function addReading(buffers: Command, session: (command: Command) => Session): void {
  buffers
    .command('ls')
    .description('list them')
    .option('--project <id>', 'only those of this project')
    .action(async ({ project }: { project?: string }, command: Command) => {
      const on = session(command)
      const found = await collect(on.penstock().buffers(project === undefined ? {} : { projectId: project }))
      on.print(found, list(found))
    })
  buffers
    .command('get')
    .description('show one, as JSON')
    .argument('<buffer>')
    .action(async (bufferId: string, _options, command: Command) => {
      const on = session(command)
      const params = { path: { bufferId } }
      printBuffer(on, must(`buffer ${bufferId}`, await on.penstock().api.GET(PATH, { params })))
    })
}

function addWriting(buffers: Command, session: (command: Command) => Session): void {
  buffers
    .command('create')
    .description('make one of a JSON file')
    .argument('<file>', 'a JSON file, or - for stdin')
    .action(async (file: string, _options, command: Command) => {
      const on = session(command)
      const body = (await readObject(file, on.streams)) as unknown as Schemas['BufferInput']
      printBuffer(on, must(file, await on.penstock().api.POST('/v1/admin/buffers', { body })))
    })
  buffers
    .command('update')
    .description('change the fields that a JSON file names')
    .argument('<buffer>')
    .argument('<file>', 'a JSON file, or - for stdin')
    .action(async (bufferId: string, file: string, _options, command: Command) => {
      const on = session(command)
      const body = (await readObject(file, on.streams)) as Schemas['BufferPatch']
      const params = { path: { bufferId } }
      printBuffer(on, must(`buffer ${bufferId}`, await on.penstock().api.PATCH(PATH, { params, body })))
    })
  buffers
    .command('rm')
    .description('delete one; what it still holds is delivered, or discarded when it is disabled')
    .argument('<buffer>')
    .action(async (bufferId: string, _options, command: Command) => {
      const on = session(command)
      const params = { path: { bufferId } }
      must(`buffer ${bufferId}`, await on.penstock().api.DELETE(PATH, { params }))
      on.print({ bufferId, deleted: true }, printable(`deleted ${bufferId}`))
    })
}

function printBuffer(on: Session, buffer: Schemas['Buffer']): void {
  on.print(buffer, jsonText(buffer))
}

function list(found: readonly Schemas['Buffer'][]): string {
  const rows = found.map(({ bufferId, projectId, enabled, delivery }) => [
    bufferId,
    projectId,
    enabled ? 'enabled' : 'disabled',
    delivery.url,
  ])
  return table(['BUFFER', 'PROJECT', 'STATE', 'DESTINATION'], rows)
}
