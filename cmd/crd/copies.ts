/** What the command line holds a second time: its package imports nothing of the service, and has the same export. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GeneratedFile } from '../chart/generated.ts'

const root = join(import.meta.dirname, '..', '..')

/** Each file of `operator/export` as `packages/cli` has it. */
export function copies(): GeneratedFile[] {
  return readdirSync(join(root, 'operator', 'export')).map((name) => {
    const source = readFileSync(join(root, 'operator', 'export', name), 'utf8')
    return {
      path: join(root, 'packages', 'cli', 'src', 'export', name),
      content: `// Made by npm run crd from operator/export/${name}. Change that one.\n${source}`,
    }
  })
}
