/**
 * One virtual machine whose power can be cut: qemu emulates it, with no help of the hardware. Its network is qemu's own, by
 * ports of the host's loopback; its disk is a `PowerDisk`. A cut ends qemu with SIGKILL: the kernel of the guest writes
 * nothing any more, and its cache is gone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { tempFolder } from '../support/temp-folders.ts'
import { type Cache, type DiskLoss, PowerDisk } from './disk.ts'
import type { Guest } from './guest.ts'

/** Where a guest reaches the loopback of the host. */
export const HOST_ADDRESS = '10.0.2.2'
/**
 * The kernel ends the machine when its first process ends, and says little meanwhile. It takes its timer on trust: one that is
 * emulated beside many others is late at times, and the kernel would give up.
 */
const KERNEL_LINE = 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check'
/** 0.1 s instead of 30 s. The kernel flushes no more often for that. */
const WRITES_SOON = 'sysctl.vm.dirty_writeback_centisecs=10 sysctl.vm.dirty_expire_centisecs=10'

export interface MachineOptions {
  readonly name: string
  readonly guest: Guest
  /** File with the bytes of its disk. */
  readonly image: string
  readonly cache: Cache
  /** The kernel keeps no write for long, so that a cut finds much in the cache of the disk, and little in the kernel's. */
  readonly writesSoon: boolean
  readonly memoryMb: number
  /** Of the guest, each at the same port of the host's loopback. */
  readonly ports: readonly number[]
}

export class Machine {
  readonly name: string
  readonly #options: MachineOptions
  readonly #disk: PowerDisk
  readonly #console: string
  #qemu: ChildProcess | null = null

  private constructor(options: MachineOptions, disk: PowerDisk, folder: string) {
    this.name = options.name
    this.#options = options
    this.#disk = disk
    this.#console = join(folder, 'console')
  }

  /** Without power yet. */
  static async open(options: MachineOptions): Promise<Machine> {
    const folder = tempFolder(`machine-${options.name}`)
    const disk = await PowerDisk.open(options.image, join(folder, 'disk'), options.cache)
    return new Machine(options, disk, folder)
  }

  get running(): boolean {
    return this.#qemu !== null && this.#qemu.exitCode === null && this.#qemu.signalCode === null
  }

  /** What it has printed, over all of its starts. */
  get output(): string {
    return existsSync(this.#console) ? readFileSync(this.#console, 'utf8') : ''
  }

  /** Gives it power; what it runs is not there at once. It does not outlive this process. */
  start(): void {
    const qemu = spawn('qemu-system-x86_64', this.#arguments(), { stdio: ['ignore', 'ignore', 'inherit'] })
    const kill = () => qemu.kill('SIGKILL')
    process.once('exit', kill)
    qemu.once('exit', () => process.off('exit', kill))
    this.#qemu = qemu
  }

  /** Takes its power. `random`: what chance leaves of a torn cache. */
  async cut(random: () => number): Promise<DiskLoss> {
    if (!this.running) throw new Error(`${this.name} ended by itself:\n${this.output.slice(-2_000)}`)
    const ended = once(this.#qemu!, 'exit')
    this.#qemu!.kill('SIGKILL')
    await ended
    return this.#disk.cut(random)
  }

  async close(): Promise<void> {
    if (this.running) await this.cut(() => 0)
    await this.#disk.close()
  }

  #arguments(): string[] {
    const { guest, memoryMb, ports, writesSoon } = this.#options
    const kernelLine = writesSoon ? `${KERNEL_LINE} ${WRITES_SOON}` : KERNEL_LINE
    const forwarding = ports.map((port) => `hostfwd=tcp:127.0.0.1:${port}-:${port}`)
    return [
      ...['-accel', 'tcg', '-machine', 'q35', '-cpu', 'qemu64', '-smp', '1', '-m', `${memoryMb}`],
      ...['-nodefaults', '-no-reboot', '-display', 'none'],
      ...['-kernel', guest.kernel, '-initrd', guest.initramfs, '-append', kernelLine],
      ...['-chardev', `file,id=console,path=${this.#console},append=on`, '-serial', 'chardev:console'],
      ...['-blockdev', `driver=nbd,node-name=disk,server.type=unix,server.path=${this.#disk.path}`],
      // The guest is told of a cache in the disk, and flushes it.
      ...['-device', 'virtio-blk-pci,drive=disk,write-cache=on'],
      ...['-netdev', ['user,id=net,ipv6=off', ...forwarding].join(',')],
      ...['-device', 'virtio-net-pci,netdev=net,romfile='],
    ]
  }
}
