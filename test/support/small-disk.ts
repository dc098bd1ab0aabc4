/** A disk of its own for a test: a file system in memory, which only root may mount. */
import { execFileSync } from 'node:child_process'
import { chmodSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempFolder, unmount } from './temp-folders.ts'

export class SmallDisk {
  readonly dir: string

  private constructor(dir: string) {
    this.dir = dir
  }

  /** undefined: nothing may be mounted here. */
  static mount(megabytes: number): SmallDisk | undefined {
    const dir = tempFolder('disk')
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'penstock-test', dir], {
        stdio: 'pipe',
      })
    } catch {
      return undefined
    }
    // Postgres runs as its own user, and passes through.
    chmodSync(dir, 0o711)
    return new SmallDisk(dir)
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.dir)
    return bavail * bsize
  }

  /** Something else on it takes all but so much. */
  fill(leaveBytes: number): void {
    writeFileSync(this.#ballast, Buffer.alloc(Math.max(0, this.freeBytes - leaveBytes)))
  }

  /** And is removed. */
  clear(): void {
    rmSync(this.#ballast, { force: true })
  }

  /** Once nothing uses it any more. */
  unmount(): void {
    unmount(this.dir)
  }

  get #ballast(): string {
    return join(this.dir, 'ballast')
  }
}
