/** What a page of the project links to, cites, and can be linked at. Pure. */

const FENCE = /^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1\2[ \t]*$/gm
const SPAN = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/g
/** Endings of files that a page may cite by a path from one of several folders. */
const SOURCE = /\.(?:ts|mjs|sql|json|md|sh|yaml|tpl|txt|patch)$/

/** Names of the anchors that GitHub makes of a page's headings, and those that its HTML sets. */
export function anchorsOf(page: string): Set<string> {
  const text = page.replace(FENCE, '')
  const anchors = new Set<string>()
  const counts = new Map<string, number>()
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.*?)(?: +#+)?$/gm)) {
    const name = slugOf(heading)
    const count = counts.get(name) ?? 0
    counts.set(name, count + 1)
    anchors.add(count === 0 ? name : `${name}-${count}`)
  }
  for (const [, name = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(name)
  return anchors
}

/** Of the text as it is read: links are their texts, and code has no marks. */
export function slugOf(heading: string): string {
  return heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .trim()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Targets of a page's links within the repository, `path`, `path#anchor` or `#anchor`, as they are written. */
export function linksOf(page: string): string[] {
  const text = page.replace(FENCE, '').replace(SPAN, '')
  const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
  const references = [...text.matchAll(/^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?/gm)]
  return [...inline, ...references]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/i.test(target))
}

/**
 * What a page names in code font that looks like a file or folder of the repository: a path below one of the
 * `folders` of its root, or a path to, or the bare name of, a source file. May hold `*` and `{a,b}`.
 */
export function citationsOf(page: string, folders: readonly string[]): string[] {
  const text = page.replace(FENCE, '')
  const spans = [...text.matchAll(SPAN)].map(([, , code = '']) => code.trim().replace(/:\d+$/, ''))
  return [...new Set(spans.filter((code) => looksCited(code, folders)))]
}

function looksCited(code: string, folders: readonly string[]): boolean {
  if (!/^[\w.@*{},+-]+(?:\/[\w.@*{},+-]+)*\/?$/.test(code)) return false
  if (!code.includes('/')) return /^[\w-]+(?:\.test)?\.(?:ts|sql)$/.test(code)
  return folders.includes(code.split('/')[0]!) || SOURCE.test(code)
}

/** Pages that a source file names by their paths, each with the heading that it names there, if it names one. */
export function pagesNamedIn(source: string): { page: string; heading?: string }[] {
  const text = source.replace(/\n\s*(?:\*|\/\/|--|#)? */g, ' ')
  const named = [
    ...text.matchAll(
      /(?:"([^"\n]{1,80})" in )?\b((?:docs|bench|charts|internal|operator|test)\/[\w./-]*\.md)\b(?:, "([^"\n]{1,80})")?/g,
    ),
  ]
  return named.map(([, before, page = '', after]) => {
    const heading = before ?? after
    return { page, ...(heading !== undefined && { heading }) }
  })
}

/**
 * The sentences of a page's paragraphs, lists and cells, in their order. Code is empty and links are their texts, so
 * that neither ends a sentence. Headings, fences and comments are none. A `; ` of a cell parts entries of a list.
 */
export function sentencesOf(page: string): string[] {
  const text = page
    .replace(FENCE, '\n')
    .replace(/<!--.*?-->/gs, '\n')
    .replace(/^#+ .*$/gm, '\n')
    .replace(/^\|(?:-+\|)+$/gm, '')
    .replace(SPAN, '``')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
  const blocks = text.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|(?<=\|)\n/)
  return blocks.flatMap((block) => {
    const cells = block.trimStart().startsWith('|') ? block.split(/(?<!\\)\||; /) : [block]
    return cells.flatMap((cell) => {
      const plain = cell
        .replace(/^\s*(?:[-*]|\d+\.) /, '')
        .replace(/\s+/g, ' ')
        .trim()
      return plain.split(/(?<=[.?!]['"”)*]*) (?=[\p{Lu}`"“(*[])/u).filter((sentence) => sentence !== '')
    })
  })
}
