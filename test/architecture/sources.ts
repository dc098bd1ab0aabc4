/** Reads TypeScript sources as the rules of the layout see them: what each imports, and its code without comments. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

export interface Source {
  /** Relative to the root, such as `internal/group/machine.ts`. */
  path: string
  /** Text with comments blanked; line numbers stay. */
  code: string
  /** Relative imports as paths from the root, others as written (`node:fs`, `nats`). Types count too. */
  imports: string[]
}

/** All `.ts` files below the folders of `root`. Throws when there are none: a check of nothing is no check. */
export function readSources(root: string, folders: readonly string[]): Source[] {
  const paths = folders.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
  if (paths.length === 0) throw new Error(`no sources below ${root}`)
  return paths.sort().map((path) => readSource(root, path))
}

function readSource(root: string, path: string): Source {
  const code = withoutComments(readFileSync(join(root, path), 'utf8'))
  return { path, code, imports: specifiers(code).map((specifier) => resolved(path, specifier)) }
}

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\1/g

function specifiers(code: string): string[] {
  return [...code.matchAll(IMPORT)].map((match) => match[2]!)
}

function resolved(path: string, specifier: string): string {
  return specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier
}

/** Strings are kept as they are: a `//` in one is no comment. */
const COMMENT_OR_STRING =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

function withoutComments(text: string): string {
  return text.replace(COMMENT_OR_STRING, (found) =>
    found.startsWith('/') ? found.replace(/[^\n]/g, ' ') : found,
  )
}
