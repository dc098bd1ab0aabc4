/** CPU time and memory of process trees, and CPU time of the whole machine, from /proc. */
import { readdirSync, readFileSync } from 'node:fs'

/** Of /proc times: the kernel's USER_HZ is 100 on every Linux that Node runs on. */
const MS_A_TICK = 10

interface Process {
  parent: number
  name: string
  /** User and system time, ended children included, ms. */
  cpuMs: number
}

/** CPU ms of the tree below `root`, by the name of its processes. */
export function cpuOf(root: number): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { name, cpuMs } of treeOf(root).values()) sums.set(name, (sums.get(name) ?? 0) + cpuMs)
  return sums
}

/** Bytes of memory of the tree below `root`; what processes share counts once. */
export function memoryOf(root: number): number {
  return [...treeOf(root).keys()].reduce((sum, pid) => sum + proportionalBytes(pid), 0)
}

/** SIGKILL for the tree below `root`: servers of a service that is killed alone would stay. */
export function killTree(root: number): void {
  for (const pid of treeOf(root).keys()) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }
}

function treeOf(root: number): Map<number, Process> {
  const all = processes()
  const tree = new Map<number, Process>()
  const todo = [root]
  for (let pid = todo.pop(); pid !== undefined; pid = todo.pop()) {
    const found = all.get(pid)
    if (!found) continue
    tree.set(pid, found)
    for (const [child, { parent }] of all) if (parent === pid) todo.push(child)
  }
  return tree
}

/** 0: it has ended meanwhile. */
function proportionalBytes(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return Number(/^Pss: +(\d+) kB$/m.exec(text)?.[1]) * 1_024
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw error
    return 0
  }
}

/** Ms over all kinds of processes. */
export function sumOf(cpu: Map<string, number>): number {
  return [...cpu.values()].reduce((sum, ms) => sum + ms, 0)
}

/** CPU ms that the whole machine has been busy, or was kept waiting by another one on the same host. */
export function machineBusyMs(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = machineTicks()
  return (user + nice + system + irq + softirq + steal) * MS_A_TICK
}

/** CPU ms that processes of this machine were kept waiting by another one on the same host. */
export function stolenMs(): number {
  const [, , , , , , , steal = 0] = machineTicks()
  return steal * MS_A_TICK
}

/** By kind, in the order of /proc/stat. */
function machineTicks(): number[] {
  const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.split(/ +/)
  return times.map(Number)
}

function processes(): Map<number, Process> {
  const found = new Map<number, Process>()
  for (const entry of readdirSync('/proc')) {
    const process = /^\d+$/.test(entry) ? readProcess(entry) : undefined
    if (process) found.set(Number(entry), process)
  }
  return found
}

/** undefined: it has ended meanwhile. */
function readProcess(pid: string): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const nameEnd = stat.lastIndexOf(')')
    const fields = stat.slice(nameEnd + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { parent: Number(fields[1]), name: nameOf(stat, nameEnd), cpuMs: ticks * MS_A_TICK }
  } catch {
    return undefined
  }
}

function nameOf(stat: string, end: number): string {
  const name = stat.slice(stat.indexOf('(') + 1, end)
  if (name.startsWith('postgres')) return 'postgres'
  if (name.startsWith('redis')) return 'redis'
  return name.startsWith('nats-server') ? 'nats' : 'app'
}
