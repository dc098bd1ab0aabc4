/**
 * The simulation over the real core with one of its rules left out: every module is loaded anew, one of them with
 * another text.
 */
import { registerHooks } from 'node:module'
import { type Mutant, mutated } from '../mutate.ts'
import { MUTANTS } from './mutants.ts'

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
    return mutant ? mutated(url, loaded, mutant) : loaded
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
