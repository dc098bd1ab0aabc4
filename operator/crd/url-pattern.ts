/**
 * Which URLs the admin API takes (`destination` in `internal/domain/buffer-rules.ts`), as patterns for API servers. The
 * admin API asks the URL parser of Node, which follows the URL Standard (https://url.spec.whatwg.org, "Host parsing",
 * "URL parsing"). What rules can ask about URLs and addresses is Go's, and differs.
 *
 * Two questions are left to the operator and the service. What becomes of a host that is not all ASCII, or is
 * percent-encoded, needs the tables of UTS #46. Which addresses are permitted is a setting of the service.
 *
 * The patterns are RE2. With `\u{…}` for `\x{…}` they are JavaScript with the flag `u` too: no look-around.
 */

/** White space of JavaScript, and the backslash: URL parsers repair them, and the admin API refuses them. */
export const UNREPAIRED_PATTERN =
  '^[^\\t-\\r \\\\\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}]*$'

const HEX = '[0-9A-Fa-f]'

/** Decimal numbers from 1 on without a zero in front. */
function decimalUpTo(most: number): string {
  const digits = [...String(most)]
  const same = digits.map((digit, at) => {
    const lower = at === 0 ? 1 : 0
    if (Number(digit) <= lower) return undefined
    return `${digits.slice(0, at).join('')}[${lower}-${Number(digit) - 1}]${repeat('[0-9]', digits.length - 1 - at)}`
  })
  const shorter = digits.length < 2 ? [] : [`[1-9]${repeat('[0-9]', 0, digits.length - 2)}`]
  return anyOf(String(most), ...same.filter((each) => each !== undefined), ...shorter)
}

/** Hexadecimal behind 0x, octal behind 0, else decimal; `octal` is what may follow the zeros. */
function numberOf(bytes: number, octal: string): string {
  return anyOf(`0[Xx]0*${repeat(HEX, 0, 2 * bytes)}`, `0+${octal}`, decimalUpTo(256 ** bytes - 1))
}

/** The last number fills the bytes that are left. */
function ipv4(): string {
  const byte = numberOf(1, '[0-3]?[0-7]{0,2}')
  const two = numberOf(2, '1?[0-7]{0,5}')
  const three = numberOf(3, '[0-7]{0,8}')
  const four = numberOf(4, '[0-3]?[0-7]{0,10}')
  const before = (count: number) => repeat(`(${byte}\\.)`, count)
  return `${anyOf(`${before(3)}${byte}`, `${before(2)}${two}`, `${before(1)}${three}`, four)}\\.?`
}

/** Eight groups; `::` stands for one of them or more; the last two may be an address of four decimal numbers. */
function ipv6(): string {
  const group = repeat(HEX, 1, 4)
  const byte = anyOf('0', decimalUpTo(255))
  const dotted = `${byte}${repeat(`(\\.${byte})`, 3)}`
  const ending = (most: number) => {
    const groups = `${repeat(`(${group}:)`, 0, most - 1)}${group}`
    return most < 2 ? groups : anyOf(groups, `${repeat(`(${group}:)`, 0, most - 2)}${dotted}`)
  }
  const shortened = [1, 2, 3, 4, 5, 6, 7].map((before) => {
    const start = `${group}${repeat(`(:${group})`, before - 1)}::`
    return before === 7 ? start : `${start}(${ending(7 - before)})?`
  })
  const full = `${repeat(`(${group}:)`, 6)}${anyOf(`${group}:${group}`, dotted)}`
  return anyOf(full, `::(${ending(7)})?`, ...shortened)
}

/** One of a name's characters, all ASCII; `more` are none of them. */
function nameCharacter(more = ''): string {
  return `[^\\x00-\\x20#%./:<>?@\\x5b-\\x5e|\\x7f-\\x{10ffff}${more}]`
}

/** A host whose last label is a number is an address: this one's is none, or is empty. */
function name(): string {
  const any = `${nameCharacter()}*`
  const notDigit = nameCharacter('0-9')
  const noNumber = anyOf(
    `${notDigit}${any}`,
    `${anyOf('[1-9][0-9]*', '0[0-9]+')}${notDigit}${any}`,
    `0${nameCharacter('0-9Xx')}${any}`,
    `0[Xx]${HEX}*${nameCharacter('0-9A-Fa-f')}${any}`,
  )
  return `(${any}\\.)*${anyOf(`${noNumber}\\.?`, '\\.')}`
}

/** A host with something that only UTS #46 maps. No ASCII character that a host cannot have is percent-encoded in it. */
function mappedName(): string {
  const encoded = anyOf(
    ...['2[1246-9A-Ea-e]', '3[0-9BDbd]', '4[1-9A-Fa-f]', '5[0-9AFaf]', `6${HEX}`, '7[0-9ABDEabde]'],
    `[89A-Fa-f]${HEX}`,
  )
  const mapped = anyOf(`%${encoded}`, '[\\x{80}-\\x{10ffff}]')
  return `(${nameCharacter()}|\\.)*${mapped}(${nameCharacter()}|\\.|${mapped})*`
}

/** A host, a port up to 65535 or none, and whatever follows. Control characters at the very end are no part of it. */
export const DESTINATION_PATTERN = `^[^:]+://${anyOf(`\\[${ipv6()}\\]`, ipv4(), name(), mappedName())}(:0*${decimalUpTo(65_535)}?)?([/?#].*|[\\x01-\\x1f]*)$`

function anyOf(...alternatives: readonly string[]): string {
  return `(${alternatives.join('|')})`
}

function repeat(part: string, least: number, most = least): string {
  if (most === 0) return ''
  if (least === most) return least === 1 ? part : `${part}{${least}}`
  return least === 0 && most === 1 ? `${part}?` : `${part}{${least},${most}}`
}
