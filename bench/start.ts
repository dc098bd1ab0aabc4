/** From `npm start` to ready: on an empty data folder, and again on the same one. */
import { join } from 'node:path'
import { startService, untilHealthy } from '../test/support/service.ts'
import { tempFolder } from '../test/support/temp-folders.ts'
import { spread, table } from './figures.ts'
import { tableOfGoals } from './peers/goals.ts'

export async function measureStarts(rounds: number): Promise<string> {
  const cold: number[] = []
  const warm: number[] = []
  for (let round = 0; round < rounds; round++) {
    const dataDir = join(tempFolder('bench'), 'data')
    cold.push(await startOnce(dataDir))
    warm.push(await startOnce(dataDir))
  }
  const row = (name: string, ms: number[]) => [name, String(ms.length), spread(ms, 0)]
  const starts = table(
    ['data folder', 'starts', 'ms to ready'],
    [row('empty', cold), row('of a clean stop', warm)],
  )
  return `${starts}\n\n${tableOfGoals([{ figure: 'warm start, ms to ready', bound: ['≤', 3_000], values: warm }])}`
}

/** Ms from the spawn of npm to the first 200 of `/health`. */
async function startOnce(dataDir: string): Promise<number> {
  const began = performance.now()
  const service = await startService({ dataDir, npm: true })
  await untilHealthy(service)
  const ms = performance.now() - began
  service.child.kill('SIGTERM')
  await service.exited()
  return ms
}
