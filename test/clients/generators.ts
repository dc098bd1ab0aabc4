/**
 * Generators of clients in pinned versions (test/clients/generators.sh installs them once). With CI set a missing one is
 * an error, else what needs it is skipped by name.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const SCRIPT = join(import.meta.dirname, 'generators.sh')

/** For a `before` hook: the folder that has it. */
export async function generatorOrSkip(
  context: Mocha.Context,
  language: 'typescript' | 'python',
): Promise<string> {
  try {
    return (await promisify(execFile)(SCRIPT, [language])).stdout.trim()
  } catch (error) {
    const why = String((error as { stderr?: string }).stderr ?? error).trim()
    const missing = `the generator of ${language} clients is missing (${why}); ${SCRIPT} installs it`
    if (process.env.CI) throw new Error(missing, { cause: error })
    process.stderr.write(`\n*** SKIPPED: ${missing}. ***\n\n`)
    return context.skip()
  }
}
