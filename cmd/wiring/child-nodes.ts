/** What a program tells the nodes that it starts as its children. */

/** Of a command line: somebody watches what the node does (`Node.watched`). */
export const WATCHED = '--watched'

/** The caller's own variables, but for what the program decides. */
export function settingsOfChildren(own: Readonly<Record<string, string>>): Record<string, string> {
  const given = Object.entries(process.env).filter(
    (pair): pair is [string, string] => pair[0].startsWith('PENSTOCK_') && Boolean(pair[1]),
  )
  return { ...Object.fromEntries(given), ...own }
}
