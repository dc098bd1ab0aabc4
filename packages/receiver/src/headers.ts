/** Headers as Node, Koa and Express have them, or as `fetch` has them. */
export type HeadersLike = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/** The value of a header, whatever the case of its name; undefined when it is absent or was sent more than once. */
export function headerOf(headers: HeadersLike, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const wanted = name.toLowerCase()
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === wanted && value !== undefined ? value : [],
  )
  return values.length === 1 ? values[0] : undefined
}
