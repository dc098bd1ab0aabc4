/**
 * `node bench/peers/main.ts [--rounds n] [--ms n] <part>…`: parts of the comparison, onto the terminal; a part is one of
 * those of `peers.ts`, or any cell (`cells.ts`). `--keep <part>…`: those of the page, into it, as they are measured there.
 */
import { parseArgs } from 'node:util'
import { killServers, stopServers } from '../../test/support/servers.ts'
import { ALL, keepMeasured, measurePart, PARTS, ROUNDS } from '../peers.ts'
import { cellOf } from './cells.ts'
import { tableOfGoals } from './goals.ts'
import { Tools } from './tools.ts'

process.setMaxListeners(100)
process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const { values, positionals } = parseArgs({
  options: { rounds: { type: 'string' }, ms: { type: 'string' }, keep: { type: 'boolean' } },
  allowPositionals: true,
})
const isKnown = (name: string) =>
  values.keep ? ALL.includes(name) : cellOf(name) !== undefined || name in PARTS
const unknown = positionals.find((name) => !isKnown(name))
const unkept = values.keep && (values.rounds !== undefined || values.ms !== undefined)
if (unkept || unknown !== undefined || positionals.length === 0) {
  process.stderr.write(
    unkept
      ? '--keep: with the rounds and times of the page, no others\n'
      : `${unknown ?? 'nothing'}: no such part; there are cells and ${Object.keys(PARTS).join(', ')}\n`,
  )
  process.exit(2)
}
const [rounds, ms] = [
  Number(values.rounds ?? ROUNDS),
  values.ms === undefined ? undefined : Number(values.ms),
]
const tools = new Tools()
for (const name of positionals) {
  if (values.keep) {
    await keepMeasured(name, tools)
    continue
  }
  const { text, goals } = await measurePart(name, rounds, tools, ms)
  process.stdout.write(`${text}\n\n${tableOfGoals(goals)}\n\n`)
}
await stopServers()
// Programs of a part that failed half-way are there still; they end with this one.
process.exit()
