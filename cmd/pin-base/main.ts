/**
 * `npm run pin-base`: writes into the Dockerfile, by digest, what the tag of its base names now
 * (docs/operations/release.md, "Pin the base"). `-- --check` changes nothing, and fails while a base has no digest.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { basesOf, isPinned, pinned, tagOf } from './dockerfile.ts'
import { digestOf } from './registry.ts'

const DOCKER_HUB = 'https://registry-1.docker.io'
/** Where official images stand. */
const OFFICIAL = 'library'

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    file: { type: 'string', default: 'Dockerfile' },
    registry: { type: 'string', default: DOCKER_HUB },
  },
})
const { check, file, registry } = values
const dockerfile = readFileSync(file, 'utf8')

try {
  if (check) refuseUnpinned()
  else await pin()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}

function refuseUnpinned(): void {
  const loose = basesOf(dockerfile).filter((base) => !isPinned(base))
  if (loose.length > 0) throw new Error(`${file}: ${loose.join(', ')}: no digest; npm run pin-base writes it`)
}

async function pin(): Promise<void> {
  let text = dockerfile
  for (const tag of new Set(basesOf(dockerfile).map(tagOf))) {
    const [name = '', version = ''] = tag.split(':')
    const digest = await digestOf(registry, `${OFFICIAL}/${name}`, version)
    text = pinned(text, tag, digest)
    process.stdout.write(`${tag}@${digest}\n`)
  }
  writeFileSync(file, text)
}
