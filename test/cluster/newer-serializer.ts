/**
 * Loaded into a node (`--import`): makes it the next version of the program, whose bodies end in `"v":2`. As any
 * version, it also builds what those before it built.
 */
import { registerHooks } from 'node:module'

const NEWER_BODY = `
import { hash } from 'node:crypto'
import * as older from './body.ts?older'
export * from './body.ts?older'

export const SERIALIZER = 2

export function builderOf(serializer) {
  return serializer === SERIALIZER ? buildBody : older.builderOf(serializer)
}

export function buildBody(...batch) {
  const built = older.buildBody(...batch)
  const body = Buffer.concat([built.body.subarray(0, -1), Buffer.from(',"v":2}')])
  return { ...built, body, sha256: hash('sha256', body, 'buffer') }
}
`

registerHooks({
  load(url, context, nextLoad) {
    if (!url.endsWith('/internal/shard/batches/body.ts')) return nextLoad(url, context)
    return { format: 'module', source: NEWER_BODY, shortCircuit: true }
  },
})
