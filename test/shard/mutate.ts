/** The real core with one of its rules left out, by other texts in one module. So the product has no switches for tests. */
import { fileURLToPath } from 'node:url'

const CORE = new URL('../../internal/', import.meta.url)

export interface Mutant {
  readonly name: string
  /** What is left out. */
  readonly rule: string
  /** Below `internal/`. */
  readonly file: string
  /** Texts that stand there exactly once, and what stands there instead. */
  readonly edits: readonly (readonly [from: string, to: string])[]
}

/** What a load hook got, as it is without the rule. */
export function mutated<Loaded extends { source?: unknown }>(
  url: string,
  loaded: Loaded,
  mutant: Mutant,
): Loaded {
  if (!loaded.source || !url.startsWith('file:')) return loaded
  if (fileURLToPath(url) !== fileURLToPath(new URL(mutant.file, CORE))) return loaded
  const { source } = loaded
  const text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString()
  return { ...loaded, source: mutate(text, mutant) }
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
