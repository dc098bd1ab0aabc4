/** The program `penstock`. */
import process from 'node:process'
import { EXIT } from './exit.ts'
import { run } from './program.ts'

const { stdin, stdout, stderr, env } = process
// Whoever reads the output, such as `head`, may have enough of it. What a command does goes on, such as sending.
let unwritten: string | undefined
stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') unwritten ??= code ?? message
})
stderr.on('error', () => {})

process.exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env })
if (unwritten !== undefined) {
  stderr.write(`penstock: cannot write the output: ${unwritten}\n`)
  process.exitCode ||= EXIT.refused
}
// A command may end before whoever writes to it does; an open pipe would hold the program.
stdin.destroy()
