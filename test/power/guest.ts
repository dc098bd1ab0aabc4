/** Kernel and first file system of the machines (build.sh), and the disks that they start from. */
import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { tempFolder } from '../support/temp-folders.ts'

const BUILD = join(import.meta.dirname, 'build.sh')
/** Commands of the administrator, where the path of others does not lead. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`

export interface Guest {
  readonly kernel: string
  readonly initramfs: string
}

/** `fetch`: what is not there yet. Rejects with what is missing, by name. */
export async function findGuest(options: { fetch: boolean }): Promise<Guest> {
  const env = { ...process.env, POWER_BUILD: options.fetch ? '1' : '0' }
  try {
    const { stdout } = await promisify(execFile)('bash', [BUILD], { env })
    const folder = stdout.trim()
    return { kernel: join(folder, 'vmlinuz'), initramfs: join(folder, 'initramfs') }
  } catch (error) {
    const { stderr = String(error) } = error as { stderr?: string }
    throw new Error(stderr.trim(), { cause: error })
  }
}

/** What a disk holds at first, as a folder of the host: a busybox, and `start`, which its shell runs in the guest. */
export class RootFolder {
  readonly path: string

  /** `start`: ends only with the machine. It calls an applet of busybox by `/bin/busybox`. */
  constructor(label: string, start: string) {
    this.path = tempFolder(label)
    for (const folder of ['bin', 'dev', 'etc', 'proc', 'tmp']) mkdirSync(join(this.path, folder))
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim()
    this.copy(busybox, 'bin/busybox')
    this.write('start', `${start}\n`)
  }

  /** `to`: from the root of the disk. */
  copy(from: string, to: string): void {
    const target = join(this.path, to)
    mkdirSync(dirname(target), { recursive: true })
    copyFileSync(from, target)
  }

  write(to: string, text: string): void {
    writeFileSync(join(this.path, to), text)
  }

  /** A file with the bytes of a disk that holds it, in ext4 as Debian makes it; its room is taken as it is used. */
  async image(megabytes: number): Promise<string> {
    const image = join(tempFolder('image'), 'disk.img')
    writeFileSync(image, '')
    truncateSync(image, megabytes * 1024 * 1024)
    // All of it at once: a first mount would go on with it for minutes.
    const whole = 'lazy_itable_init=0,lazy_journal_init=0'
    await promisify(execFile)('mkfs.ext4', ['-q', '-F', '-E', whole, '-d', this.path, image], {
      env: { ...process.env, PATH },
    })
    return image
  }
}
