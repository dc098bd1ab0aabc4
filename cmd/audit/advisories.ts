/** What `npm audit` tells of the production packages, and what it means for a run of CI. */
import { execFile } from 'node:child_process'

/** For the whole question, ms: a registry that is silent must not hold a run. */
const PATIENCE_MS = 20_000
const MAX_BYTES = 64_000_000
/** Lower ones are shown and fail nothing. */
const LEVELS = ['moderate', 'high', 'critical']
/** Once, whatever npm is configured to repeat. */
const ARGUMENTS = ['audit', '--omit=dev', '--json', '--fetch-retries=0']

export interface Verdict {
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** For people. */
  readonly lines: readonly string[]
}

interface Finding {
  readonly name: string
  readonly severity: string
  /** An advisory, or the name of the package that has one. */
  readonly via: readonly (string | { readonly title: string; readonly url: string; readonly range: string })[]
}

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, Finding>>
  readonly message?: string
  readonly error?: { readonly summary?: string }
}

/** `folder`: of a package.json with its lockfile. `patienceMs`: for the whole question. Never rejects. */
export async function askRegistry(folder: string, patienceMs = PATIENCE_MS): Promise<Verdict> {
  const { stdout, reason } = await npmAudit(folder, patienceMs)
  const report = readReport(stdout)
  if (report?.vulnerabilities === undefined) {
    const why = report?.error?.summary || report?.message || reason
    return { outcome: 'skipped', lines: [`SKIPPED: npm audit: the registry tells no advisories: ${why}`] }
  }
  return judge(Object.values(report.vulnerabilities))
}

function judge(findings: readonly Finding[]): Verdict {
  const lines = findings.map(({ name, severity, via }) => {
    const causes = via.map((each) =>
      typeof each === 'string' ? `by ${each}` : `${each.range}: ${each.title} (${each.url})`,
    )
    return `${severity}: ${name} ${causes.join('; ')}`
  })
  const fails = findings.some(({ severity }) => LEVELS.includes(severity))
  if (findings.length === 0) lines.push('npm audit: no known faults in the packages of the image')
  return { outcome: fails ? 'failed' : 'passed', lines }
}

function readReport(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report
  } catch {
    return undefined
  }
}

/** Its exit code says no more than its report. */
function npmAudit(folder: string, timeout: number): Promise<{ stdout: string; reason: string }> {
  const options = { cwd: folder, timeout, killSignal: 'SIGKILL', maxBuffer: MAX_BYTES } as const
  return new Promise((resolve) => {
    execFile('npm', ARGUMENTS, options, (error, stdout, stderr) => {
      const late = error?.killed === true ? `no answer within ${timeout / 1_000} s` : undefined
      resolve({ stdout, reason: late ?? (stderr.trim() || 'it said nothing') })
    })
  })
}
