/** The profile: where the service is, and the key. Nobody else may read its file. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { withoutMark } from './byte-order-mark.ts'
import { EXIT } from './exit.ts'
import { Failure } from './failure.ts'

export interface Profile {
  readonly url: string
  readonly apiKey: string
}

export type Environment = Readonly<Record<string, string | undefined>>

const OWN_ONLY = 0o600
const OTHERS = 0o077

export function profilePath(env: Environment, option?: string): string {
  const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config')
  return option ?? (env.PENSTOCK_PROFILE || join(folder, 'penstock', 'profile.json'))
}

/** A new file in place of the old one: whoever may read the old one cannot read this. */
export function writeProfile(path: string, profile: Profile): void {
  const draft = `${path}.${process.pid}`
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(profile, null, 2)}\n`, { mode: OWN_ONLY, flag: 'wx' })
  renameSync(draft, path)
}

/** undefined: there is none. Throws a Failure for one that others may read, and for one that is damaged. */
export function readProfile(path: string): Profile | undefined {
  const text = textOf(path)
  if (text === undefined) return undefined
  if ((statSync(path).mode & OTHERS) !== 0)
    throw new Failure(
      EXIT.credential,
      `others may read the profile ${path}: chmod 600 it, and replace the key`,
    )
  const profile = parsed(text)
  if (typeof profile?.url !== 'string' || typeof profile.apiKey !== 'string')
    throw new Failure(EXIT.usage, `the profile ${path} is damaged: run penstock login again`)
  return { url: profile.url, apiKey: profile.apiKey }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new Failure(EXIT.usage, `cannot read the profile ${path}: ${code}`, { cause: error })
  }
}

function parsed(text: string): Partial<Profile> | null {
  try {
    return JSON.parse(withoutMark(text))
  } catch {
    return null
  }
}
