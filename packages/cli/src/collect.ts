/** All that an iterator brings, at most `most`; Node 20 has no `Array.fromAsync`. */
export async function collect<T>(items: AsyncIterable<T>, most = Number.POSITIVE_INFINITY): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) {
    all.push(item)
    if (all.length >= most) break
  }
  return all
}
