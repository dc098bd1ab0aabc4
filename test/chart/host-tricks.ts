/** URLs that look as if they led to an allowed host, or to another one. */
export function tricks(): string[] {
  const ascii = [...'@:/?#\\%;,&|^`<>"\'{}[]()*!$+=~ .-_0'].concat(
    '://',
    '//',
    '@@',
    ':@',
    ':80@',
    '\\@',
    '..',
  )
  const encoded = ['%2e', '%2f', '%40', '%5c', '%00', '%23', '%3f', '%20', '%c2%ad', '%e3%80%82']
  const unseen = [
    '\t',
    '\n',
    '\r',
    '\0',
    '\u007f',
    '\u00a0',
    '\u00ad',
    '\u200b',
    '\u200d',
    '\u2060',
    '\ufeff',
  ]
  const mapped = [
    '\u3002',
    '\uff0e',
    '\uff61',
    '\uff0f',
    '\uff20',
    '\u2100',
    '\u2044',
    '\u2215',
    '\uff03',
    '\u00df',
  ]
  const other = 'evil.example'
  return [...ascii, ...encoded, ...unseen, ...mapped].flatMap((sign) =>
    ['hooks.example.com', 'a.shop.example'].flatMap((good) => [
      `https://${good}${sign}${other}/`,
      `https://${other}${sign}${good}/`,
      `https://${sign}${good}/`,
      `https://${good}${sign}/`,
      `https:${sign}//${other}/`,
      `https:/${sign}/${other}//${good}`,
      `${sign}https://${good}/`,
      `https:${sign}${other}//${good}/`,
    ]),
  )
}
