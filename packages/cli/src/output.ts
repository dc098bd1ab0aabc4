/** What a command writes: lines for people, or JSON for programs. */

/** Payloads and errors come from strangers: what steers a terminal is shown as `\u001b`, and does nothing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
const STEERING = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export function printable(text: string): string {
  return text.replace(STEERING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** One line, safe to show; still the same JSON. */
export function jsonLine(value: unknown): string {
  return printable(JSON.stringify(value))
}

/** Indented JSON, safe to show. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2).split('\n').map(printable).join('\n')
}

/** Columns as wide as their widest cell; the last one ends where it ends. */
export function table(heads: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [heads, ...rows].map((row) => row.map((cell) => printable(String(cell))))
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
