/** docs/performance/results.md: what the programs write into it. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { withSection } from '../test/support/sections.ts'

const RESULTS = join(import.meta.dirname, '..', 'docs', 'performance', 'results.md')

/** Between the markers of that name; what stands around them is written by hand. */
export function keep(name: string, markdown: string): void {
  writeFileSync(RESULTS, withSection(readFileSync(RESULTS, 'utf8'), name, markdown))
}

/** Day, code and machine of what is measured next: told before it, for its load is no part of the machine's. */
export function whereNow(): string {
  const load = loadavg()[0]!.toFixed(1)
  const day = new Date().toISOString().slice(0, 10)
  const machine = `${availableParallelism()} cores (${cpus()[0]?.model})`
  return `${day}, ${commit()}, Node ${process.version}, ${machine}, load before ${load}.`
}

/** Of the code that is measured; figures that are written meanwhile are no change of it. */
function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', ':/', ':!*.md', ':!*.json')
  return `commit ${git('rev-parse', '--short', 'HEAD')}${changed === '' ? '' : ' with changes'}`
}
