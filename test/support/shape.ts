/**
 * The two shapes of `npm start` (docs/architecture/protocol.md, "The local instance"): all in one process, as it is below
 * four cores, or spread over several, as it is from four on. What a user sees is the same; `test/run.ts` runs the tests
 * that look from outside in both.
 */

/** Two that take requests, and two that run shards. */
const PROCESSES = 4

/** Set by whoever wants a run in the shape of several processes. */
export const SHAPE_VARIABLE = 'TEST_SHAPE'
export const SEVERAL = 'several'

/** Whether the services of this run are spread over several processes. */
export const inSeveralProcesses = process.env[SHAPE_VARIABLE] === SEVERAL

/** Said to every `npm start` of the run, however many cores the machine has. */
export const shapeSettings: Readonly<Record<string, string>> = {
  PENSTOCK_PROCESSES: String(inSeveralProcesses ? PROCESSES : 1),
}

/** Processes of a service of the run that take requests. */
export const FRONTS = inSeveralProcesses ? PROCESSES / 2 : 1

/** Shards of a service of the run: one at least for each process that runs some. */
export const SHARDS = inSeveralProcesses ? 4 : 2
