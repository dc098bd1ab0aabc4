/** `npm run packages:types`: writes the types of `packages/client`. The generator is installed once, outside the repository. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatedTypes, TYPES } from './types.ts'

const script = join(import.meta.dirname, '..', '..', 'test', 'clients', 'generators.sh')
const folder = execFileSync(script, ['typescript'], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
})
writeFileSync(TYPES, generatedTypes(folder.trim()))
