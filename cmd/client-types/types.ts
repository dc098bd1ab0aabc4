/** The types of the client, made of the OpenAPI document by openapi-typescript. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')
export const DOCUMENT = join(ROOT, 'api', 'openapi.json')
export const TYPES = join(ROOT, 'packages', 'client', 'src', 'api.ts')
const MAX_BYTES = 64_000_000

/** The first line of the types: a checkout without the generator can still tell that they are stale. */
export function headOf(document: Uint8Array): string {
  const digest = createHash('sha256').update(document).digest('hex')
  return `// Made of api/openapi.json with SHA-256 ${digest}: npm run packages:types\n`
}

/** `folder`: has openapi-typescript in its node_modules. Throws when that fails. */
export function generatedTypes(folder: string): string {
  const program = join(folder, 'node_modules', 'openapi-typescript', 'bin', 'cli.js')
  const types = execFileSync(process.execPath, [program, DOCUMENT], {
    encoding: 'utf8',
    maxBuffer: MAX_BYTES,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return headOf(readFileSync(DOCUMENT)) + types
}
