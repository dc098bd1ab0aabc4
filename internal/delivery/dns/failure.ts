/** How a lookup ends without addresses (docs/architecture/protocol.md, "Lookups"). */

/** The name has no address, or its servers do not answer: a failed attempt of class `dns`. */
export class LookupError extends Error {
  override readonly name = 'LookupError'
  /** Of c-ares, such as `ENOTFOUND`, `ENODATA`, `ESERVFAIL` or `ETIMEOUT`. */
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }

  /** Nobody answered. Whether the name's servers are silent or ours are, this does not say. */
  get silent(): boolean {
    return this.code === 'ETIMEOUT' || this.refused
  }

  /** Our own servers could not be asked: they refuse, or this process has no socket to ask them with. */
  get refused(): boolean {
    return this.code === 'ECONNREFUSED'
  }
}

/** The name was not asked for, or our own name servers were away. It says nothing of the name: no attempt was made. */
export class LookupWithheldError extends Error {
  override readonly name = 'LookupWithheldError'
}
