// Made by npm run crd from operator/export/yaml.ts. Change that one.
/** Resources as YAML that every reader takes for the same: strings are quoted unless nothing else can be read in them. */
import type { ExportedResource } from './resources.ts'

const PLAIN = /^[A-Za-z$/][A-Za-z0-9_./$-]*$/
/** What YAML 1.1 reads as something else than text. */
const WORDS = /^(y|n|yes|no|on|off|true|false|null)$/i
/** YAML shows no controls, and people see no marks of direction. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cn}]|(?! )\p{Zs}/gu

/** A stream of documents; empty for none. */
export function yamlOf(resources: readonly ExportedResource[]): string {
  return resources.map(documentOf).join('')
}

function documentOf({ resource, notes }: ExportedResource): string {
  const comments = notes.map((note) => `# ${note}\n`)
  return `---\n${comments.join('')}${mapOf(resource, '')}`
}

function mapOf(map: object, indent: string): string {
  return Object.entries(map)
    .map(([key, value]) => `${indent}${scalarOf(key)}:${memberOf(value, indent)}`)
    .join('')
}

function memberOf(value: unknown, indent: string): string {
  if (Array.isArray(value)) return value.length === 0 ? ' []\n' : `\n${listOf(value, `${indent}  `)}`
  if (typeof value !== 'object' || value === null) return ` ${scalarOf(value)}\n`
  return Object.keys(value).length === 0 ? ' {}\n' : `\n${mapOf(value, `${indent}  `)}`
}

/** Of maps, which is all that resources hold. */
function listOf(items: readonly object[], indent: string): string {
  return items.map((item) => `${indent}- ${mapOf(item, `${indent}  `).trimStart()}`).join('')
}

function scalarOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  if (PLAIN.test(value) && !WORDS.test(value)) return value
  return JSON.stringify(value).replace(UNSEEN, escaped)
}

function escaped(char: string): string {
  return `\\U${char.codePointAt(0)!.toString(16).padStart(8, '0')}`
}
