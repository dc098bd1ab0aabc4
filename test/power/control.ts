/**
 * Whether a cut is one. Without this the suite could cut nothing and hold: a machine writes files with and without a sync,
 * loses its power, and tells after its next start which of them are there.
 */
import { eventually } from '../support/eventually.ts'
import { seededFractions } from '../support/seeded.ts'
import type { Cache } from './disk.ts'
import { type Guest, RootFolder } from './guest.ts'
import { Machine } from './machine.ts'

const START_MS = 300_000
const BLOCKS = 200
/**
 * Of a file that was not synced the name may be there: the kernel writes names every 5 s, and bytes every 30 s. The last file is written past the cache of the kernel: it stands in the cache of the disk, and no flush follows it. Its
 * place on the disk was taken, and synced, before.
 */
const START = `
b=/bin/busybox
if [ -e /synced ]; then
  echo "file with a sync: $($b cat /synced)"
  echo "file without one: $($b cat /unsynced 2> /dev/null)"
  echo "marks $($b tr -dc M < /direct | $b wc -c)"
  echo TOLD
else
  $b dd if=/dev/zero of=/direct bs=4096 count=${BLOCKS} 2> /dev/null
  $b sync
  echo here > /synced
  $b sync /synced
  $b tr '\\0' M < /direct | $b dd of=/direct bs=4096 iflag=fullblock oflag=direct conv=notrunc 2> /dev/null
  echo here > /unsynced
  echo WRITTEN
fi
$b sleep 100000`

/** What the machine found after the cut. */
export interface Found {
  readonly synced: boolean
  readonly unsynced: boolean
  /** Of the file past the kernel's cache, how much holds what was written last, 0 to 1. */
  readonly direct: number
  /** In its own words. */
  readonly told: string
}

/** Rejects when a cut takes too little or too much. */
export async function checkPowerIsCut(guest: Guest, seed: number): Promise<Record<Cache, Found>> {
  const [whole, torn] = await Promise.all([
    foundAfterCut(guest, 'whole', seed),
    foundAfterCut(guest, 'torn', seed),
  ])
  for (const { synced, unsynced, told } of [whole, torn]) {
    if (!synced) throw new Error(`a file that was synced is gone:\n${told}`)
    if (unsynced) throw new Error('a file that was not synced is there: the cut takes nothing')
  }
  if (whole.direct !== 1) throw new Error(`what the disk was given is gone: ${whole.direct} is left`)
  if (torn.direct === 1) throw new Error('what was not flushed is there as a whole: nothing is torn')
  return { whole, torn }
}

async function foundAfterCut(guest: Guest, cache: Cache, seed: number): Promise<Found> {
  const image = await new RootFolder('control', START).image(32)
  const options = { name: 'control', guest, image, cache, writesSoon: false, memoryMb: 128, ports: [] }
  const machine = await Machine.open(options)
  try {
    await startUntil(machine, 'WRITTEN')
    await machine.cut(seededFractions(seed))
    await startUntil(machine, 'TOLD')
    return foundIn(machine.output)
  } finally {
    await machine.close()
  }
}

async function startUntil(machine: Machine, word: string): Promise<void> {
  machine.start()
  await eventually(() => machine.output.includes(word) || !machine.running, { timeoutMs: START_MS })
  if (!machine.running) throw new Error(`the machine ended by itself:\n${machine.output.slice(-2_000)}`)
}

/** The last line before the cut may lack its end, and the first one after it then stands behind it. */
function foundIn(output: string): Found {
  const marks = Number(/marks (\d+)/.exec(output)?.[1])
  return {
    synced: output.includes('file with a sync: here'),
    unsynced: output.includes('file without one: here'),
    direct: marks / (BLOCKS * 4_096),
    told: output.slice(-2_000),
  }
}
