/** Pages of which programs write parts: what stands between `<!-- name -->` and `<!-- /name -->`. */

/** The page with `content` in that place; what stands around it stays. Throws when it has no such place. */
export function withSection(page: string, name: string, content: string): string {
  const { from, to } = placeOf(page, name)
  return `${page.slice(0, from)}\n\n${content}\n\n${page.slice(to)}`
}

export function sectionOf(page: string, name: string): string {
  const { from, to } = placeOf(page, name)
  return page.slice(from, to).trim()
}

function placeOf(page: string, name: string): { from: number; to: number } {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  if (!page.includes(begin) || !page.includes(end)) throw new Error(`the page has no place for ${name}`)
  return { from: page.indexOf(begin) + begin.length, to: page.indexOf(end) }
}
