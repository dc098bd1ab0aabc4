/** The program `penstock`. */
import process from 'node:process'
import { run } from './program.ts'

// Whoever reads the output, such as `head`, may have enough of it.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1))

const { stdin, stdout, stderr, env } = process
process.exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env })
// A command may end before whoever writes to it does; an open pipe would hold the program.
stdin.destroy()
