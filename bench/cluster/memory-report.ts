/** Loaded into a node under measurement: on a signal it collects its garbage and tells what it holds, as a log line. */
declare const gc: (() => void) | undefined

/** `msg` of the line; its members are those of `process.memoryUsage()`, bytes. */
export const MEMORY_EVENT = 'memory'
export const REPORT_SIGNAL = 'SIGUSR2'
/** NODE_OPTIONS of a node that does so. */
export const REPORT_OPTIONS = `--expose-gc --import ${import.meta.filename}`

// The one who asks reads the names above from the same file.
if (typeof gc === 'function') {
  const collect = gc
  process.on(REPORT_SIGNAL, () => {
    collect()
    // Once more: what weak references and finalisers kept goes with the second one.
    collect()
    process.stdout.write(`${JSON.stringify({ msg: MEMORY_EVENT, ...process.memoryUsage() })}\n`)
  })
}
