/** What a repair found, in words. */
import {
  type Findings,
  type InboxFindings,
  type JournalFindings,
  needsRepair,
} from '../../internal/shard/repair/examination.ts'

export function findingLines(findings: Findings): string {
  const { shard, journal, inbox } = findings
  if (!needsRepair(findings)) return `Shard ${shard}: nothing to repair.\n`
  const lines = [`Shard ${shard}:`, ...(inbox ? inboxLines(inbox) : []), ...journalLines(journal)]
  return `${lines.join('\n')}\n`
}

function inboxLines({ fault, lostBelow, named, proven, fillers, again, broken }: InboxFindings): string[] {
  if (fault === null && lostBelow === null) return ['  inbox: as it should be.']
  const head =
    lostBelow === null
      ? []
      : [`  inbox: it begins at ${lostBelow}, and what stood below was not over: that is lost.`]
  const givenUp = `    Given up: ${broken.batches} sealed batches that miss ${broken.items} items; what is left of them is sealed anew.`
  if (fault === null) return [...head, givenUp]
  return [
    ...head,
    `  inbox: ${fault}.`,
    `    The journal names positions up to ${named}; up to ${proven} they are proven to be what they were.`,
    `    Appended: ${fillers} packs without items, so that it ends above them.`,
    `    Appended once more, above: ${again.packs} packs with ${again.items} items. What of it was delivered already`,
    '    is delivered again.',
    givenUp,
  ]
}

function journalLines({ fault, truncatedWithoutSnapshot, copied }: JournalFindings): string[] {
  if (fault === null) return ['  journal: as it should be.']
  if (truncatedWithoutSnapshot && !copied)
    return [`  journal: ${fault}, and there is no copy: restore NATS from a backup.`]
  const from = truncatedWithoutSnapshot ? 'from the copy of an interrupted repair' : 'with all that it holds'
  return [`  journal: ${fault}.`, `    Written anew ${from}, above every sequence that was ever used.`]
}
