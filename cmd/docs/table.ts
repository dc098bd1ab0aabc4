/** Markdown: tables, whose cells are one line each, and paragraphs that wrap as the pages do. */

const WIDTH = 120

/** A paragraph in lines of at most 120 characters, unless a word alone is longer. */
export function wrapped(text: string): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!
    if (line !== '' && line.length + 1 + word.length > WIDTH) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join('\n')
}

export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const wrong = rows.find((row) => row.length !== heads.length)
  if (wrong) throw new Error(`a row of ${heads.length} cells has ${wrong.length}: ${wrong.join(' | ')}`)
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}

function line(cells: readonly string[]): string {
  return `| ${cells.map(cell).join(' | ')} |`
}

function cell(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|')
}

/** As code; a text that is code of several values has them separated by commas. */
export function code(...values: readonly (string | number | boolean)[]): string {
  return values.map((value) => `\`${value}\``).join(', ')
}

/** `10,000`, the same on every machine. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 20 })
}
