/**
 * Who a process id belongs to. Process ids are reused, so nothing here is killed or waited for on the
 * strength of a number alone: a command line or a start time must agree with it.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const LINUX = process.platform === 'linux'

/** The full command line, arguments joined by spaces; undefined when no such process runs (a zombie does not). */
export function commandLine(pid: number): string | undefined {
  if (!LINUX) return askPs(pid, 'command=')
  const line = readProc(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim()
  return line && isRunning(pid) ? line : undefined
}

/** Ids of the running processes whose command line holds `text`. */
export function findProcesses(text: string): number[] {
  return LINUX ? findInProc(text) : findWithPs(text)
}

/** A text that two processes of one id never share, also across reboots; undefined when no such process runs. */
export function startMark(pid: number): string | undefined {
  if (!LINUX) return askPs(pid, 'lstart=')
  const fields = statFields(pid)
  if (fields === undefined || fields[0] === 'Z') return undefined
  return `${readProc('/proc/sys/kernel/random/boot_id')?.trim()}:${fields[19]}`
}

export function isRunning(pid: number): boolean {
  return startMark(pid) !== undefined
}

function findInProc(text: string): number[] {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.map(Number).filter((pid) => commandLine(pid)?.includes(text))
}

function findWithPs(text: string): number[] {
  const { stdout } = spawnSync('ps', ['-Awwo', 'pid=,command='], { encoding: 'utf8' })
  const lines = stdout.split('\n').filter((line) => line.includes(text))
  return lines.map((line) => Number.parseInt(line, 10))
}

/** Fields of /proc/<pid>/stat from the third on: the second, the name, may itself hold spaces and brackets. */
function statFields(pid: number): string[] | undefined {
  const stat = readProc(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function askPs(pid: number, column: string): string | undefined {
  const { status, stdout } = spawnSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' })
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : undefined
}
