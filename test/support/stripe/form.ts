/** Bodies and queries as Stripe takes them: forms whose names nest by brackets, `items[0][price]=…`. */

export type Form = { [name: string]: string | Form }

export function parseForm(encoded: string): Form {
  const form: Form = {}
  for (const [name, value] of new URLSearchParams(encoded)) {
    const path = name.replaceAll(']', '').split('[')
    let place = form
    for (const part of path.slice(0, -1)) {
      place[part] = inner(place, part)
      place = place[part] as Form
    }
    // `expand[]=a&expand[]=b`: the members of such an array have no index of their own.
    place[path.at(-1) || `${Object.keys(place).length}`] = value
  }
  return form
}

/** A nested form; empty where there is none. */
export function inner(form: Form, name: string): Form {
  const value = form[name]
  return typeof value === 'object' ? value : {}
}

/** An array, in order. */
export function texts(form: Form, name: string): string[] {
  return Object.values(inner(form, name)).filter((value) => typeof value === 'string')
}

export function text(form: Form, name: string): string | undefined {
  const value = form[name]
  return typeof value === 'string' ? value : undefined
}

export function metadataIn(form: Form): Record<string, string> {
  const entries = Object.entries(inner(form, 'metadata'))
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
