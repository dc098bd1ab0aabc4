/**
 * A Markdown table of a chart's values: a row a value, with its default as it is written and the text of the comment
 * that begins with `--` above it; a row a section, with such a text or else whatever comment stands right above.
 */
import { isCollection, isMap, isScalar, type Node, type Pair, parseDocument, type YAMLMap } from 'yaml'

interface Row {
  readonly path: string
  readonly fallback: string
  readonly meaning: string
}

export function valuesTable(text: string): string {
  const { contents } = parseDocument(text)
  if (!isMap(contents)) throw new Error('values must be a map')
  const rows = rowsOf(contents, text, '')
  const lines = rows.map(({ path, fallback, meaning }) => `| \`${path}\` | ${fallback} | ${meaning} |`)
  return `| value | default | meaning |\n|---|---|---|\n${lines.join('\n')}\n`
}

function rowsOf(map: YAMLMap, text: string, prefix: string): Row[] {
  return map.items.flatMap((pair, index) => {
    // Above its first key the parser takes it for a comment of the map, unless that is the whole document.
    const comment = keyOf(pair).commentBefore ?? (index === 0 ? map.commentBefore : undefined)
    const path = `${prefix}${String(keyOf(pair))}`
    const value = pair.value as Node
    if (!isMap(value) || value.flow)
      return [{ path, fallback: written(value, text), meaning: saidOf(comment) }]
    const section = { path, fallback: '', meaning: sectionOf(comment) }
    return [...(section.meaning === '' ? [] : [section]), ...rowsOf(value, text, `${path}.`)]
  })
}

function keyOf(pair: Pair): Node {
  return pair.key as Node
}

/** What stands before an empty line is of more than the one section. */
function sectionOf(comment: string | null | undefined): string {
  return saidOf(comment) || cell(comment?.split('\n\n').at(-1)?.trim() ?? '')
}

function saidOf(comment: string | null | undefined): string {
  const line = comment?.split('\n').findLast((each) => each.startsWith(' -- '))
  return cell(line?.slice(4) ?? '')
}

function written(value: Node, text: string): string {
  if (isScalar(value) && value.value === '') return ''
  if (!isScalar(value) && !isCollection(value)) throw new Error('a value has no default')
  const [from, to] = value.range!
  return `\`${cell(text.slice(from, to).trim())}\``
}

function cell(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|')
}
