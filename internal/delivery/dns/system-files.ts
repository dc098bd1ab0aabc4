/**
 * What the machine's files say of names. Each question looks whether its file is still the same, and reads it again
 * when it is not. Reading is synchronous: it takes microseconds, and the asynchronous way leads through the thread pool,
 * where lookups of others may hang.
 */
import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { isScarcity } from '../../runtime/scarcity.ts'
import { parseHosts } from './hosts-file.ts'
import { parseResolvConf, type ResolvConf } from './resolv-conf.ts'

export interface SystemFilePaths {
  hosts: string
  resolvConf: string
}

const DEFAULT_PATHS: SystemFilePaths = { hosts: '/etc/hosts', resolvConf: '/etc/resolv.conf' }
/** RFC 6761: of these and all names below them, whatever a name server would say. */
const SPECIAL: ReadonlyMap<string, readonly string[]> = new Map([
  ['localhost', ['127.0.0.1', '::1']],
  ['invalid', []],
])

export class SystemFiles {
  readonly #hosts: ParsedFile<Map<string, string[]>>
  readonly #resolvConf: ParsedFile<ResolvConf>

  constructor(paths: SystemFilePaths = DEFAULT_PATHS) {
    this.#hosts = new ParsedFile(paths.hosts, parseHosts)
    this.#resolvConf = new ParsedFile(paths.resolvConf, (text) => parseResolvConf(text, hostname()))
  }

  /** The addresses of a name, in lower case, that no server is asked for, maybe none; undefined for all others. */
  addressesOf(name: string): readonly string[] | undefined {
    const [, special = ''] = /(?:^|\.)(localhost|invalid)\.?$/.exec(name) ?? []
    return this.#hosts.value.get(name) ?? SPECIAL.get(special)
  }

  get resolvConf(): ResolvConf {
    return this.#resolvConf.value
  }
}

/** A file that is missing or closed counts as empty. One that cannot be read for want of ours is read again later. */
class ParsedFile<T> {
  readonly #path: string
  readonly #parse: (text: string) => T
  #version: string | undefined
  #value: T

  constructor(path: string, parse: (text: string) => T) {
    this.#path = path
    this.#parse = parse
    this.#value = parse('')
  }

  get value(): T {
    const version = versionOf(this.#path)
    if (version === this.#version) return this.#value
    const text = textOf(this.#path)
    if (text === undefined) return this.#value
    this.#version = version
    this.#value = this.#parse(text)
    return this.#value
  }
}

/** Another one after a write, and after a rename over it. */
function versionOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : ''
}

/** undefined when this process has no file descriptor for it. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return isScarcity(error) ? undefined : ''
  }
}
