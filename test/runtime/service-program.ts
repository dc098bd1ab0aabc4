/** A process around `runService`, in the scenario that its argument names; it tells on standard output. */
import { runService } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

const scenario = process.argv[2]
const clock = systemClock()

function tell(line: string): void {
  process.stdout.write(`${line}\n`)
}

const log = {
  info: () => {},
  error: (_: object, message: string) => tell(`error: ${message}`),
  fatal: (_: object, message: string) => tell(`fatal: ${message}`),
}

runService(
  clock,
  log,
  (error) => tell(`report: ${(error as Error).message}`),
  async ({ lifecycle }) => {
    await lifecycle.acquire('resource', () => setInterval(() => {}, 1_000), release)
    if (scenario === 'bad start') throw new Error('no port')
    if (scenario === 'uncaught') setImmediate(throwLater)
    tell('started')
  },
)

async function release(): Promise<void> {
  tell('releasing')
  if (scenario === 'bad release') throw new Error('no')
  if (scenario === 'slow release') await new Promise<void>((resolve) => clock.after(300, resolve))
  if (scenario === 'stuck release') {
    clock.after(700, () => tell('insisting is possible'))
    await new Promise(() => {})
  }
  tell('released')
}

function throwLater(): void {
  throw new Error('out of the blue')
}
