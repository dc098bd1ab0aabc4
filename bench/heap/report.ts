/** Loaded into the service under measurement (`--import`, with `--expose-gc`): tells what its heap holds when asked. */
declare const gc: () => void

process.on('message', (question: unknown) => {
  if (question !== 'heap') return
  gc()
  // Once more: what weak references and finalisers kept goes with the second one.
  gc()
  process.send!(process.memoryUsage())
})
process.channel?.unref()
