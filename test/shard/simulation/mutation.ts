/**
 * The simulation over the real core with one of its rules left out: every module is loaded anew, one of them with
 * another text. So the product has no switches for tests.
 */
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { MUTANTS, type Mutant } from './mutants.ts'

const CORE = new URL('../../../internal/', import.meta.url)
const MARK = 'mutant'

const hooks = registerHooks({
  /** What a marked module imports is marked too: no instance of a module is shared with the whole core. */
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const mutant = context.parentURL && new URL(context.parentURL).searchParams.get(MARK)
    if (!mutant || !found.url.startsWith('file:') || found.url.includes('/node_modules/')) return found
    return { ...found, url: `${found.url}?${MARK}=${mutant}` }
  },
  load(url, context, next) {
    const loaded = next(url, context)
    const mutant = MUTANTS.find(({ name }) => url.endsWith(`?${MARK}=${name}`))
    if (!mutant || !loaded.source || !isMutated(url, mutant)) return loaded
    const text =
      typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString()
    return { ...loaded, source: mutate(text, mutant) }
  },
})

/** The runs of a core without the rule. Rejects when the text that the mutant replaces is not there. */
export async function loadMutated({ name }: Mutant): Promise<typeof import('./run.ts')> {
  return (await import(`./run.ts?${MARK}=${name}`)) as typeof import('./run.ts')
}

/** Modules are loaded as they are again. */
export function endMutation(): void {
  hooks.deregister()
}

function isMutated(url: string, { file }: Mutant): boolean {
  return fileURLToPath(url) === fileURLToPath(new URL(file, CORE))
}

/** @throws when one of its texts is not there exactly once: then the mutant proves nothing any more. */
export function mutate(source: string, { name, file, edits }: Mutant): string {
  let text = source
  for (const [from, to] of edits) {
    const places = text.split(from).length - 1
    if (places !== 1) throw new Error(`mutant ${name}: ${places} places in ${file} for: ${from}`)
    text = text.replace(from, () => to)
  }
  return text
}
