import { expect } from 'chai'
import { describe, it } from 'mocha'
import { EventSeries, type EventWrite } from '../../../operator/kubernetes/event-series.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

function fixture() {
  const clock = new ManualClock()
  const series = new EventSeries(clock)
  let names = 0
  const judge = (uid: string, text: string) => shown(series.judge(uid, text, () => `event-${++names}`))
  return { clock, series, judge }
}

function shown(verdict: EventWrite): string {
  if (verdict.write === 'nothing') return 'nothing'
  return verdict.write === 'first' ? `new ${verdict.name}` : `${verdict.name} x${verdict.count}`
}

describe('a series of Events', () => {
  it('is one Event with a count for the same text about the same resource', () => {
    const { clock, judge } = fixture()
    expect([judge('a', 'refused'), judge('a', 'created'), judge('b', 'refused')]).to.deep.equal([
      'new event-1',
      'new event-2',
      'new event-3',
    ])
    clock.advance(1_000)
    expect(judge('a', 'refused')).to.equal('event-1 x2')
  })

  it('is written once a minute, however often it is repeated', () => {
    const { clock, judge } = fixture()
    judge('a', 'refused')
    judge('a', 'refused')
    const written = Array.from({ length: 120 }, () => {
      clock.advance(1_000)
      return judge('a', 'refused')
    }).filter((verdict) => verdict !== 'nothing')
    expect(written).to.deep.equal(['event-1 x62', 'event-1 x122'])
  })

  it('ends after six minutes without a repetition', () => {
    const { clock, judge } = fixture()
    judge('a', 'refused')
    clock.advance(360_000)
    expect(judge('a', 'refused')).to.equal('new event-2')
  })

  it('begins anew when its Event could not be written', () => {
    const { series, judge } = fixture()
    judge('a', 'refused')
    series.forget('a', 'refused')
    expect(judge('a', 'refused')).to.equal('new event-2')
  })

  it('lets a resource speak 25 times, then once in five minutes, and others as ever', () => {
    const { clock, judge } = fixture()
    const told = (uid: string, times: number) =>
      Array.from({ length: times }, (_, index) => judge(uid, `${clock.now()} ${index}`)).filter(
        (verdict) => verdict !== 'nothing',
      ).length
    expect([told('a', 100), told('b', 1)]).to.deep.equal([25, 1])
    clock.advance(300_000)
    expect(told('a', 100)).to.equal(1)
  })
})
