/** Circles of imports: files that reach each other. Types count too: whoever reads one of them has to read them all. */
import type { Source } from './sources.ts'

/** One line a circle, its files in order; none where every file can be read after what it imports. */
export function circlesOf(sources: readonly Source[]): string[] {
  return components(new Map(sources.map(({ path, imports }) => [path, imports])))
    .filter((files) => files.length > 1)
    .map((files) => files.sort().join(' ⇄ '))
    .sort()
}

/** Strongly connected components (Tarjan, 1972). */
function components(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.get(file)!)
    stack.push(file)
    for (const target of imports.get(file) ?? []) {
      if (!imports.has(target)) continue
      if (!order.has(target)) visit(target)
      // What has left the stack belongs to a component that is complete.
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!))
    }
    if (lowest.get(file) === order.get(file)) found.push(stack.splice(stack.indexOf(file)))
  }
  for (const file of imports.keys()) if (!order.has(file)) visit(file)
  return found
}
